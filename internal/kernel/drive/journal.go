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

// ErrConsumerGone says that whoever ranges over a run has broken off.
var ErrConsumerGone = errors.New("the consumer broke off")

// journal writes the log and reads what others have written.
//
// Every append names the driver's claim and the last event that it knows. What follows from the state
// (decide) is not stored once the log has grown beyond it: the loop is asked again. What has happened in
// the world (record) is stored behind whatever came. Of two drivers the later claim wins, and the other
// ends with [event.ErrFenced].
type journal struct {
	log     event.Log
	secrets *redact.Secrets // removed from all that is appended or shown

	mu    sync.Mutex  // guards state against those who read it beside the driver
	state *loop.State // changed by the driver alone

	epoch uint64                        // of the claim of the run in progress; 0 before it
	yield func(event.Event, error) bool // shows an event to the consumer of that run

	// attach returns the bodies with those that have to be in the same append.
	attach func(ctx context.Context, bodies []event.Body) ([]event.Body, error)
	// before sees each event before it is folded, after once it is.
	before func(event.Body)
	after  func(event.Event) error
}

// decide stores bodies that follow from the state, if the log has not grown beyond it, and brings the
// state up to date. If they are not stored, the loop is to be asked again.
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

// record stores bodies that stay true no matter what others append.
func (j *journal) record(ctx context.Context, bodies ...event.Body) error {
	bodies, err := j.attach(ctx, bodies)
	if err != nil {
		return err
	}
	return j.persist(ctx, func() ([]event.Body, error) { return bodies, nil })
}

// persist is record for bodies that are made again from the state whenever the log has grown. Nothing is attached to
// them.
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

// store appends bodies behind the last event that was folded, then folds and yields them. They are not
// read back, which would cost a store over a network as much as the append. What others have appended
// behind them makes the next append fail with event.ErrGrown, and is folded then. Without bodies it only catches up.
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

// asRead returns the event as the log has it, so that the state does not depend on who appended it.
func asRead(e event.Event) (event.Event, error) {
	line, err := event.Encode(e)
	if err != nil {
		return e, err
	}
	return event.Decode(line)
}

// catchUp folds and yields what the log holds beyond the state.
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

// consumerGone has events folded from now on without showing them.
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

// interruptible returns a context that ends with fault.ErrInterrupted when somebody appends
// event.Cancelled to the log. Done must be called, and waits.
func (j *journal) interruptible(ctx context.Context) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if j.state.Run.Cancelled { // before what it is to interrupt has begun
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
			if panicked != nil { // nobody could interrupt it any more
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

// interruption is why the run was interrupted.
func (j *journal) interruption() error { return interruptedBy(j.state.Run.Late) }

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

// foldUpTo builds the state as it was after an event.
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
