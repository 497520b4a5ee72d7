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

// journal writes the log and reads what others have written.
//
// Every append through it names the driver's claim and the last event that it knows. Consequences of the state (decide)
// are not stored if the log has grown; the loop is asked again. Facts about the world (record) are stored
// behind whatever has come. Of two drivers the later claim wins, and the other one ends with [event.ErrFenced].
type journal struct {
	log     event.Log
	secrets *redact.Secrets // removed from everything that is appended or shown

	mu    sync.Mutex  // guards state for readers outside the driver
	state *loop.State // changed only by the driver

	epoch uint64                        // claim of the run in progress; 0 before it
	yield func(event.Event, error) bool // shows an event to the consumer of that run

	// attach adds events that must be in the same append as bodies.
	attach func(ctx context.Context, bodies []event.Body) ([]event.Body, error)
	// before is called with each event before it is folded, after when it is.
	before func(event.Body)
	after  func(event.Event) error
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

// record stores bodies that are true regardless of what others append.
func (j *journal) record(ctx context.Context, bodies ...event.Body) error {
	bodies, err := j.attach(ctx, bodies)
	if err != nil {
		return err
	}
	return j.persist(ctx, func() ([]event.Body, error) { return bodies, nil })
}

// persist is record for bodies that must be made again from the state whenever the log has grown. Nothing is
// attached to them.
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

// store appends bodies behind the last folded event, then folds and yields them. It does not read them back,
// which would cost as much as the append in a store over a network. If others have appended in between, the
// append fails with event.ErrGrown, and their events are folded first. Without bodies it only catches up.
func (j *journal) store(ctx context.Context, bodies []event.Body) error {
	if len(bodies) == 0 {
		return j.catchUp(ctx)
	}
	events, err := j.log.AppendAs(ctx, event.Driver{Epoch: j.epoch, After: j.state.Seq}, j.secrets.Bodies(bodies)...)
	if err != nil {
		return err
	}
	for _, e := range events {
		if e, err = asRead(e); err != nil {
			return err
		}
		if err := j.fold(e); err != nil {
			return err
		}
	}
	return nil
}

// asRead returns the event as a reader of the log sees it, so that the state does not depend on who appended
// it.
func asRead(e event.Event) (event.Event, error) {
	line, err := event.Encode(e)
	if err != nil {
		return e, err
	}
	return event.Decode(line)
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
	j.before(e.Body)
	if err := j.apply(e); err != nil {
		return err
	}
	if err := j.after(e); err != nil {
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

// consumerGone stops showing events; they are still folded.
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

// interruptible returns a context that ends with fault.ErrInterrupted when someone appends event.Cancelled to
// the log. The caller must call done, which waits.
func (j *journal) interruptible(ctx context.Context) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if j.state.Run.Cancelled { // before the interruptible work has begun
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
			if panicked != nil { // nothing could interrupt it any more
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
					cancel(interruptedBy(b.Limit != ""))
					return
				}
				after = e.Seq
			}
		}
	})
	return watched, func() { cancel(nil); watcher.Wait() }
}

// interruption returns why the run was interrupted.
func (j *journal) interruption() error { return interruptedBy(j.state.Run.OutOfTime) }

func interruptedBy(limit bool) error {
	if limit {
		return fault.ErrTimeUp
	}
	return fault.ErrInterrupted
}

// Fold builds the state from a log, starting at the last compaction.
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

// Readable returns an error if the first event of a log says that this version can't continue it.
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
