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
// answers and continues until the run has stopped or nobody answers. The zero value with a Session works: it
// shows nothing and leaves every question open.
//
// If one of its functions panics, Run ends with an error that names the function and has the stack. The session
// can be run again.
//
// Run must be called by one goroutine at a time. Interrupt, Detach, Again and Send may be called from any.
type Conductor struct {
	Session *Session
	// See is called with every event of the run in order, transient ones included. An error aborts the run as a
	// crash would. If nil, events are not shown.
	See func(e event.Event) error
	// Ask shows a question to someone and returns the input that answers it: an event.Decided for this call, or
	// an event.Cancelled to interrupt the run. A decision also applies to the rest of the call's Set. Nil means
	// no answer from here, and the question stays open for others. Any other input is not stored and becomes an
	// error of Run, as does an error of Ask. The context is cancelled, and the result ignored, when someone
	// else has answered (the cause is then ErrAnswered), when it is too late for an answer, and when the run is
	// interrupted. If the function is nil, nobody answers here.
	Ask func(ctx context.Context, p Pending) (event.Body, error)
	// Before returns events to append behind the inputs and answers, such as an event.Switched, which can't be
	// sent into a run. It is called each time the session is about to run. If nil, there are none.
	Before func() []event.Body
	// After is called when a run has stopped, and returns inputs that continue it, such as a higher limit with
	// an empty event.Said. If After is nil or returns nothing, Run returns. An error ends Run.
	After func(ctx context.Context, st Status) ([]event.Body, error)
	// Together asks all questions at once and while the run continues; Ask is then called from several
	// goroutines. Otherwise questions come one at a time, in order, and no events are shown meanwhile, which
	// suits a terminal.
	Together bool
	// AnswerWait is how long Run waits for an answer from elsewhere to a question that Ask left open. 0 means not
	// at all, a negative value forever.
	AnswerWait time.Duration
	// Grace is how long an interrupted run may take to stop cleanly before it is aborted. 0 means forever.
	Grace time.Duration

	mu     sync.Mutex
	at     phase
	put    *questions         // of this run
	wish   *event.Cancelled   // an interrupt that is sent once the run is in the log
	left   bool               // the front end has gone away
	latest uint64             // number of the last event that Send has appended
	broken context.CancelFunc // aborts the run
	grace  *time.Timer
}

// phase is the state of a conductor.
type phase int

const (
	unheard phase = iota // the log has nothing of this run yet: an interrupt would apply to the one before
	heard
	ended
)

// ErrOver means that the run has ended and takes no more inputs. The next Run picks them up.
var ErrOver = errors.New("the run is over")

// ErrAnswered is the cause of the cancelled context when someone else has answered a question.
var ErrAnswered = errors.New("answered elsewhere")

// Run appends the inputs and drives the session until the run has stopped, or until the only thing left is
// questions that nobody answers. Without inputs it continues where the session stands. If ctx ends first, Run
// aborts the session and returns the context's error.
func (c *Conductor) Run(ctx context.Context, inputs ...event.Body) error {
	ctx, broken := context.WithCancel(ctx)
	defer broken()
	put := newQuestions(c.Session)
	put.ask, put.together, put.patience = c.Ask, c.Together, c.AnswerWait
	c.begin(put, broken)
	defer c.end()
	for {
		late, err := c.before()
		if err != nil {
			return err
		}
		for e, err := range c.Session.drive(ctx, slices.Concat(inputs, late)...) {
			if err == nil {
				err = c.saw(ctx, e)
			}
			if err != nil {
				return err
			}
		}
		again, err := c.again(ctx)
		if err == nil && !again && c.After != nil {
			inputs, err = c.after(ctx)
			again = len(inputs) > 0
		} else {
			inputs = nil
		}
		if err != nil || !again {
			return err
		}
	}
}

func (c *Conductor) before() (inputs []event.Body, err error) {
	defer fault.Recover("Conductor.Before", nil, &err)
	if c.Before == nil {
		return nil, nil
	}
	return c.Before(), nil
}

// after returns the inputs of After that begin another run.
func (c *Conductor) after(ctx context.Context) (inputs []event.Body, err error) {
	defer fault.Recover("Conductor.After", nil, &err)
	st := c.Session.Status()
	if len(st.Waiting) > 0 || c.gone() {
		return nil, nil
	}
	inputs, err = c.After(ctx, st)
	if len(inputs) > 0 {
		c.begin(c.put, c.broken)
	}
	return inputs, err
}

func (c *Conductor) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// begin begins a run. An interrupt that was requested before the first run applies to it.
func (c *Conductor) begin(put *questions, broken context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == ended {
		c.wish, c.left = nil, false
	}
	c.at, c.put, c.broken = unheard, put, broken
	c.forgive()
}

