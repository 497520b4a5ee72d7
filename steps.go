package inspan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Steps performs the steps of a session. It is safe for concurrent use, until the function that received it
// from [Session.Perform] returns.
type Steps struct {
	driver  *drive.Driver
	ctx     context.Context // the context of Perform
	limit   *keep.Deadline  // deadline of the run
	mu      sync.Mutex      // guards the driver and the fields below
	closed  bool
	order   stepOrder
	running sync.WaitGroup // steps in progress
}

// stepOrder records when steps began and in which order they ended. Few programs need it, so it is read from the log on
// demand instead of being part of the state.
type stepOrder struct {
	seq     uint64 // number of the last event read
	parents map[string]string
	begun   map[string]time.Time
	ended   map[string][]string // ended steps, by the step that they are part of
}

// catchUp reads the new events of the log.
func (o *stepOrder) catchUp(ctx context.Context, log event.Log) error {
	if o.begun == nil {
		o.parents, o.begun, o.ended = map[string]string{}, map[string]time.Time{}, map[string][]string{}
	}
	for e, err := range log.Read(ctx, o.seq) {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case event.StepStarted:
			if _, known := o.begun[b.Step]; !known {
				o.begun[b.Step], o.parents[b.Step] = e.Time, b.Parent
			}
		case event.StepEnded:
			parent := o.parents[b.Step]
			o.ended[parent] = append(o.ended[parent], b.Step)
		}
		o.seq = e.Seq
	}
	return nil
}

// close prevents new steps, and waits for the steps in progress.
func (st *Steps) close() {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	st.running.Wait()
}

// ErrStepChanged means that the session knows a different step with the same id.
var ErrStepChanged = errors.New("the session has performed another step of this name")

// ErrOpenStep means that a step has no outcome yet, so the next process that runs the session must deal with it. A step
// may return an error that wraps it.
var ErrOpenStep = errors.New("the step stays open")

// ErrUnanswered means that a step asked a question, and the agent is Unattended. The question stays open. It wraps
// [ErrOpenStep].
var ErrUnanswered = fmt.Errorf("%w: its question waits for an answer", ErrOpenStep)

// ErrPaused means that no step can begin while the run waits for a provider's quota to renew. It wraps [ErrOpenStep].
var ErrPaused = fmt.Errorf("%w: the run is paused", ErrOpenStep)

// StopError ends a run of steps with a reason other than done or failed. The run can continue later.
type StopError struct{ Stopped event.Stopped }

// Error returns the reason and the detail.
func (e *StopError) Error() string { return stoppedError(&e.Stopped).Error() }

// Unwrap returns [ErrOpenStep].
func (e *StopError) Unwrap() error { return ErrOpenStep }

// Perform drives the session with a function instead of a model. The function does its work in steps. Each step is
// stored in the log and performed once, even if processes die in between. Like [Session.Run], Perform takes inputs
// and the session's lease, but it yields nothing. To see the progress, follow [Session.Events], or set the function as
// the agent's Program and run the session. No model is needed.
//
// When do returns, the run stops, if there is one. Its reason is done, failed if do returns an error, the reason of a
// [StopError], or a limit or interrupt. The run does not stop if a step stays open, for example because of an
// unanswered question, or if ctx ends.
//
// If ctx ends, the context of do ends too. That is like a crash: a step in progress has no outcome. The context of do
// also ends with an event.Cancelled or when the time of the run is used up. A step that fails because of that stays
// open if it may be performed again; otherwise its outcome is cancelled. Perform cancels steps that do has left
// running, and waits for them. It returns the error of do, or why the session can't be driven.
func (s *Session) Perform(ctx context.Context, do func(ctx context.Context, steps *Steps) error, inputs ...event.Body) (err error) {
	return s.perform(ctx, do, func(event.Event, error) bool { return true }, inputs)
}

// perform is like [Session.Perform], and passes each event to yield, from one goroutine at a time.
func (s *Session) perform(ctx context.Context, do func(context.Context, *Steps) error, yield func(event.Event, error) bool,
	inputs []event.Body,
) (err error) {
	defer fault.Recover("the steps", nil, &err)
	release, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := s.driver.Begin(ctx, s.prepareInputs(ctx, inputs), yield); err != nil {
		return err
	}
	for again := true; again && err == nil; { // inputs still queued begin another run
		again, err = performOnce(ctx, s.driver, do)
	}
	return err
}

