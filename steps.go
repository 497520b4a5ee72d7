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

// Steps performs steps on a session. Safe for concurrent use, until the function that got it from
// [Session.Perform] returns.
type Steps struct {
	driver  *drive.Driver
	ctx     context.Context // of Perform
	limit   *keep.Deadline  // of the run
	mu      sync.Mutex      // guards the driver, and the fields below
	closed  bool
	order   stepOrder
	running sync.WaitGroup // steps in progress
}

// stepOrder is when steps were begun, and in which order they have ended. It is no part of the state,
// as only some programs want it: it is read from the log when they ask.
type stepOrder struct {
	seq     uint64 // of the last event that it knows
	parents map[string]string
	begun   map[string]time.Time
	ended   map[string][]string // by what they are a part of
}

// catchUp takes in what the log has by now.
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
			if _, again := o.begun[b.Step]; !again {
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

// close waits for the steps in progress, and lets no other begin.
func (st *Steps) close() {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	st.running.Wait()
}

// ErrStepChanged says that a step of the same id, which the session knows, is another step.
var ErrStepChanged = errors.New("the session has performed another step of this name")

// ErrOpenStep says that a step has no outcome yet: whoever performs the session next finds it so. What
// a step returns can wrap it.
var ErrOpenStep = errors.New("the step stays open")

// ErrUnanswered says that a question of a step stays open, as nobody is here to answer it. It is an
// [ErrOpenStep].
var ErrUnanswered = fmt.Errorf("%w: its question waits for an answer", ErrOpenStep)

// ErrPaused says that no step begins, as the run is paused until a vendor's quota is there again. It is
// an [ErrOpenStep].
var ErrPaused = fmt.Errorf("%w: the run is paused", ErrOpenStep)

// StopError ends a run that performs steps with a reason other than done or failed. The run can
// go on later.
type StopError struct{ Stopped event.Stopped }

// Error says why.
func (e *StopError) Error() string { return stoppedError(&e.Stopped).Error() }

// Unwrap returns [ErrOpenStep].
func (e *StopError) Unwrap() error { return ErrOpenStep }

// Perform drives the session by a function in the place of a model: what it does, it does in steps,
// each of which is in the log and is performed once, whatever process dies in between. It needs
// no model. Like [Session.Run] it takes the inputs and the session's lease, but yields nothing:
// whoever wants to see what happens follows [Session.Events], or makes it the agent's Program and
// runs the session.
//
// Where an input begins a run, or one had begun before, that run ends with do: as done, as failed
// with its error, with the reason of a [StopError], or as its limits and an event.Cancelled say. It
// goes on where a step stays open as a question of it does, and where ctx ends.
//
// The context of do ends with ctx, which is like a crash: a step under way has no outcome. It also
// ends when somebody sends an event.Cancelled, and when the time of the run is used up: then a
// step that fails for that stays open if it may be performed again, and else has been cancelled,
// for good. Perform waits for steps that do has left behind, whose contexts end. The error is that of
// do, or says that the session can't be driven.
func (s *Session) Perform(ctx context.Context, do func(ctx context.Context, steps *Steps) error, inputs ...event.Body) (err error) {
	return s.perform(ctx, do, func(event.Event, error) bool { return true }, inputs)
}

// perform is [Session.Perform], and shows what happens. Yield is called by one goroutine at a time.
func (s *Session) perform(ctx context.Context, do func(context.Context, *Steps) error, yield func(event.Event, error) bool,
	inputs []event.Body,
) (err error) {
	defer fault.Recover("the steps", nil, &err)
	release, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := s.driver.Begin(ctx, s.prepared(ctx, inputs), yield); err != nil {
		return err
	}
	for again := true; again && err == nil; { // what was queued is another run
		again, err = performOnce(ctx, s.driver, do)
	}
	return err
}

// performOnce performs a run, and reports whether another one has begun with its end. A run that was interrupted
// before it was taken up, as by a fork, only ends.
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

// runSteps has do perform its steps.
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
		done() // steps in progress are stopped
		following.Wait()
		steps.close()
	}()
	return do(watched, steps)
}

// follow takes in what others append, such as the questions of children, until ctx ends.
func (st *Steps) follow(ctx context.Context) (err error) {
	defer fault.Recover("the log", nil, &err)
	w, ok := st.driver.Log().(event.Waiter)
	for ok && err == nil {
		st.mu.Lock()
		seq := st.driver.State().Seq
		st.mu.Unlock()
		if w.Wait(ctx, seq) != nil {
			return nil // ctx has ended, or the log is damaged, which the next step finds
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

// stopSteps ends the run that steps were performed in, if there is one and it is over.
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

// performing is what [Session.Perform] does, told as [Session.Run] tells it. Steps don't wait for the consumer.
func (s *Session) performing(ctx context.Context, do func(context.Context, *Steps) error, inputs []event.Body) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		events := backlog{news: make(chan struct{}, 1)}
		var performing sync.WaitGroup
		defer performing.Wait()
		defer stop()
		performing.Go(func() { events.close(s.perform(ctx, do, events.add, inputs)) })
		for {
			some, over, err := events.take()
			for _, e := range some {
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
			<-events.news
		}
	}
}

// backlog holds events that nobody has looked at yet.
type backlog struct {
	news  chan struct{} // has one when something below has changed
	mu    sync.Mutex
	list  []event.Event
	ended bool
	err   error
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
	case b.news <- struct{}{}:
	default: // it is known already
	}
}

// take takes what there is. Over says that no more comes.
func (b *backlog) take() (some []event.Event, over bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	some, b.list = b.list, nil
	return some, b.ended, b.err
}

// Do performs a step, and returns how it ended. What it was that do brings counts: its Step is
// filled in, an empty Outcome is ok, or failed if there is an error, which is data like that of a
// tool.
//
// A step that has ended, in whatever process, is not performed again: its end is returned. One
// that was begun by a process which died is performed again if it says so, now or when it was begun,
// and else ends as event.OutcomeUnknown. No step begins once a limit of the session is reached, or,
// but for event.Workflow, while its run is paused. The error says that nothing can be stored any
// more, that the step was stopped with the program, or wraps [ErrOpenStep] or [ErrStepChanged]: the
// session knows a step of this id that does another thing, or works on other input.
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
		failed = whole(&end)
	}
	switch over := context.Cause(st.ctx); {
	case failed == nil:
	case errors.Is(failed, ErrOpenStep), keep.DiskFault(failed), step.Again && over != nil:
		return end, cmp.Or(over, failed) // a full disk is no outcome either
	case errors.Is(over, fault.ErrInterrupted):
		end.Outcome, end.Class, end.Error = event.OutcomeCancelled, event.ErrorNone, failed.Error()
	case over != nil:
		return end, over // as if the program had ended
	default:
		end.Outcome, end.Class, end.Error = event.OutcomeFailed, fault.ClassOf(failed, nil), failed.Error()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return end, st.record(context.WithoutCancel(ctx), end)
}

