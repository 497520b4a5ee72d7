package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
)

// Conductor drives a session for a front end. It runs the session, passes on events, asks questions, stores the
// answers and continues until the run has stopped or no one answers. Only Session is required: without more, the
// conductor shows nothing and leaves every question open.
//
// If one of its functions panics, Run returns an error with the name of the function and the stack. The session can
// be run again.
//
// One goroutine at a time may call Run. Any goroutine may call Interrupt, Detach, Rerun and Send.
type Conductor struct {
	Session *Session
	// OnEvent is called with every event of the run in order, transient ones included. An error aborts the run like a
	// crash. If OnEvent is nil, events are not shown.
	OnEvent func(e event.Event) error
	// Ask shows a question to someone and returns the input that answers it: an event.Decided for this call, or
	// an event.Cancelled to interrupt the run. A decision also applies to the rest of the call's Set. A nil input
	// leaves the question open for others. Any other input is not stored, and Run returns an error. An error of Ask
	// ends Run too.
	//
	// The context is cancelled, and the result ignored, when someone else has answered (with the cause ErrAnswered),
	// when the question times out, and when the run is interrupted. If Ask is nil, questions stay open.
	Ask func(ctx context.Context, p Pending) (event.Body, error)
	// BeforeRun returns events to append after the inputs and answers, such as an event.Switched, which Send can't
	// append. It is called each time the session is about to run. If BeforeRun is nil, there are none.
	BeforeRun func() []event.Body
	// AfterRun is called when a run has stopped, and returns inputs that continue it, such as a higher limit with
	// an empty event.Said. If AfterRun is nil or returns nothing, Run returns. An error ends Run.
	AfterRun func(ctx context.Context, st Status) ([]event.Body, error)
	// AskConcurrently asks all questions at once, while the run continues, so several goroutines call Ask. Otherwise
	// questions come one at a time, in order, and no events are shown meanwhile, which suits a terminal.
	AskConcurrently bool
	// AnswerWait is how long Run waits for an answer from elsewhere to a question that Ask left open. With 0 it does not
	// wait, with a negative value it waits forever.
	AnswerWait time.Duration
	// Grace is how long an interrupted run may take to stop cleanly before it is aborted. 0 means forever.
	Grace time.Duration

	mu             sync.Mutex
	phase          phase
	early          []*earlyInput      // inputs to send once the run is in the log
	questions      *questions         // of this run
	earlyInterrupt *event.Cancelled   // an interrupt to send once the run is in the log
	detached       bool               // the front end has gone away
	lastSent       uint64             // number of the last event that Send appended
	abort          context.CancelFunc // aborts the run
	graceTimer     *time.Timer        // aborts an interrupted run that does not stop
}

// phase is the phase of a conductor's run.
type phase int

const (
	phaseStarting phase = iota // the run and its inputs are not in the log yet: an interrupt would apply to the previous run, and a message would come before them
	phaseRunning
	phaseEnded
)

// ErrRunEnded means that the run has ended and takes no more inputs. The next Run picks them up.
var ErrRunEnded = errors.New("the run is over")

// ErrAnswered is the cause of the cancelled context when someone else has answered a question.
var ErrAnswered = errors.New("answered elsewhere")

// Run appends the inputs and drives the session until the run has stopped, or only waits for questions that no one
// answers. Without inputs it continues the session from its current state. If ctx ends first, Run aborts the run
// and returns the context's error.
func (c *Conductor) Run(ctx context.Context, inputs ...event.Body) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	questions := newQuestions(c.Session)
	questions.ask, questions.together, questions.answerWait = c.Ask, c.AskConcurrently, c.AnswerWait
	c.beginRun(questions, abort)
	defer c.endRun()
	for {
		more, err := c.callBefore()
		if err != nil {
			return err
		}
		for e, err := range c.Session.drive(ctx, slices.Concat(inputs, more)...) {
			if err == nil {
				err = c.observe(ctx, e)
			}
			if err != nil {
				return err
			}
		}
		again, err := c.mustRunAgain(ctx)
		if err == nil && !again && c.AfterRun != nil {
			inputs, err = c.callAfter(ctx)
			again = len(inputs) > 0
		} else {
			inputs = nil
		}
		if err != nil || !again {
			return err
		}
	}
}

