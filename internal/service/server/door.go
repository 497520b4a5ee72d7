package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Door is where clients reach one of our servers, as the operator sets it.
type Door struct {
	Listen    string              // address
	TokenFile string              // has the token of the owner; made if it is missing
	Record    string              // file with the address while the server runs; empty means none
	Public    bool                // other machines may reach the address
	Hosts     []string            // names of proxies in front of the server
	Opened    func(string)        // is called with the address once the server listens
	Ending    func(time.Duration) // is called if calls run at the end, with the time that they have left; may be nil
}

// Serve serves h behind a gate until ctx ends, see [netguard.Gate.Serve]. A gate without identities, and a nil
// gate, let in anyone with the token.
func (d Door) Serve(ctx context.Context, g *netguard.Gate, h http.Handler, end func()) error {
	if g == nil {
		g = &netguard.Gate{}
	}
	if g.Who == nil {
		token, err := netguard.Token(d.TokenFile)
		if err != nil {
			return err
		}
		g.Who = netguard.One(owner, token)
	}
	g.Hosts = d.Hosts
	l, err := d.listen(ctx, g)
	if err != nil {
		return err
	}
	if d.Record != "" {
		err := os.MkdirAll(filepath.Dir(d.Record), 0o700)
		if err = errors.Join(err, keep.Write(d.Record, []byte(l.Addr().String()))); err != nil {
			return errors.Join(err, l.Close())
		}
		defer os.Remove(d.Record)
	}
	d.Opened(l.Addr().String())
	return g.Serve(ctx, l, h, end)
}

// listen is [netguard.Gate.Listen] for the door.
func (d Door) listen(ctx context.Context, g *netguard.Gate) (net.Listener, error) {
	l, err := g.Listen(ctx, d.Listen, d.Public)
	if errors.Is(err, netguard.ErrOpen) {
		err = words.Misuse{Err: err}
	}
	return l, err
}

// Serve starts the server, with the token of the door as its owner's, and serves until ctx ends. Then running
// calls have as long as grace to finish, while requests are still answered.
func (s *Server) Serve(ctx context.Context, d Door, grace time.Duration) (err error) {
	if s.Owner, err = netguard.Token(d.TokenFile); err != nil {
		return err
	}
	if err := s.startSoon(ctx); err != nil {
		return err
	}
	if s.State != "" {
		d.Record = filepath.Join(s.State, recordName)
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	ending, over := context.WithCancel(ctx)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer end()
		<-ending.Done()
		s.drainFor(ctx, d, grace)
	}()
	var closed error
	err = d.Serve(serving, s.Gate(), s.Handler(), func() { closed = s.Close() })
	over()
	<-drained
	if err != nil {
		closed = errors.Join(closed, s.Close()) // it may never have listened
	}
	return errors.Join(err, closed)
}

// startSoon starts the server. A killed predecessor may not have released the book yet.
func (s *Server) startSoon(ctx context.Context) error {
	patient, stop := context.WithTimeout(ctx, startPatience)
	defer stop()
	for {
		err := s.Start(ctx)
		if !errors.Is(err, store.ErrBusy) || keep.Sleep(patient, startPatience/30) != nil {
			return err
		}
	}
}

// startPatience is how long a server waits for its predecessor to be gone.
const startPatience = 3 * time.Second

// drainFor drains the server for at most grace. It reports this if the server was asked to end while tasks work.
func (s *Server) drainFor(ctx context.Context, d Door, grace time.Duration) {
	if ctx.Err() != nil && d.Ending != nil && s.working() {
		d.Ending(grace)
	}
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	s.Drain(patient)
}

// Gate returns the gate in front of the handler: it lets in every identity that the server knows, and everyone
// to endpoints without data.
func (s *Server) Gate() *netguard.Gate {
	g := &netguard.Gate{Who: s.Who, Open: append(pagePaths(), "/ping", "/readyz"), Signed: []string{hooksPath + "*"}, Forms: s.Forms, Refuse: Refuse}
	if s.Runtime {
		g.Trusted, g.As = []string{"/invocations", "/ping", "/ws"}, byRuntime
	}
	return g
}

// Trial serves at a loopback address, does one task as a client would, and ends. Apart from sessions, all state is
// in memory and in the folder dir, which exists, so it neither waits for another server with the same sessions, nor
// affects it. If there is an error, the task is still returned in its last state.
func (s *Server) Trial(ctx context.Context, dir string, spec Spec) (t Task, err error) {
	s.books = &store.Memory{}
	s.State, s.Dir = filepath.Join(dir, "state"), filepath.Join(dir, "tasks")
	ctx, end := context.WithCancel(ctx)
	defer end()
	opened, ended := make(chan string, 1), make(chan error, 1)
	door := Door{Listen: "127.0.0.1:0", TokenFile: filepath.Join(dir, "token"), Opened: func(at string) { opened <- at }}
	go func() { ended <- s.Serve(ctx, door, time.Second) }()
	select {
	case at := <-opened:
		r := &Remote{URL: "http://" + at, Token: s.Owner}
		if t, err = r.Submit(ctx, spec); err == nil {
			t, err = r.await(ctx, t.ID, func(t Task) bool { return over(t.Stage) })
		}
		if err == nil && t.Stage != StageCompleted {
			err = fmt.Errorf("task %s is %s: %s", t.ID, t.Stage, t.Why)
		}
	case err := <-ended:
		return t, err
	}
	end()
	return t, errors.Join(err, <-ended)
}