// whole fills in the outcome of a step, and returns why the log can't take what it brings.
func whole(end *event.StepEnded) error {
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

// run performs a step. A panic is a failure of it.
func (st *Steps) run(ctx context.Context, do func(ctx context.Context) (event.StepEnded, error)) (end event.StepEnded, err error) {
	defer fault.Recover("the step", nil, &err)
	return do(ctx)
}

// begin stores the intent to perform a step, or returns how it has ended.
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
	case begun && !st.same(known, step):
		return end, false, fmt.Errorf("%w: %s did %s on %s", ErrStepChanged, step.Step, known.Does, known.Input)
	case begun && known.Ended != nil:
		return *known.Ended, false, nil
	case begun && !known.Lost:
		return end, false, fmt.Errorf("step %s is being performed", step.Step)
	case begun && !known.Again && !step.Again:
		end = event.StepEnded{
			Step: step.Step, Outcome: event.OutcomeUnknown, Error: "the program that performed it ended; what it did is not known",
		}
		return end, false, st.driver.Record(ctx, end)
	}
	err = st.driver.Persist(ctx, func() ([]event.Body, error) { // again if the log has grown: a pause may come at the last moment
		state := st.driver.State()
		if p := state.Run.Paused; p != nil && time.Now().Before(p.Until) && step.Step != event.Workflow {
			return nil, ErrPaused // a whole workflow goes on: its steps wait, and can say for how long
		}
		if reason, detail := state.Spent(); reason != "" {
			return nil, &StopError{event.Stopped{Reason: reason, Detail: detail}}
		}
		if begun && step.Step == event.Workflow { // which begins once, with the session
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

// same reports whether a step is the one that the log has.
func (st *Steps) same(known loop.Step, step event.StepStarted) bool {
	input := st.driver.Secrets().Body(step).(event.StepStarted).Input // as it was stored
	return known.Does == step.Does && (len(known.Input)+len(input) == 0 || drive.SameJSON(known.Input, input))
}

// Progress shows whoever looks what goes on. It is not stored.
func (st *Steps) Progress(text string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		_ = st.driver.Show(event.Progress{Text: text}) // nobody looks, which the next event tells
	}
}

// Untrusted reports whether the session holds text that nobody here has written.
func (st *Steps) Untrusted() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.State().Untrusted
}

// Step is a step that was begun: as it was last, with the number of that event, how it has ended if
// it has, and whether whoever performed it has gone.
type Step = loop.Step

// Begun returns a step of the session. There is none of that id if its own is empty.
func (st *Steps) Begun(id string) Step {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.State().Steps[id]
}

// Ended lists the steps that have ended which are a part of one, in the order of the log: for
// programs that decide by what ends first, and do so again when another process goes on with them.
func (st *Steps) Ended(parent string) (ids []string, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	err = st.order.catchUp(st.ctx, st.driver.Log())
	return st.order.ended[parent], err
}

// Since is when a step was begun, the first time.
func (st *Steps) Since(id string) (time.Time, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	err := st.order.catchUp(st.ctx, st.driver.Log())
	return st.order.begun[id], err
}

// Ask puts a question of a step under way before whoever answers for the session, and waits for the
// answer. Its Call is the step, and so is its ID if it has none. One that the log holds, by its ID, is
// not put again, and if it was answered, by whatever process, that is the answer.
// If nobody can answer, as the agent is Unattended, the question is in the log all the same and the
// error is [ErrUnanswered].
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

// Judge says what the mode, the rules and the sensitive places say of a call of a step, in the form of
// a tool's, which reaches the hosts too. A tool that the session lacks could do anything. The steps
// speak for the person who has begun them: where only the mode asks, that is allowed. Judges are not
// asked.
func (st *Steps) Judge(ctx context.Context, call llm.Call, hosts []string) tool.Verdict {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.driver.JudgeStep(ctx, call, hosts)
}

// raise stores a question, and returns its number.
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
	return 0, fmt.Errorf("the question of %s was not taken: it is no step under way", question.Call)
}

// record stores what has happened. The lock is held.
func (st *Steps) record(ctx context.Context, bodies ...event.Body) error {
	err := st.driver.Record(ctx, bodies...)
	st.limit.Set(st.driver.Deadline())
	return err
}
