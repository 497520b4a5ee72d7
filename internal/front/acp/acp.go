// Package acp lets editors work with inspan: it speaks the Agent Client Protocol over two streams, which is
// JSON-RPC with one message a line.
//
// Its rules:
//
//  1. Like every front end it reads events and sends inputs. A session that was begun here can continue in a
//     terminal under the same id, and the other way round.
//  2. A prompt is one run, including the pauses in which the person decides. It is answered when the run has
//     stopped, or when it needs the person's words.
//  3. Messages of the client are handled in order; slow work is done in the background. Only the client's
//     messages, or its end, end a run.
//  4. Sandboxed commands run in our own processes, in our sandbox and with our keeper, which ends everything
//     they leave behind. Their output is shown as the content of the call. Commands that the person has let
//     out of the sandbox run in terminals of the client (terminals.go).
//  5. No type of the protocol leaves the package. wire.go has what the Go SDK lacks.
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

// Server is the agent of an editor. Don't change it while it serves.
type Server struct {
	App *app.App
	// Options are those of the command line. The client's choices override them, and resumed sessions keep
	// their model and mode.
	Options app.Options
	// Host makes the host for sessions that are opened from now on; warn receives warnings for the person. If
	// nil, App.Host is used.
	Host func(o app.Options, warn func(string)) *inspan.Host
	// Root is the absolute folder of sessions whose client names none. If empty, the client must name one.
	Root string
	// Log receives lines about errors that no one else is told about. If nil, they are lost.
	Log io.Writer

	logging sync.Mutex
}

// patience is how long an interrupted run may take to stop, and the client to read its remaining messages.
const patience = 5 * time.Second

var errGone = errors.New("the client is gone")

// Serve speaks with one client until in ends, ctx ends or out can't be written. Then it ends like a closed
// terminal: runs are interrupted and their partial results stay in the log; calls that wait for a decision
// continue to wait there. When it returns, every session is closed and none of their processes is left. Out
// only receives whole lines of the protocol.
//
// The end of in is not an error. If in can't be closed, a blocked read is left behind when ctx ends; so is a
// write to a client that does not read, after some seconds.
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
	a.interruptAll()
	cancel()
	c.Wait()
	return errors.Join(err, a.close(), lines.Finish(patience))
}

// logf writes a line about an error.
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

// store returns the host for work that needs no agent.
func (s *Server) store() *inspan.Host { return s.host(s.Options, func(string) {}) }
