package server

import (
	"context"
	"errors"
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

// Door is where clients reach one of our servers, as an operator says it.
type Door struct {
	Listen    string              // address
	TokenFile string              // holds the token of the owner; made if it is missing
	Record    string              // file that has the address while it is served; empty: none
	Public    bool                // other machines may reach the address
	Hosts     []string            // names of proxies in front of the server
	Opened    func(string)        // is told the address once it listens
	Ending    func(time.Duration) // is told that running calls have so long; nil: nobody is
}

// Serve serves h behind a gate until ctx ends, see [netguard.Gate.Serve]. A gate that knows nobody lets
// in whoever has the token; nil is such a gate.
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

// listen is [netguard.Gate.Listen] at the door.
func (d Door) listen(ctx context.Context, g *netguard.Gate) (net.Listener, error) {
	l, err := g.Listen(ctx, d.Listen, d.Public)
	if errors.Is(err, netguard.ErrOpen) {
		err = words.Misuse{Err: err}
	}
	return l, err
}

// Serve starts the server, with the token of the door as its owner's, and serves there until ctx
// ends. Then the calls that run have as long as grace to finish, while requests are still answered.
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

// startSoon starts the server. One before it that was killed may not have let go of the book yet.
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

// startPatience is how long a server waits for the one before it to be gone.
const startPatience = 3 * time.Second

// drainFor drains the server for as long as grace, and says so if it was asked to end.
func (s *Server) drainFor(ctx context.Context, d Door, grace time.Duration) {
	if ctx.Err() != nil && d.Ending != nil {
		d.Ending(grace)
	}
	patient, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	s.Drain(patient)
}

// Gate is what stands before the handler: it lets in whoever the server knows, and everybody to what
// holds no data.
func (s *Server) Gate() *netguard.Gate {
	g := &netguard.Gate{Who: s.Who, Open: append(pagePaths(), "/ping", "/readyz"), Signed: []string{hooksPath + "*"}, Forms: s.Forms, Refuse: Refuse}
	if s.Runtime {
		g.Trusted, g.As = []string{"/invocations", "/ping", "/ws"}, byRuntime
	}
	return g
}