func (c *Conductor) end() {
	c.put.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = ended
	c.forgive()
}

// forgive ends the wait for an interrupted run to stop. The caller holds the lock.
func (c *Conductor) forgive() {
	if c.grace != nil {
		c.grace.Stop()
		c.grace = nil
	}
}

// saw updates the conductor with an event of the run.
func (c *Conductor) saw(ctx context.Context, e event.Event) error {
	c.hear()
	c.put.saw(e.Body)
	if _, over := e.Body.(event.Stopped); over { // inputs still queued belong to the next run
		c.mu.Lock()
		c.forgive()
		c.mu.Unlock()
	}
	if err := c.see(e); err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case event.Raised:
		c.put.raised(ctx, Asked(Question{Raised: b, Seq: e.Seq}))
	case event.Claimed: // steps find their questions in the log, and raise them only once
		for _, q := range c.Session.Status().steps() {
			c.put.raised(ctx, Asked(q))
		}
	}
	return c.put.failed()
}

// steps returns the open questions of a program's steps.
func (st Status) steps() (own []Question) {
	for _, q := range st.Raised {
		if st.Workflow != "" && q.Child == "" {
			own = append(own, q)
		}
	}
	return own
}

func (c *Conductor) see(e event.Event) (err error) {
	defer fault.Recover("Conductor.See", nil, &err)
	if c.See == nil {
		return nil
	}
	return c.See(e)
}

// hear records that the run is in the log, and interrupts it if that was requested before.
func (c *Conductor) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == heard {
		return
	}
	c.at = heard
	if c.wish != nil {
		c.interrupt(*c.wish)
	}
}

// Interrupt stops the run cleanly: the model's partial reply is kept, calls are stopped, and questions are
// withdrawn. It does not wait; Run returns when the run has stopped. Before the first Run it applies to that
// run; after Run has returned it does nothing.
func (c *Conductor) Interrupt(why event.Cancelled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.at {
	case unheard:
		c.wish = &why
	case heard:
		c.interrupt(why)
	}
}

// Detach is for a front end that goes away. It interrupts a run that is working, and leaves one that waits for
// an answer as it is.
func (c *Conductor) Detach(why event.Cancelled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	switch {
	case c.at == unheard:
		c.wish = &why
	case c.at == heard && len(c.Session.Status().Waiting) == 0:
		c.interrupt(why)
	case c.at == heard:
		c.put.leave()
	}
}

// interrupt appends the request to stop. If the log can't be written, the run is aborted instead. The caller
// holds the lock.
func (c *Conductor) interrupt(why event.Cancelled) {
	seq, err := c.Session.send(context.Background(), why)
	if err != nil {
		c.broken()
		return
	}
	c.put.heard(seq)
	c.put.saw(why)
	if c.Grace > 0 && c.grace == nil {
		c.grace = time.AfterFunc(c.Grace, c.broken)
	}
}

// Again makes a run that waits for answers continue with the events that Before returns, such as another mode,
// which may answer open questions. The remaining questions stay open. Use it without Ask or with Together: a
// conductor that asks one at a time continues only with the next answer.
func (c *Conductor) Again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.put != nil {
		c.put.change(func() { c.put.again = true })
	}
}

// Send appends an input to the run in progress, which takes it even if it was about to end, and returns the
// number of the event. It returns ErrOver if no run is in progress.
func (c *Conductor) Send(ctx context.Context, input event.Body) (seq uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == ended {
		return 0, ErrOver
	}
	seq, err = c.Session.send(ctx, input)
	c.latest = max(c.latest, seq)
	return seq, err
}

// again settles the open questions, and reports whether the session must run again.
func (c *Conductor) again(ctx context.Context) (bool, error) {
	if over, late := c.over(); over || late {
		return late, nil
	}
	answered, err := c.put.settle(ctx, c.Session.Status())
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.left || !answered && c.latest <= c.Session.Status().Seq {
		c.at = ended
		return false, err
	}
	return true, nil
}

// over reports whether the run is finished, or whether an input came too late for it.
func (c *Conductor) over() (over, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.Session.Status()
	if late = c.latest > st.Seq; late {
		return false, true
	}
	if over = c.left || len(st.Waiting) == 0; over {
		c.at = ended
	}
	return over, false
}

// WaitingError means that a run has ended because calls wait for a decision and nothing here decides.
type WaitingError struct {
	Waiting []Pending
}

// Error names the calls, and the fields to set for deciding them.
func (e *WaitingError) Error() string {
	var calls []string
	for _, p := range e.Waiting {
		calls = append(calls, fmt.Sprintf("%s (%s)", p.Call.Name, cmp.Or(p.Reason, "it asks")))
	}
	return "the run waits for a decision on " + strings.Join(calls, ", ") + ": set Agent.Approve to decide, or allow such calls in Agent.Rules"
}