// performOnce performs a run, and reports whether another began as it ended. It does not call do for a run that was
// interrupted earlier, for example by a fork; it only stops such a run.
func performOnce(ctx context.Context, d *drive.Driver, do func(context.Context, *Steps) error) (again bool, err error) {
	var stopped bool
	state := d.State()
	if next, over := state.Next().(loop.Stop); over && state.Run.Active {
		stopped, err = true, d.Record(ctx, next.Stopped)
	} else {
		stopped, err = stopSteps(ctx, d, runSteps(ctx, d, do))
	}
	return stopped && state.Run.Active, err
}

// runSteps calls do, which performs its steps.
func runSteps(ctx context.Context, d *drive.Driver, do func(context.Context, *Steps) error) error {
	watched, done := d.Interruptible(ctx)
	watched, stop := context.WithCancelCause(watched)
	steps := &Steps{driver: d, ctx: watched, limit: &keep.Deadline{Do: func() { d.TimeUp(ctx) }}}
	steps.limit.Set(d.Deadline())
	var following sync.WaitGroup
	following.Go(func() {
		if err := steps.follow(watched); err != nil {
			stop(err)
		}
	})
	defer func() {
		stop(nil)
		done() // stops the steps in progress
		following.Wait()
		steps.close()
	}()
	return do(watched, steps)
}

// follow picks up events that others append, such as questions of children, until ctx ends.
func (st *Steps) follow(ctx context.Context) (err error) {
	defer fault.Recover("the log", nil, &err)
	w, ok := st.driver.Log().(event.Waiter)
	for ok && err == nil {
		st.mu.Lock()
		seq := st.driver.State().Seq
		st.mu.Unlock()
		if w.Wait(ctx, seq) != nil {
			return nil // ctx has ended, or the log is damaged, which the next step will report
		}
		st.mu.Lock()
		if !st.closed {
			err = st.driver.CatchUp(ctx)
			st.limit.Set(st.driver.Deadline())
		}
		st.mu.Unlock()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stopSteps stops the run after do has returned, unless a step stays open. Failed is the error of do.
func stopSteps(ctx context.Context, d *drive.Driver, failed error) (stopped bool, err error) {
	state := d.State()
	if caught := d.CatchUp(context.WithoutCancel(ctx)); caught != nil || ctx.Err() != nil || !state.Run.Active {
		return false, errors.Join(failed, caught)
	}
	var stop *StopError
	end := event.Stopped{Reason: event.ReasonDone}
	switch next, over := state.Next().(loop.Stop); {
	case failed == nil:
	case over:
		end, failed = next.Stopped, nil
	case errors.As(failed, &stop):
		end, failed = stop.Stopped, nil
	case errors.Is(failed, ErrOpenStep):
		return false, failed
	case failed != nil:
		end = event.Stopped{Reason: event.ReasonFailed, Detail: failed.Error()}
	}
	err = d.Record(context.WithoutCancel(ctx), end)
	return err == nil, errors.Join(failed, err)
}

// yieldSteps performs the session and yields its events, like [Session.Run]. Steps don't wait for the consumer.
func (s *Session) yieldSteps(ctx context.Context, do func(context.Context, *Steps) error, inputs []event.Body) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		events := backlog{changed: make(chan struct{}, 1)}
		var performing sync.WaitGroup
		defer performing.Wait()
		defer stop()
		performing.Go(func() { events.close(s.perform(ctx, do, events.add, inputs)) })
		for {
			taken, over, err := events.take()
			for _, e := range taken {
				if !yield(e, nil) {
					return
				}
			}
			switch {
			case over && err != nil && !errors.Is(err, ErrUnanswered):
				yield(event.Event{}, err)
				return
			case over:
				return
			}
			<-events.changed
		}
	}
}

// backlog holds events that the consumer has not taken yet.
type backlog struct {
	changed chan struct{} // receives a value when a field below has changed
	mu      sync.Mutex
	list    []event.Event
	ended   bool
	err     error
}

func (b *backlog) add(e event.Event, _ error) bool {
	b.change(func() { b.list = append(b.list, e) })
	return true
}

func (b *backlog) close(err error) { b.change(func() { b.ended, b.err = true, err }) }

