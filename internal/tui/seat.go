package tui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
)

// seat holds the session that is open and the goroutines that drive it. Its
// methods may be called from any goroutine.
type seat struct {
	ctx   context.Context
	stop  func() // ends ctx, for a run that does not stop by itself
	pump  *pump
	send  func(any)
	guard func(func()) func()

	mu      sync.Mutex
	s       *inspan.Session
	outbox  chan input
	running sync.WaitGroup // runs of the session
	sending sync.WaitGroup // the goroutine that sends
	blind   func()         // ends the watching, and waits for it; nil: nobody watches
	left    []string       // what became of what ran when the last session was closed
}

// input is something that is sent into a session.
type input struct {
	n    int
	body event.Body
}

// sent says that an input is in the log, or why not.
type sent struct {
	n   int
	err error
}

// take makes a session the one that is open.
func (s *seat) take(session *inspan.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s, s.outbox = session, make(chan input, 256)
	outbox := s.outbox
	s.sending.Go(s.guard(func() {
		for in := range outbox {
			err := session.Send(s.ctx, in.body)
			s.send(sent{in.n, err})
		}
	}))
}

// post sends an input into the session, after those before it.
func (s *seat) post(in input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox == nil {
		return
	}
	select {
	case s.outbox <- in:
	default:
		s.pump.put(ranOut{errors.New("too much is waiting to be sent")})
	}
}

// drive runs the session until it has nothing to do. Its events and a ranOut go
// to the pump.
func (s *seat) drive(inputs ...event.Body) {
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.s
	s.running.Go(s.guard(func() {
		var failed error
		for e, err := range session.Run(s.ctx, inputs...) {
			if err != nil {
				failed = err
				break
			}
			s.pump.put(e)
		}
		s.pump.put(ranOut{failed})
	}))
}

// watch puts what others append to the log into the pump, until unwatch or drive.
func (s *seat) watch(after uint64) {
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.s
	if session == nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var watching sync.WaitGroup
	watching.Go(s.guard(func() {
		for e, err := range session.Events(ctx, after) {
			if err != nil {
				return // whoever runs the session next will say it
			}
			s.pump.put(e)
		}
	}))
	s.blind = func() { cancel(); watching.Wait() }
}

func (s *seat) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blind != nil {
		s.blind()
		s.blind = nil
	}
}

func (s *seat) session() *inspan.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

func (s *seat) id() string {
	if session := s.session(); session != nil {
		return session.ID()
	}
	return ""
}

// patience is how long a run may take to stop when it is interrupted.
const patience = 5 * time.Second

// close interrupts a run that goes on, waits for it and closes the session.
func (s *seat) close() error {
	s.unwatch()
	s.mu.Lock()
	session, outbox := s.s, s.outbox
	s.s, s.outbox = nil, nil
	s.mu.Unlock()
	if session == nil {
		return nil
	}
	close(outbox)
	s.sending.Wait()
	over := make(chan struct{})
	go func() { s.running.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(10 * time.Millisecond): // it really goes on
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), patience)
		err := session.Send(ctx, event.Cancelled{By: "the user", Reason: "left", All: true})
		cancel()
		select {
		case <-over:
		case <-time.After(patience):
			s.stop()
			<-over
		}
		if err != nil {
			return errors.Join(err, session.Close())
		}
	}
	l := session.Leave()
	s.left = words.Leftovers(session.ID(), l.Kept, l.Ended)
	return session.Close()
}
