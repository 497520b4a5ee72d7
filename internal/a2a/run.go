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
	session *inspan.Session
	cancel  context.CancelFunc
	more    bool          // something was sent since the driver looked; guarded by Server.mu
	begun   chan struct{} // closed when what it began with is stored, or can't be
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

// start is drive, and does not wait.
func (s *Server) start(ctx context.Context, id string, opened *inspan.Session, inputs []event.Body) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[id]; r != nil {
		r.more = r.more || len(inputs) > 0
		return r, send(ctx, r.session, inputs)
	}
	err := s.fullLocked()
	if err == nil && opened == nil {
		opened, err = s.Host.Open(context.WithoutCancel(ctx), id)
	}
	if err != nil {
		if opened != nil {
			_ = opened.Close() // nothing was done in it
		}
		return nil, err
	}
	r := &run{session: opened, begun: make(chan struct{}), done: make(chan struct{})}
	var work context.Context
	work, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if s.runs == nil {
		s.runs = map[string]*run{}
	}
	s.runs[id] = r
	s.wg.Go(func() {
		defer close(r.done)
		r.err = s.work(work, id, r, inputs)
		r.cancel()
		_ = r.session.Close() // what was acknowledged is stored
	})
	return r, nil
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

// work drives a session until it stops, and waits a while where it asks.
func (s *Server) work(ctx context.Context, id string, r *run, inputs []event.Body) error {
	begun := sync.OnceFunc(func() { close(r.begun) })
	defer begun()
	for {
		err := once(ctx, r.session, inputs, begun)
		inputs = nil
		if err == nil && len(r.session.Status().Waiting) > 0 {
			if err = await(ctx, r.session); err == nil {
				continue
			}
			if errors.Is(err, errLetGo) {
				err = nil
			}
		}
		if s.over(id, r, err) {
			return err
		}
	}
}

// errLetGo says that nobody has answered for a while.
var errLetGo = errors.New("nobody answers")

// await waits for an answer.
func await(ctx context.Context, s *inspan.Session) error {
	patient, stop := context.WithTimeout(ctx, letGo)
	defer stop()
	err := s.Await(patient)
	if patient.Err() != nil && ctx.Err() == nil {
		return errLetGo
	}
	return err
}

// once runs a session once, and says when that has begun. What was to be said is sent
// to whoever drives it, if that is another process.
func once(ctx context.Context, s *inspan.Session, inputs []event.Body, begun func()) error {
	for e, err := range s.Run(ctx, inputs...) {
		if elsewhere(err) {
			return errors.Join(err, send(ctx, s, inputs))
		}
		if err != nil {
			return err
		}
		if _, ours := e.Body.(event.Claimed); ours { // it is stored together with the inputs
			begun()
		}
	}
	return nil
}

// over reports whether a driver may leave, and has it be forgotten then. It may not if
// something came after it had looked for the last time.
func (s *Server) over(id string, r *run, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.more && err == nil {
		r.more = false
		return false
	}
	delete(s.runs, id)
	return true
}
