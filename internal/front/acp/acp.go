// Package acp lets editors work with inspan: it speaks the Agent Client Protocol
// over two streams, which is JSON-RPC with one message a line.
//
// Its rules:
//
//  1. Like every front end it reads events and sends inputs. A session that was begun
//     here goes on in a terminal by the same id, and the other way round.
//  2. A prompt is one run, with the pauses in which the person decides. It is
//     answered when the run has stopped, or when it waits for words of the person.
//  3. What the client says in one stream is taken in order; what takes time is done
//     beside it. Only what the client sends, or its end, ends a run.
//  4. Commands with walls run in our own processes: the walls are ours, and so is the
//     keeper that ends all they leave behind. What they print is shown as the content of
//     the call. What the person has let out of the walls runs in terminals of the client
//     (terminals.go).
//  5. No type of the protocol leaves the package. What the Go SDK can't say is in
//     wire.go.
package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// Server is the agent of an editor. Do not change it while it serves.
type Server struct {
	App *app.App
	// Options are those of the command line. What the client chooses goes on top, and
	// sessions that are gone on with keep the model and the mode they have.
	Options app.Options
	// Host makes the host for the sessions that are opened from here on; warn takes
	// what a person should know. Nil: App.Host.
	Host func(o app.Options, warn func(string)) *inspan.Host
	// Root is the folder of sessions for which the client names none; absolute. Empty:
	// it must name one.
	Root string
	// Log takes what goes wrong and nobody else is told, in lines. Nil: it is lost.
	Log io.Writer

	logging sync.Mutex
}

// patience is how long a run may take to stop when it is interrupted, and the client
// to read what is left for it.
const patience = 5 * time.Second

var errGone = errors.New("the client is gone")

// Serve speaks with one client until in ends, ctx is done or out can't be written,
// and then ends like a terminal that is closed: runs are interrupted and what they
// have come to stays in the log; what waits for a decision goes on waiting there.
// When it returns every session is closed and no process of theirs is left. Out gets
// whole lines of the protocol and nothing else.
//
// The end of in is no error. If in can't be closed, a read that hangs is left behind
// when ctx ends; so is a write to a client that does not read, after some seconds.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := jsonrpc.NewOutbox(out)
	a := newAgent(ctx, s, lines)
	c := a.conn
	read := make(chan error, 1)
	go func() { read <- a.read(in) }()
	var err error
	reads := true
	select {
	case err = <-read:
		reads = false
	case <-lines.Broken():
		err = lines.Err()
	case <-ctx.Done():
	}
	c.Close(errGone)
	lines.Hurry()
	if in, ok := in.(io.Closer); ok && reads {
		_ = in.Close()
	}
	a.leave()
	cancel()
	c.Wait()
	return errors.Join(err, a.close(), lines.Finish(patience))
}

// logf writes a line about what went wrong.
func (s *Server) logf(format string, args ...any) {
	if s.Log == nil {
		return
	}
	s.logging.Lock()
	defer s.logging.Unlock()
	fmt.Fprintln(s.Log, words.OneLine(fmt.Sprintf(format, args...), 2000))
}

func (s *Server) host(o app.Options, warn func(string)) *inspan.Host {
	if s.Host != nil {
		return s.Host(o, warn)
	}
	return s.App.Host(o, warn)
}

// store is the host for what needs no agent.
func (s *Server) store() *inspan.Host { return s.host(s.Options, func(string) {}) }
