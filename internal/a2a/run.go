package a2a

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// run is a session that is driven here.
type run struct {
	conduct inspan.Conductor
	cancel  context.CancelFunc
	begun   chan struct{} // closed when what it began with is stored, or can't be
	begin   func()        // closes it
	done    chan struct{} // closed when nobody drives it here any more
	err     error         // why not, if the harness can't go on
}

// letGo is how long a session that waits for an answer is held open, with what its
// agent has running. The answer may come later.
const letGo = 10 * time.Minute

// drive has a session go on with inputs, which are stored when it returns. It is opened
// unless it is driven here already, or has been. If another process drives it, the
// inputs are sent there.
func (s *Server) drive(ctx context.Context, id string, opened *inspan.Session, inputs ...event.Body) (*run, error) {
	r, err := s.start(ctx, id, opened, inputs)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-r.done:
		if r.err != nil && !elsewhere(r.err) {
			return nil, r.err
		}
	default:
	}
	return r, nil
}

// start is drive, and does not wait for the inputs. A run that is about to end takes them
// too; behind one that is over another begins.
func (s *Server) start(ctx context.Context, id string, opened *inspan.Session, inputs []event.Body) (*run, error) {
	for {
		r, fresh, err := s.run(ctx, id, opened, inputs)
		if err != nil || fresh {
			return r, err
		}
		if err := send(ctx, &r.conduct, inputs); !errors.Is(err, inspan.ErrOver) {
			return r, err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run is the run of a session. A fresh one begins with the inputs.
func (s *Server) run(ctx context.Context, id string, opened *inspan.Session, inputs []event.Body) (r *run, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[id]; r != nil {
		return r, false, nil
	}
	err = s.fullLocked()
	if err == nil && opened == nil {
		opened, err = s.Host.Open(context.WithoutCancel(ctx), id)
	}
	if err != nil {
		if opened != nil {
			_ = opened.Close() // nothing was done in it
		}
		return nil, false, err
	}
	r = newRun(opened)
	var work context.Context
	work, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if s.runs == nil {
		s.runs = map[string]*run{}
	}
	s.runs[id] = r
	s.wg.Go(func() { s.work(work, id, r, inputs) })
	return r, true, nil
}

func newRun(s *inspan.Session) *run {
	r := &run{begun: make(chan struct{}), done: make(chan struct{})}
	r.begin = sync.OnceFunc(func() { close(r.begun) })
	r.conduct.Session, r.conduct.Patience = s, letGo
	r.conduct.See = func(e event.Event) error {
		if _, ours := e.Body.(event.Claimed); ours { // it is stored together with the inputs
			r.begin()
		}
		return nil
	}
	return r
}

// full says why nothing can be begun; nil: it can.
func (s *Server) full() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fullLocked()
}

func (s *Server) fullLocked() error {
	switch {
	case s.closed:
		return ErrClosed
	case len(s.runs) >= maxRuns:
		return errors.New("too much goes on at once; wait for something to end")
	}
	return nil
}

func send(ctx context.Context, to interface {
	Send(context.Context, event.Body) error
}, inputs []event.Body,
) error {
	for _, input := range inputs {
		if err := to.Send(ctx, input); err != nil {
			return err
		}
	}
	return nil
}

// work drives a session until it stops, or nobody answers it for a while. What was to be
// said is sent to whoever drives it, if that is another process.
func (s *Server) work(ctx context.Context, id string, r *run, inputs []event.Body) {
	r.err = r.conduct.Run(ctx, inputs...)
	select {
	case <-r.begun: // the inputs are in the log
	default:
		if elsewhere(r.err) {
			r.err = errors.Join(r.err, send(ctx, r.conduct.Session, inputs))
		}
		r.begin()
	}
	r.cancel()
	_ = r.conduct.Session.Close() // what was acknowledged is stored
	s.mu.Lock()
	delete(s.runs, id)
	s.mu.Unlock()
	close(r.done)
}
