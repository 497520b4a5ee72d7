package inspan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
)

// Steps performs steps on a session. Safe for concurrent use, until the function that got it from
// [Session.Perform] returns.
type Steps struct {
	driver    *driver
	ctx       context.Context // of Perform
	open      sync.Mutex      // held while the log is written or the state is read
	closed    bool            // guarded by open
	performed sync.WaitGroup  // those under way
}

// close waits for the steps under way, and lets none begin any more.
func (st *Steps) close() {
	st.open.Lock()
	st.closed = true
	st.open.Unlock()
	st.performed.Wait()
}

// ErrStepChanged says that a step of the same id, which the session knows, is another step.
var ErrStepChanged = errors.New("the session has performed another step of this name")

// Perform drives the session by a function in the place of a model: what it does, it does in steps,
// each of which is in the log and is performed once, whatever process dies in between. It needs
// no model. Like [Session.Run] it takes the session's lease, and yields nothing: whoever wants to
// see what happens follows [Session.Events].
//
// The context of do ends with ctx, which is like a crash: a step under way has no outcome. It also
// ends when somebody sends an event.Cancelled: then a step that fails for that has been cancelled,
// for good. Perform waits for steps that do has left behind, whose contexts end. The error is that of
// do, or says that the session can't be driven.
func (s *Session) Perform(ctx context.Context, do func(ctx context.Context, steps *Steps) error) (err error) {
	if !s.driving.TryLock() {
		return ErrBusy
	}
	defer s.driving.Unlock()
	defer caught("the steps", nil, &err)
	d := newDriver(s, func(event.Event, error) bool { return true })
	release, err := d.lease(ctx)
	defer func() { err = errors.Join(err, release()) }()
	if err != nil {
		return err
	}
	if err := d.begin(ctx, nil); err != nil {
		return err
	}
	watched, done := d.interruptible(ctx)
	steps := &Steps{driver: d, ctx: watched}
	defer func() {
		done() // what is still performed is stopped
		steps.close()
	}()
	return do(watched, steps)
}

// Do performs a step, and returns how it ended. What it was that do brings counts: its Step is
// filled in, an empty Outcome is ok, or failed if there is an error, which is data like that of a
// tool.
//
// A step that has ended, in whatever process, is not performed again: its end is returned. One
// that was begun by a process which died is performed again if it says so, and else ends as
// event.OutcomeUnknown. The error says that nothing can be stored any more, that the step was
// stopped with the program, or wraps [ErrStepChanged]: the session knows a step of this id that
// does another thing, or works on other input.
func (st *Steps) Do(ctx context.Context, step event.StepStarted, do func(ctx context.Context) (event.StepEnded, error)) (event.StepEnded, error) {
	end, perform, err := st.begin(ctx, step)
	if err != nil || !perform {
		return end, err
	}
	defer st.performed.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(st.ctx, func() { cancel(context.Cause(st.ctx)) })()
	began := time.Now()
	end, failed := st.run(ctx, do)
	end.Step, end.Millis = step.Step, time.Since(began).Milliseconds()
	if failed == nil {
		failed = whole(&end)
	}
	switch over := context.Cause(st.ctx); {
	case failed == nil:
	case errors.Is(over, errInterrupted):
		end.Outcome, end.Class, end.Error = event.OutcomeCancelled, event.ErrorNone, failed.Error()
	case over != nil:
		return end, over // as if the program had ended
	default:
		end.Outcome, end.Class, end.Error = event.OutcomeFailed, classOf(failed, nil), failed.Error()
	}
	return end, st.record(context.WithoutCancel(ctx), end)
}

// whole fills in the outcome of a step, and returns why the log can't take what it brings.
func whole(end *event.StepEnded) error {
	if end.Outcome == "" {
		end.Outcome = event.OutcomeOK
	}
	switch end.Outcome {
	case event.OutcomeOK, event.OutcomeFailed, event.OutcomeCancelled, event.OutcomeUnknown:
	default:
		return fmt.Errorf("the outcome of a step can't be %q", end.Outcome)
	}
	if len(end.Result) > 0 && !json.Valid(end.Result) {
		end.Result = nil
		return errors.New("the result of the step is not JSON")
	}
	return nil
}

// run performs a step. A panic is a failure of it.
func (st *Steps) run(ctx context.Context, do func(ctx context.Context) (event.StepEnded, error)) (end event.StepEnded, err error) {
	defer caught("the step", nil, &err)
	return do(ctx)
}

// begin stores the intent to perform a step, or returns how it has ended.
func (st *Steps) begin(ctx context.Context, step event.StepStarted) (end event.StepEnded, perform bool, err error) {
	st.open.Lock()
	defer st.open.Unlock()
	switch {
	case st.closed:
		return end, false, errors.New("the steps of the session are over")
	case step.Step == "":
		return end, false, errors.New("a step needs an id")
	case len(step.Input) > 0 && !json.Valid(step.Input):
		return end, false, fmt.Errorf("the input of step %s is not JSON", step.Step)
	}
	if err := st.driver.catchUp(ctx); err != nil {
		return end, false, err
	}
	known, begun := st.driver.state.Steps[step.Step]
	switch {
	case begun && !st.same(known, step):
		return end, false, fmt.Errorf("%w: %s did %s on %s", ErrStepChanged, step.Step, known.Does, known.Input)
	case begun && known.Ended != nil:
		return *known.Ended, false, nil
	case begun && !known.Lost:
		return end, false, fmt.Errorf("step %s is being performed", step.Step)
	case begun && !known.Again:
		end = event.StepEnded{
			Step: step.Step, Outcome: event.OutcomeUnknown, Error: "the program that performed it ended; what it did is not known",
		}
		return end, false, st.driver.record(ctx, end)
	}
	if err := st.driver.record(ctx, step); err != nil {
		return end, false, err
	}
	st.performed.Add(1)
	return end, true, nil
}

// same reports whether a step is the one that the log has.
func (st *Steps) same(known loop.Step, step event.StepStarted) bool {
	input := st.driver.redacted(step).(event.StepStarted).Input // as it was stored
	return known.Does == step.Does && (len(known.Input)+len(input) == 0 || sameJSON(known.Input, input))
}

func (st *Steps) record(ctx context.Context, body event.Body) error {
	st.open.Lock()
	defer st.open.Unlock()
	return st.driver.record(ctx, body)
}
