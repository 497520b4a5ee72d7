package tui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
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
	s       session
	mode    tool.Mode // that the session is to have when its run goes on; empty: the one that it has
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
	back int  // takes back what was said with the number, in the place of a body
	away bool // goes to whoever drives the session elsewhere
}

// sent says that an input is in the log, or why not. With [inspan.ErrOver] it has come too
// late for the run.
type sent struct {
	input
	err error
}

// take makes a session the one that is open.
func (r *runner) take(open session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s, r.mode, r.outbox = open, "", make(chan input, 256)
	outbox := r.outbox
	r.sending.Go(r.guard(func() { r.deliver(open, outbox) }))
}

// deliver sends inputs into a session, one after the other: what takes one back follows it, and comes
// before an interrupt that was wanted later.
func (r *runner) deliver(open session, outbox <-chan input) {
	said := map[int]uint64{} // what has arrived, by its number here
	for in := range outbox {
		if in.back > 0 {
			if said[in.back] == 0 {
				continue // there is nothing to take back
			}
			in.body = event.Withdrawn{Of: said[in.back]}
		}
		var err error
		if in.away {
			err = open.Send(r.ctx, in.body)
		} else {
			said[in.n], err = open.into(r.ctx, in.body)
		}
		r.send(sent{in, err})
	}
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

// drive runs the session until it has nothing to do. Events and a ranOut go to the pump.
func (r *runner) drive(inputs ...event.Body) {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.s.begin(r.switched)
	inputs = slices.Clone(inputs) // the caller goes on with its own
	r.running.Go(r.guard(func() { r.pump.put(ranOut{run(r.ctx, inputs)}) }))
}

// switchTo changes the mode as soon as the run waits only for answers, or else after the run.
func (r *runner) switchTo(mode tool.Mode) {
	r.mu.Lock()
	open := r.s
	r.mode = mode
	r.mu.Unlock()
	if open != nil {
		open.again()
	}
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
	watching.Go(r.guard(func() { session.watch(ctx, after) }))
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

func (r *runner) session() session {
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

// close ends what goes on here and closes the session.
func (r *runner) close() error {
	r.unwatch()
	r.mu.Lock()
	open, outbox := r.s, r.outbox
	r.s, r.outbox = nil, nil
	r.mu.Unlock()
	if open == nil {
		return nil
	}
	close(outbox)
	late := time.AfterFunc(untold, open.hangUp)
	r.sending.Wait()
	late.Stop()
	open.leave()
	r.running.Wait()
	left, err := open.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = left
	return err
}

// leftovers are what became of what ran when the last session was closed.
func (r *runner) leftovers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}