func (b *backlog) change(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default: // a signal is already pending
	}
}

// take returns the waiting events. Over means that no more will come.
func (b *backlog) take() (taken []event.Event, over bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, b.list = b.list, nil
	return taken, b.ended, b.err
}

// Do performs a step and returns how it ended. It stores the result of do, with Step filled in. An empty Outcome means
// ok. If do returns an error, the step failed; the error is data, like the error of a tool.
//
// A step that has ended, in this process or another, is not performed again: Do returns its stored end. A step whose
// process died is performed again if Again was set then or is set now; otherwise its outcome is unknown. No step
// begins once a limit of the session is reached. While the run is paused, only event.Workflow begins.
//
// Do returns an error if the log can't be written or if the program stops. The error wraps [ErrOpenStep] if the step
// stays open, and [ErrStepChanged] if the session has a step with this id but other work or input.
func (st *Steps) Do(ctx context.Context, step event.StepStarted,
	do func(ctx context.Context) (event.StepEnded, error),
) (event.StepEnded, error) {
	end, perform, err := st.begin(ctx, step)
	if err != nil || !perform {
		return end, err
	}
	defer st.running.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(st.ctx, func() { cancel(context.Cause(st.ctx)) })()
	began := time.Now()
	end, failed := st.run(ctx, do)
	end.Step, end.Millis = step.Step, time.Since(began).Milliseconds()
	if failed == nil {
		failed = checkEnd(&end)
	}
	switch over := context.Cause(st.ctx); {
	case failed == nil:
	case errors.Is(failed, ErrOpenStep), keep.DiskFault(failed), step.Again && over != nil:
		return end, cmp.Or(over, failed) // a full disk is not an outcome either
	case errors.Is(over, fault.ErrInterrupted):
		end.Outcome, end.Class, end.Error = event.OutcomeCancelled, fault.ErrorNone, failed.Error()
	case over != nil:
		return end, over // as if the program had ended
	default:
		end.Outcome, end.Class, end.Error = event.OutcomeFailed, fault.ClassOf(failed, nil), failed.Error()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return end, st.record(context.WithoutCancel(ctx), end)
}

// checkEnd fills in the outcome of a step, and returns an error if its end can't be stored.
func checkEnd(end *event.StepEnded) error {
	if end.Outcome == "" {
		end.Outcome = event.OutcomeOK
	}
	switch end.Outcome {
	case event.OutcomeOK, event.OutcomeFailed, event.OutcomeSkipped, event.OutcomeCancelled, event.OutcomeUnknown:
	default:
		return fmt.Errorf("the outcome of a step can't be %q", end.Outcome)
	}
	if len(end.Result) > 0 && !json.Valid(end.Result) {
		end.Result = nil
		return errors.New("the result of the step is not JSON")
	}
	return nil
}

// run performs a step. A panic makes it fail.
func (st *Steps) run(ctx context.Context, do func(ctx context.Context) (event.StepEnded, error)) (end event.StepEnded, err error) {
	defer fault.Recover("the step", nil, &err)
	return do(ctx)
}

// begin stores that a step starts, or returns the end of a step that need not be performed.
func (st *Steps) begin(ctx context.Context, step event.StepStarted) (end event.StepEnded, perform bool, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.closed:
		return end, false, errors.New("the steps of the session are over")
	case step.Step == "":
		return end, false, errors.New("a step needs an id")
	case len(step.Input) > 0 && !json.Valid(step.Input):
		return end, false, fmt.Errorf("the input of step %s is not JSON", step.Step)
	}
	if err := st.driver.CatchUp(ctx); err != nil {
		return end, false, err
	}
	known, begun := st.driver.State().Steps[step.Step]
	switch {
	case begun && !st.isSameStep(known, step):
		return end, false, fmt.Errorf("%w: %s did %s on %s", ErrStepChanged, step.Step, known.Does, known.Input)
	case begun && known.Ended != nil:
		return *known.Ended, false, nil
	case begun && !known.Lost:
		return end, false, fmt.Errorf("step %s is being performed", step.Step)
	case begun && !known.Again && !step.Again:
		end = event.StepEnded{
			Step: step.Step, Outcome: event.OutcomeUnknown, Error: "the program that performed it ended, so its result is not known",
		}
		return end, false, st.driver.Record(ctx, end)
	}
	err = st.driver.Persist(ctx, func() ([]event.Body, error) { // checks again if the log has grown: a pause may have come
		state := st.driver.State()
		if p := state.Run.Paused; p != nil && time.Now().Before(p.Until) && step.Step != event.Workflow {
			return nil, ErrPaused // the workflow itself begins, and its steps wait
		}
		if reason, detail := state.Spent(); reason != "" {
			return nil, &StopError{event.Stopped{Reason: reason, Detail: detail}}
		}
		if begun && step.Step == event.Workflow { // it started with the session
			return nil, nil
		}
		return []event.Body{step}, nil
	})
	st.limit.Set(st.driver.Deadline())
	if err != nil {
		return end, false, err
	}
	st.running.Add(1)
	return end, true, nil
}

