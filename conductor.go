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

// Conductor drives a session for a front end: it runs the session, shows what happens, puts
// questions, stores the answers and goes on, until the run has stopped or nobody answers. The
// zero value with a Session works: it shows nothing and leaves every question open.
//
// A function of it that panics ends Run with an error that names it and shows the stack; the
// session can be run again.
//
// Run is for one goroutine at a time. Interrupt, Leave and Send may be called from any.
type Conductor struct {
	Session *Session
	// See is shown every event of the run, transient ones included, in order. An error breaks
	// the run off as a crash would. Nil: nobody looks.
	See func(e event.Event) error
	// Ask puts a question before somebody and returns the input that answers it: an
	// event.Decided on this call, or an event.Cancelled to interrupt the run. A decision is also on
	// the rest of its Set. Anything else is
	// not stored, and an error of Run. Nil means no answer from
	// here: the question stays open for others. The context ends when somebody else has
	// answered, when it is too late for an answer, and when the run is interrupted; what is
	// returned then does not count. In the first case its cause is ErrAnswered. An error ends
	// Run. Nil: nobody here answers.
	Ask func(ctx context.Context, p Pending) (event.Body, error)
	// Before returns what the session goes on with behind the inputs and answers, such as an
	// event.Switched, which can't be sent into a run. It is called whenever the session is
	// about to run. Nil: nothing.
	Before func() []event.Body
	// After returns what goes on behind a run that has stopped, such as a higher limit with an
	// empty event.Said, which has it go on. Nil, or nothing returned: Run returns. An error
	// ends Run.
	After func(ctx context.Context, st Status) ([]event.Body, error)
	// Together says that questions are put all at once, and while the run goes on: Ask is
	// called from several goroutines. Otherwise there is one at a time, in order, and
	// nothing is shown meanwhile, as at a terminal.
	Together bool
	// Patience is how long Run waits for an answer from elsewhere to a question that Ask has
	// not answered. 0: it does not; negative: for ever.
	Patience time.Duration
	// Grace is how long a run that was interrupted may take to stop in order before it is
	// broken off. 0: for ever.
	Grace time.Duration

	mu     sync.Mutex
	at     phase
	put    *questions         // of this run
	wish   *event.Cancelled   // the interrupt that waits for the run to be in the log
	left   bool               // nobody is there any more
	latest uint64             // the last event that Send has appended
	broken context.CancelFunc // breaks the run off
	grace  *time.Timer
}

// phase is what a conductor is at.
type phase int

const (
	unheard phase = iota // nothing of this run is in the log: an interrupt would be of the one before
	heard
	ended
)

// ErrOver says that nothing can be sent into a run that is over. The next Run takes it.
var ErrOver = errors.New("the run is over")

// ErrAnswered is why a question is taken back that somebody else has answered.
var ErrAnswered = errors.New("answered elsewhere")

// Run appends the inputs and drives the session until the run has stopped, or until only
// questions are left that nobody answers. Without inputs it goes on where the session
// stands. If the end of ctx breaks it off, that is the error.
func (c *Conductor) Run(ctx context.Context, inputs ...event.Body) error {
	ctx, broken := context.WithCancel(ctx)
	defer broken()
	put := newQuestions(c.Session)
	put.ask, put.together, put.patience = c.Ask, c.Together, c.Patience
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

// after is what goes on behind a run that has stopped, which then is another run.
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

// begin begins a run. An interrupt that was wanted before the first one counts for it.
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

// forgive ends the wait for a run that was interrupted. The lock is held.
func (c *Conductor) forgive() {
	if c.grace != nil {
		c.grace.Stop()
		c.grace = nil
	}
}

// saw takes in an event of the run.
func (c *Conductor) saw(ctx context.Context, e event.Event) error {
	c.hear()
	c.put.saw(e.Body)
	if _, over := e.Body.(event.Stopped); over { // what is queued is another run
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
	case event.Claimed: // steps find their questions in the log, and raise them once
		for _, q := range c.Session.Status().steps() {
			c.put.raised(ctx, Asked(q))
		}
	}
	return c.put.failed()
}

// steps are the open questions of the steps of a program.
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

// hear notes that the run is in the log, and interrupts it if that was wanted before.
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

// Interrupt stops the run in order: what the model has said is kept, calls are stopped,
// questions are taken back. It does not wait; Run returns when it is done. Before the first
// Run it counts for that; once Run has returned it does nothing.
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

// Leave is for a front end that goes away: a run that goes on is interrupted, and one that
// waits for an answer is left waiting.
func (c *Conductor) Leave(why event.Cancelled) {
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

// interrupt says in the log that the run is to stop. A log that takes nothing more can't be
// told, so the run is broken off. The lock is held.
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

// Again has a run that waits for answers go on with what Before returns, such as another mode,
// which answers what it lets run. Questions that are left stay open. It is for runs without an
// Ask, or Together: one that asks in turn goes on with the next answer.
func (c *Conductor) Again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.put != nil {
		c.put.change(func() { c.put.again = true })
	}
}

// Send appends an input to the run that goes on, which takes it up even if it was about to
// end, and returns its number in the log. ErrOver says that no run goes on.
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

// again has the calls decided on that wait, and reports whether the session is to run again.
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

// over reports whether there is nothing more to do, or whether something came too late for
// the run that has ended.
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

// WaitingError says that a run has ended because calls wait for somebody's decision, and nothing here decides.
type WaitingError struct {
	Waiting []Pending
}

// Error names the calls, and the fields that decide.
func (e *WaitingError) Error() string {
	var calls []string
	for _, p := range e.Waiting {
		calls = append(calls, fmt.Sprintf("%s (%s)", p.Call.Name, cmp.Or(p.Reason, "it asks")))
	}
	return "the run waits for a decision on " + strings.Join(calls, ", ") + ": set Agent.Approve to decide, or allow such calls in Agent.Rules"
}
