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

// runner drives the open session in its own goroutines. Its methods may be called from any goroutine.
type runner struct {
	ctx   context.Context
	pump  *pump
	send  func(any)
	guard func(func()) func()

	mu      sync.Mutex
	s       session
	mode    tool.Mode // the mode for when the run continues; empty if it is unchanged
	outbox  chan input
	running sync.WaitGroup // runs of the session
	sending sync.WaitGroup // the sending goroutine
	blind   func()         // stops watching, and waits for that; nil if nothing is watched
	left    []string       // guarded by mu; what became of running processes when the last session was closed
}

// input is an input for a session.
type input struct {
	n    int
	body event.Body
	back int  // instead of a body: withdraws the message with this number
	away bool // for the process that drives the session elsewhere
}

// inputSent says that an input is in the log, or why not. [inspan.ErrRunEnded] means that it came too late for the run.
type inputSent struct {
	input
	err error
}

// take sets the open session.
func (r *runner) take(open session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s, r.mode, r.outbox = open, "", make(chan input, 256)
	outbox := r.outbox
	r.sending.Go(r.guard(func() { r.deliver(open, outbox) }))
}

// deliver sends inputs into a session in order: a withdrawal follows its message, and comes before a later
// interrupt.
func (r *runner) deliver(open session, outbox <-chan input) {
	said := map[int]uint64{} // what has arrived, by its number here
	for in := range outbox {
		if in.back > 0 {
			if said[in.back] == 0 {
				continue // nothing to withdraw
			}
			in.body = event.Withdrawn{Of: said[in.back]}
		}
		var err error
		if in.away {
			err = open.Send(r.ctx, in.body)
		} else {
			said[in.n], err = open.sendToRun(r.ctx, in.body)
		}
		r.send(inputSent{in, err})
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
		r.pump.put(runEnded{errors.New("too many inputs are waiting to be sent")})
	}
}

// drive runs the session until it has nothing left to do. Events and a ranOut go to the pump.
func (r *runner) drive(inputs ...event.Body) {
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.s.prepareRun(r.switched)
	inputs = slices.Clone(inputs) // the caller may change its own
	r.running.Go(r.guard(func() { r.pump.put(runEnded{run(r.ctx, inputs)}) }))
}

// switchTo changes the mode as soon as the run only waits for answers, or after the run.
func (r *runner) switchTo(mode tool.Mode) {
	r.mu.Lock()
	open := r.s
	r.mode = mode
	r.mu.Unlock()
	if open != nil {
		open.again()
	}
}

// switched returns the events of switchTo.
func (r *runner) switched() (inputs []event.Body) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode != "" {
		inputs = []event.Body{event.Switched{Mode: r.mode}}
	}
	r.mode = ""
	return inputs
}

// runOrSend runs the session. If another process drives it, answers, steering and interrupts go there.
func runOrSend(ctx context.Context, run *inspan.Conductor, inputs []event.Body) error {
	err := run.Run(ctx, inputs...)
	if _, driven := errors.AsType[*inspan.DrivenError](err); !driven || len(inputs) == 0 || slices.ContainsFunc(inputs, needsLocalRun) {
		return err
	}
	for _, input := range inputs {
		if err := run.Session.Send(ctx, input); err != nil {
			return err
		}
	}
	return nil
}

// needsLocalRun reports whether only a run here can take an input. Any run can take the others.
func needsLocalRun(b event.Body) bool {
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

// patience is how long an interrupted run may take to stop.
const patience = 5 * time.Second

// close ends the run and closes the session.
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
	late := time.AfterFunc(tellAfter, open.disconnect)
	r.sending.Wait()
	late.Stop()
	open.detach()
	r.running.Wait()
	left, err := open.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = left
	return err
}

// leftovers describes how running processes ended when the last session was closed.
func (r *runner) leftovers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}