// isSameStep reports whether a step has the same work and input as the known one.
func (st *Steps) isSameStep(known loop.Step, step event.StepStarted) bool {
	input := st.driver.Secrets().Body(step).(event.StepStarted).Input // as it was stored
	return known.Does == step.Does && (len(known.Input)+len(input) == 0 || drive.SameJSON(known.Input, input))
}

// Progress shows a line of progress to observers, without storing it.
func (st *Steps) Progress(text string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		_ = st.driver.Show(event.Progress{Text: text}) // if the consumer is gone, the next event reports it
	}
}

// Untrusted reports whether the session holds text by strangers.
func (st *Steps) Untrusted() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.State().Untrusted
}

// Step is the state of a step: its start and event number, its end if it has ended, and whether its process died.
type Step = loop.Step

// Step returns the step with this id. If the session has none, the Step field of the result is empty.
func (st *Steps) Step(id string) Step {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.State().Steps[id]
}

// EndedSteps lists the ended steps that are part of parent, in the order of the log. It is for programs that depend on which
// step ends first: another process that continues the program gets the same order.
func (st *Steps) EndedSteps(parent string) (ids []string, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	err = st.order.catchUp(st.ctx, st.driver.Log())
	return st.order.ended[parent], err
}

// StartTime returns when a step first began.
func (st *Steps) StartTime(id string) (time.Time, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	err := st.order.catchUp(st.ctx, st.driver.Log())
	return st.order.begun[id], err
}

// Ask asks a question of a step in progress and waits for the answer. It sets the question's Call to the step, and also
// its ID if that is empty. If the log already holds a question with this ID, Ask does not ask again, and returns the
// answer if the log has one. If the agent is Unattended, Ask stores the question and returns [ErrUnanswered].
func (st *Steps) Ask(ctx context.Context, step string, question event.Raised) (event.Decided, error) {
	question.Call, question.ID, question.Child = step, cmp.Or(question.ID, step), ""
	seq, decided, err := st.driver.FindAnswer(ctx, question)
	switch {
	case err != nil:
		return event.Decided{}, err
	case decided != nil:
		return *decided, nil
	case seq == 0:
		if seq, err = st.raise(ctx, question); err != nil {
			return event.Decided{}, err
		}
	}
	st.mu.Lock()
	unattended := st.driver.State().Unattended
	st.mu.Unlock()
	if unattended {
		return event.Decided{}, ErrUnanswered
	}
	return st.driver.AwaitAnswer(ctx, seq, question)
}

// Judge returns the verdict of mode, rules and sensitive places on a call of a step. The call may also reach hosts. A
// tool that the session lacks counts as external. Steps act for the person who started them, so calls that only the
// mode would ask about are allowed. Judges are not asked.
func (st *Steps) Judge(ctx context.Context, call llm.Call, hosts []string) tool.Verdict {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.JudgeStep(ctx, call, hosts)
}

// raise stores a question, and returns its event number.
func (st *Steps) raise(ctx context.Context, question event.Raised) (seq uint64, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.record(ctx, question); err != nil {
		return 0, err
	}
	for _, r := range st.driver.State().Raised {
		if r.ID == question.ID {
			return r.Seq, nil
		}
	}
	return 0, fmt.Errorf("the question of %s was not asked: no such step is in progress", question.Call)
}

// record stores an event. The caller holds the lock.
func (st *Steps) record(ctx context.Context, bodies ...event.Body) error {
	err := st.driver.Record(ctx, bodies...)
	st.limit.Set(st.driver.Deadline())
	return err
}