func (c *Conductor) callBefore() (inputs []event.Body, err error) {
	defer fault.Recover("Conductor.BeforeRun", nil, &err)
	if c.BeforeRun == nil {
		return nil, nil
	}
	return c.BeforeRun(), nil
}

// callAfter returns the inputs of AfterRun. If there are any, another run begins.
func (c *Conductor) callAfter(ctx context.Context) (inputs []event.Body, err error) {
	defer fault.Recover("Conductor.AfterRun", nil, &err)
	st := c.Session.Status()
	if len(st.Waiting) > 0 || c.isDetached() {
		return nil, nil
	}
	inputs, err = c.AfterRun(ctx, st)
	if len(inputs) > 0 {
		c.beginRun(c.questions, c.abort)
	}
	return inputs, err
}

func (c *Conductor) isDetached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.detached
}

// beginRun begins a run. An interrupt that was requested before the first run applies to it.
func (c *Conductor) beginRun(questions *questions, abort context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == phaseEnded {
		c.earlyInterrupt, c.detached = nil, false
	}
	c.phase, c.questions, c.abort = phaseStarting, questions, abort
	c.stopGrace()
}

func (c *Conductor) endRun() {
	c.questions.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = phaseEnded
	for _, in := range c.early {
		in.err = ErrRunEnded
		close(in.done)
	}
	c.early = nil
	c.stopGrace()
}

// stopGrace stops the timer that would abort an interrupted run. The caller holds the lock.
func (c *Conductor) stopGrace() {
	if c.graceTimer != nil {
		c.graceTimer.Stop()
		c.graceTimer = nil
	}
}

// observe updates the conductor with an event of the run.
func (c *Conductor) observe(ctx context.Context, e event.Event) error {
	if _, claimed := e.Body.(event.Claimed); claimed {
		c.markRunning()
	}
	c.questions.withdrawSettled(e.Body)
	if _, over := e.Body.(event.Stopped); over {
		c.mu.Lock()
		c.stopGrace()
		c.mu.Unlock()
	}
	if err := c.callSee(e); err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case event.Raised:
		c.questions.askRaised(ctx, PendingOf(Question{Raised: b, Seq: e.Seq}))
	case event.Claimed: // after a restart, steps wait for their old questions and don't raise them again
		st := c.Session.Status()
		for _, q := range st.Raised {
			if st.Workflow != "" && q.Child == "" {
				c.questions.askRaised(ctx, PendingOf(q))
			}
		}
	}
	return c.questions.failed()
}

func (c *Conductor) callSee(e event.Event) (err error) {
	defer fault.Recover("Conductor.OnEvent", nil, &err)
	if c.OnEvent == nil {
		return nil
	}
	return c.OnEvent(e)
}

// markRunning records that the run is in the log, which gets the claim and the inputs in one append. Then it sends
// what came early: inputs, and an interrupt.
func (c *Conductor) markRunning() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == phaseRunning {
		return
	}
	c.phase = phaseRunning
	for _, in := range c.early {
		if in.err = in.ctx.Err(); in.err == nil {
			in.seq, in.err = c.Session.send(in.ctx, in.body)
			c.lastSent = max(c.lastSent, in.seq)
		}
		close(in.done)
	}
	c.early = nil
	if c.earlyInterrupt != nil {
		c.interrupt(*c.earlyInterrupt)
	}
}

// Interrupt stops the run cleanly: it keeps the model's partial reply, stops calls and withdraws questions. It does not
// wait; Run returns when the run has stopped. Before the first Run it applies to that run. After Run has returned it
// does nothing.
func (c *Conductor) Interrupt(why event.Cancelled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case phaseStarting:
		c.earlyInterrupt = &why
	case phaseRunning:
		c.interrupt(why)
	}
}

