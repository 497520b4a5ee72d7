package drive

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
)

// ErrConsumerGone means that the consumer of a run has stopped iterating.
var ErrConsumerGone = errors.New("the consumer broke off")

// journal appends the driver's events to the log, and reads the events of others.
//
// Its appends name the driver's claim and the last event that it knows. Consequences of the state (decide) are not
// stored if the log has grown; the loop must be asked again. Facts about the world (record) are stored after all newer
// events. If there are two drivers, the later claim wins, and the other driver ends with [event.ErrFenced]. Only
// inputs, which any process may append, go to the log without a claim, and are read back like those of others.
type journal struct {
	log     event.Log
	secrets *redact.Secrets // removes secrets from all events that are appended or shown

	mu    sync.Mutex  // guards state for readers outside the driver
	state *loop.State // changed only by the driver

	epoch uint64                        // claim of the run in progress; 0 before it
	yield func(event.Event, error) bool // shows an event to the consumer of that run

	// attach adds events that must be in the same append as bodies.
	attach func(ctx context.Context, bodies []event.Body) ([]event.Body, error)
	// beforeFold and afterFold are called with each event.
	beforeFold func(event.Body)
	afterFold  func(event.Event) error
}

// decide stores bodies that follow from the state, unless the log has grown, and updates the state. If they are
// not stored, the loop must be asked again.
func (j *journal) decide(ctx context.Context, bodies ...event.Body) (stored bool, err error) {
	if bodies, err = j.attach(ctx, bodies); err != nil {
		return false, err
	}
	err = j.store(ctx, bodies)
	if errors.Is(err, event.ErrGrown) {
		return false, j.catchUp(ctx)
	}
	return err == nil, err
}

// record stores bodies that are true whatever other events are appended.
func (j *journal) record(ctx context.Context, bodies ...event.Body) error {
	bodies, err := j.attach(ctx, bodies)
	if err != nil {
		return err
	}
	return j.persist(ctx, func() ([]event.Body, error) { return bodies, nil })
}

// persist is like record, but attaches nothing. The bodies may depend on the state, so it calls the function again
// whenever the log has grown.
func (j *journal) persist(ctx context.Context, bodies func() ([]event.Body, error)) error {
	for {
		made, err := bodies()
		if err != nil {
			return err
		}
		if err = j.store(ctx, made); !errors.Is(err, event.ErrGrown) {
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
	}
}

// store appends bodies right after the last folded event, then folds and yields them. It does not read them back,
// because a read over a network costs as much as the append. If others have appended in between, it fails with
// event.ErrGrown, and the caller must catch up first. Without bodies it only catches up.
func (j *journal) store(ctx context.Context, bodies []event.Body) error {
	if len(bodies) == 0 {
		return j.catchUp(ctx)
	}
	events, err := j.log.AppendAs(ctx, event.Driver{Epoch: j.epoch, After: j.state.Seq}, j.secrets.Bodies(bodies)...)
	if err != nil {
		return err
	}
	for _, e := range events {
		// Fold the form in which the log gives it to readers, so that every reader gets the same state.
		line, err := event.Encode(e)
		if err == nil {
			e, err = event.Decode(line)
		}
		if err == nil {
			err = j.fold(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// catchUp folds and yields the events that the state lacks.
func (j *journal) catchUp(ctx context.Context) error {
	for e, err := range j.log.Read(ctx, j.state.Seq) {
		if err != nil {
			return err
		}
		if err := j.fold(e); err != nil {
			return err
		}
	}
	return nil
}

// fold folds and yields an event.
func (j *journal) fold(e event.Event) error {
	j.beforeFold(e.Body)
	if err := j.apply(e); err != nil {
		return err
	}
	if err := j.afterFold(e); err != nil {
		return err
	}
	if !j.yield(e, nil) {
		return j.consumerGone()
	}
	if c, claims := e.Body.(event.Claimed); claims && j.epoch > 0 && c.Epoch != j.epoch {
		return event.ErrFenced
	}
	return nil
}

func (j *journal) apply(e event.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.Apply(e)
}

// consumerGone stops yielding events. They are still folded.
func (j *journal) consumerGone() error {
	j.yield = func(event.Event, error) bool { return true }
	return ErrConsumerGone
}

// show yields a transient event.
func (j *journal) show(body event.Body) error {
	if !j.yield(event.Event{Time: time.Now(), Session: j.state.Session, Body: j.secrets.Body(body)}, nil) {
		return j.consumerGone()
	}
	return nil
}

// interruptible returns a context that ends with an error like fault.ErrInterrupted when the run is cancelled in the
// log. The caller must call done, which waits for the watcher.
func (j *journal) interruptible(ctx context.Context) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if j.state.Run.Cancelled { // already
		cancel(j.interruption())
	}
	w, ok := j.log.(event.Waiter)
	if !ok {
		return watched, func() { cancel(nil) }
	}
	var watcher sync.WaitGroup
	after := j.state.Seq
	watcher.Go(func() {
		var panicked error
		defer func() {
			if panicked != nil { // the work could not be interrupted any more
				cancel(panicked)
			}
		}()
		defer fault.Recover("the log", nil, &panicked)
		for w.Wait(watched, after) == nil {
			for e, err := range j.log.Read(watched, after) {
				if err != nil {
					return
				}
				if b, ok := e.Body.(event.Cancelled); ok {
					cancel(interruptionCause(b.Limit))
					return
				}
				after = e.Seq
			}
		}
	})
	return watched, func() { cancel(nil); watcher.Wait() }
}

// interruption returns the reason why the run was cancelled.
func (j *journal) interruption() error {
	switch r := &j.state.Run; {
	case r.OutOfTime:
		return fault.ErrTimeUp
	case r.BreakerReason != "":
		return fault.ErrBreaker
	}
	return fault.ErrInterrupted
}

// interruptionCause returns the error for a cancellation because of a limit; empty means that someone interrupted.
func interruptionCause(limit event.Reason) error {
	switch limit {
	case "":
		return fault.ErrInterrupted
	case event.ReasonRate:
		return fault.ErrBreaker
	}
	return fault.ErrTimeUp
}

// Fold builds the state from a log. If the log is an [event.Starter], it begins where that says.
func Fold(ctx context.Context, log event.Log) (*loop.State, error) {
	state := &loop.State{}
	var after uint64
	if s, ok := log.(event.Starter); ok {
		start, err := s.Start(ctx)
		if err != nil {
			return nil, err
		}
		after = start
	}
	if after > 0 {
		if err := Readable(ctx, log); err != nil {
			return nil, err
		}
	}
	for e, err := range log.Read(ctx, after) {
		if err != nil {
			return nil, err
		}
		if err := state.Apply(e); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// Readable returns an error if this version does not understand the first event of a log.
func Readable(ctx context.Context, log event.Log) error {
	for e, err := range log.Read(ctx, 0) {
		return errors.Join(err, event.Understood(e))
	}
	return nil
}

// foldUpTo builds the state as of an event.
func (j *journal) foldUpTo(ctx context.Context, seq uint64) (*loop.State, error) {
	state := &loop.State{}
	for e, err := range j.log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq > seq {
			break
		}
		if err := state.Apply(e); err != nil {
			return nil, err
		}
	}
	return state, nil
}
