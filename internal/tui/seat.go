package tui

import (
	"context"
	"errors"
	"slices"
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
	pump  *pump
	send  func(any)
	guard func(func()) func()

	mu      sync.Mutex
	s       *inspan.Session
	run     *inspan.Conductor // of the last run; nil before the first
	mode    string            // that the session is to have when its run goes on; empty: the one that it has
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

// sent says that an input is in the log, or why not. With [inspan.ErrOver] it has come too
// late for the run.
type sent struct {
	input
	err error
}

// take makes a session the one that is open.
func (s *seat) take(session *inspan.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s, s.run, s.mode, s.outbox = session, nil, "", make(chan input, 256)
	outbox := s.outbox
	s.sending.Go(s.guard(func() {
		for in := range outbox {
			s.send(sent{in, s.into(in.body)})
		}
	}))
}

// into sends an input into the run that goes on.
func (s *seat) into(body event.Body) error {
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run == nil {
		return inspan.ErrOver
	}
	if b, ok := body.(event.Cancelled); ok {
		run.Interrupt(b)
		return nil
	}
	return run.Send(s.ctx, body)
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

// drive runs the session until it has nothing to do, and holds it while a question is open, so
// that others see who asks and an answer of theirs counts at once. Its events and a ranOut go
// to the pump.
func (s *seat) drive(inputs ...event.Body) {
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	run := &inspan.Conductor{
		Session: s.s, Grace: patience, Patience: -1, Before: s.switched,
		See: func(e event.Event) error { s.pump.put(e); return nil },
	}
	s.run = run
	inputs = slices.Clone(inputs) // the caller goes on with its own
	s.running.Go(s.guard(func() { s.pump.put(ranOut{conduct(s.ctx, run, inputs)}) }))
}

// switchTo has the session change its mode when its run goes on behind a question, or else
// after it.
func (s *seat) switchTo(mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

// next is the mode that the session is to have; empty: the one that it has.
func (s *seat) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// switched takes what switchTo has left.
func (s *seat) switched() (inputs []event.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode != "" {
		inputs = []event.Body{event.Switched{Mode: s.mode}}
	}
	s.mode = ""
	return inputs
}

// conduct runs the session. Where another process drives it, answers are sent there.
func conduct(ctx context.Context, run *inspan.Conductor, inputs []event.Body) error {
	err := run.Run(ctx, inputs...)
	if _, driven := errors.AsType[*inspan.DrivenError](err); !driven || len(inputs) == 0 || slices.ContainsFunc(inputs, isNoAnswer) {
		return err
	}
	for _, answer := range inputs {
		if err := run.Session.Send(ctx, answer); err != nil {
			return err
		}
	}
	return nil
}

func isNoAnswer(b event.Body) bool {
	_, answer := b.(event.Decided)
	return !answer
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

// rests reports whether all that a session has open are questions.
func rests(st inspan.Status) bool {
	return len(st.Waiting) > 0 && !slices.ContainsFunc(st.Open, func(p inspan.Pending) bool { return !p.Waits })
}

// close interrupts a run that works, leaves one that asks with its questions open, waits for it
// and closes the session.
func (s *seat) close() error {
	s.unwatch()
	s.mu.Lock()
	session, run, outbox := s.s, s.run, s.outbox
	s.s, s.run, s.outbox = nil, nil, nil
	s.mu.Unlock()
	if session == nil {
		return nil
	}
	close(outbox)
	s.sending.Wait()
	left := event.Cancelled{By: "the user", Reason: "left", All: true}
	switch {
	case run == nil:
	case rests(session.Status()):
		run.Leave(left)
	default:
		run.Interrupt(left)
	}
	s.running.Wait()
	l := session.Leave()
	s.left = words.Leftovers(session.ID(), l.Kept, l.Ended)
	return session.Close()
}