// Detach is for a front end that goes away. It interrupts the run unless calls wait for decisions. In that case the
// questions stay open, and Run returns.
func (c *Conductor) Detach(why event.Cancelled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detached = true
	switch {
	case c.phase == phaseStarting:
		c.earlyInterrupt = &why
	case c.phase == phaseRunning && len(c.Session.Status().Waiting) == 0:
		c.interrupt(why)
	case c.phase == phaseRunning:
		c.questions.detach()
	}
}

// interrupt appends the interrupt. If the log can't be written, it aborts the run instead. The caller holds the lock.
func (c *Conductor) interrupt(why event.Cancelled) {
	seq, err := c.Session.send(context.Background(), why)
	if err != nil {
		c.abort()
		return
	}
	c.questions.recordAnswer(seq)
	c.questions.withdrawSettled(why)
	if c.Grace > 0 && c.graceTimer == nil {
		c.graceTimer = time.AfterFunc(c.Grace, c.abort)
	}
}

// Rerun makes a run that waits for answers continue with the events that BeforeRun returns. For example, another mode may
// answer open questions. The other questions stay open. Use Rerun without Ask or with AskConcurrently: a conductor that asks
// one question at a time continues only after the next answer.
func (c *Conductor) Rerun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions != nil {
		c.questions.change(func() { c.questions.rerun = true })
	}
}

// earlyInput is an input that came before the run was in the log.
type earlyInput struct {
	ctx  context.Context //nolint:containedctx // of the Send that waits for it
	body event.Body
	seq  uint64
	err  error
	done chan struct{} // closed when seq and err are set
}

// Send appends an input to the run in progress, even if it was about to end, and returns the number of the event. While
// a run starts, and before the first Run, it waits, so that the input comes after those of Run. It returns ErrRunEnded
// if no run is in progress.
func (c *Conductor) Send(ctx context.Context, input event.Body) (seq uint64, err error) {
	c.mu.Lock()
	if c.phase == phaseStarting {
		in := &earlyInput{ctx: ctx, body: input, done: make(chan struct{})}
		c.early = append(c.early, in)
		c.mu.Unlock()
		select {
		case <-in.done:
			return in.seq, in.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	defer c.mu.Unlock()
	if c.phase == phaseEnded {
		return 0, ErrRunEnded
	}
	seq, err = c.Session.send(ctx, input)
	c.lastSent = max(c.lastSent, seq)
	return seq, err
}

// mustRunAgain settles the open questions, and reports whether the session must run again.
func (c *Conductor) mustRunAgain(ctx context.Context) (bool, error) {
	if over, late := c.isOver(); over || late {
		return late, nil
	}
	answered, err := c.questions.settle(ctx, c.Session.Status())
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.detached || !answered && c.lastSent <= c.Session.Status().Seq {
		c.phase = phaseEnded
		return false, err
	}
	return true, nil
}

// isOver reports whether the run is over, or whether an input came too late for it and needs another run.
func (c *Conductor) isOver() (over, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.Session.Status()
	if late = c.lastSent > st.Seq; late {
		return false, true
	}
	if over = c.detached || len(st.Waiting) == 0; over {
		c.phase = phaseEnded
	}
	return over, false
}

// WaitingError means that a run has ended because calls wait for a decision and Agent.Approve is nil.
type WaitingError struct {
	Waiting []Pending
}

// Error names the calls, and the fields of Agent that would decide on them.
func (e *WaitingError) Error() string {
	var calls []string
	for _, p := range e.Waiting {
		calls = append(calls, fmt.Sprintf("%s (%s)", p.Call.Name, cmp.Or(p.Reason, "it asks")))
	}
	return "the run waits for a decision on " + strings.Join(calls, ", ") + ": set Agent.Approve to decide, or allow such calls in Agent.Rules"
}
