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
	"github.com/inspan/inspan/tool"
)

// runner drives the open session, in goroutines of its own. Its methods may be called from any
// goroutine.
type runner struct {
	ctx   context.Context
	pump  *pump
	send  func(any)
	guard func(func()) func()

	mu      sync.Mutex
	s       *inspan.Session
	run     *inspan.Conductor // of the last run; nil before the first
	mode    tool.Mode         // that the session is to have when its run goes on; empty: the one that it has
	outbox  chan input
	running sync.WaitGroup // runs of the session
	sending sync.WaitGroup // the goroutine that sends
	blind   func()         // ends the watching, and waits for it; nil: nobody watches
	left    []string       // guarded by mu; what became of what ran when the last session was closed
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
func (r *runner) take(session *inspan.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s, r.run, r.mode, r.outbox = session, nil, "", make(chan input, 256)
	outbox := r.outbox
	r.sending.Go(r.guard(func() {
		for in := range outbox {
			r.send(sent{in, r.into(in.body)})
		}
	}))
}

// into sends an input into the run that goes on.
func (r *runner) into(body event.Body) error {
	r.mu.Lock()
	run := r.run
	r.mu.Unlock()
	if run == nil {
		return inspan.ErrOver
	}
	if b, ok := body.(event.Cancelled); ok {
		run.Interrupt(b)
		return nil
	}
	return run.Send(r.ctx, body)
}

// post sends an input into the session, after those before it.
func (r *runner) post(in input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outbox == nil {
		return
	}
	select {
	case r.outbox <- in:
	default:
		r.pump.put(ranOut{errors.New("too many inputs are waiting to be sent")})
	}
}

// drive runs the session until it has nothing to do. While a question is open, the run holds the
// session and waits, so that other processes see who asks and can answer. Events and a ranOut go
// to the pump.
func (r *runner) drive(inputs ...event.Body) {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	run := &inspan.Conductor{
		Session: r.s, Grace: patience, Patience: -1, Before: r.switched,
		See: func(e event.Event) error { r.pump.put(e); return nil },
	}
	r.run = run
	inputs = slices.Clone(inputs) // the caller goes on with its own
	r.running.Go(r.guard(func() { r.pump.put(ranOut{conduct(r.ctx, run, inputs)}) }))
}

// switchTo changes the mode as soon as the run waits only for answers, or else after the run.
func (r *runner) switchTo(mode tool.Mode) {
	r.mu.Lock()
	run := r.run
	r.mode = mode
	r.mu.Unlock()
	if run != nil {
		run.Again()
	}
}

// next is the mode that the session is to have; empty: the one that it has.
func (r *runner) next() tool.Mode {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mode
}

// switched takes what switchTo has left.
func (r *runner) switched() (inputs []event.Body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode != "" {
		inputs = []event.Body{event.Switched{Mode: r.mode}}
	}
	r.mode = ""
	return inputs
}

// conduct runs the session. If another process drives it, answers, steering and interrupts go there.
func conduct(ctx context.Context, run *inspan.Conductor, inputs []event.Body) error {
	err := run.Run(ctx, inputs...)
	if _, driven := errors.AsType[*inspan.DrivenError](err); !driven || len(inputs) == 0 || slices.ContainsFunc(inputs, isForUs) {
		return err
	}
	for _, input := range inputs {
		if err := run.Session.Send(ctx, input); err != nil {
			return err
		}
	}
	return nil
}

// isForUs reports whether only a run here can take an input. Any run can take the others.
func isForUs(b event.Body) bool {
	switch b.(type) {
	case event.Decided, event.Steered, event.Cancelled:
		return false
	}
	return true
}

// watch puts what others append to the log into the pump, until unwatch or drive.
func (r *runner) watch(after uint64) {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	session := r.s
	if session == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	var watching sync.WaitGroup
	watching.Go(r.guard(func() {
		for e, err := range session.Events(ctx, after) {
			if err != nil {
				return // whoever runs the session next will say it
			}
			r.pump.put(e)
		}
	}))
	r.blind = func() { cancel(); watching.Wait() }
}

func (r *runner) unwatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blind != nil {
		r.blind()
		r.blind = nil
	}
}

func (r *runner) session() *inspan.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}

func (r *runner) id() string {
	if session := r.session(); session != nil {
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

// close ends the run and closes the session. A run that works is interrupted; if it only waits
// for answers, the questions stay open.
func (r *runner) close() error {
	r.unwatch()
	r.mu.Lock()
	session, run, outbox := r.s, r.run, r.outbox
	r.s, r.run, r.outbox = nil, nil, nil
	r.mu.Unlock()
	if session == nil {
		return nil
	}
	close(outbox)
	r.sending.Wait()
	left := event.Cancelled{By: "the user", Reason: "left", All: true}
	switch {
	case run == nil:
	case rests(session.Status()):
		run.Leave(left)
	default:
		run.Interrupt(left)
	}
	r.running.Wait()
	l := session.Leave()
	r.mu.Lock()
	r.left = words.Leftovers(session.ID(), l.Kept, l.Ended)
	r.mu.Unlock()
	return session.Close()
}

// leftovers are what became of what ran when the last session was closed.
func (r *runner) leftovers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}
