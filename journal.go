package inspan

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
)

// journal is how a driver writes the log, and reads what others have written.
//
// Every append names its claim and the last event that it knows. What follows from
// the state (decide) is not stored once the log has grown beyond it: the loop is asked
// again. What has happened in the world (record) is stored behind whatever came. Of two
// drivers the later claim wins, and the other ends with event.ErrFenced.
type journal struct {
	*Session
	epoch uint64 // of the driver's claim
	yield func(event.Event, error) bool
	saw   func(event.Body) // is told of each event before it is folded
}

// decide stores bodies that follow from the state, if the log has not grown beyond it, and
// brings the state up to date. If they are not stored the loop is to be asked again.
func (j *journal) decide(ctx context.Context, bodies ...event.Body) (stored bool, err error) {
	err = j.store(ctx, bodies)
	if errors.Is(err, event.ErrGrown) {
		return false, j.catchUp(ctx)
	}
	return err == nil, err
}

// record stores bodies that hold whatever others have appended, then folds and yields
// them together with that.
func (j *journal) record(ctx context.Context, bodies ...event.Body) error {
	return j.persist(ctx, func() ([]event.Body, error) { return bodies, nil })
}

// persist is record for bodies that are made anew of the state whenever the log has grown.
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

// store appends bodies behind the last event that was folded, then folds and yields them. They are
// not read back, which would cost a store over a network as much as the append. What others have
// appended behind them is in the way of the next append, and is folded then. Without bodies it looks
// what that is.
func (j *journal) store(ctx context.Context, bodies []event.Body) error {
	if len(bodies) == 0 {
		return j.catchUp(ctx)
	}
	events, err := j.log.AppendAs(ctx, event.Driver{Epoch: j.epoch, After: j.state.Seq}, j.clear(bodies)...)
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

// asRead is an event as the log has it, so that the state does not depend on who has appended it.
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
	j.saw(e.Body)
	if err := j.apply(e); err != nil {
		return err
	}
	if err := j.told(e); err != nil {
		return err
	}
	if !j.yield(e, nil) {
		return j.broken()
	}
	if c, claims := e.Body.(event.Claimed); claims && j.epoch > 0 && c.Epoch != j.epoch {
		return event.ErrFenced
	}
	return nil
}

// told passes on an event that was folded.
func (j *journal) told(e event.Event) (err error) {
	defer caught("Agent.Saw", nil, &err)
	if j.agent.Saw != nil {
		j.agent.Saw(j.Session, e)
	}
	return nil
}

func (j *journal) apply(e event.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.Apply(e)
}

// broken says that nobody looks any more. What is still to be stored is folded unseen.
func (j *journal) broken() error {
	j.yield = func(event.Event, error) bool { return true }
	return errBroken
}

// show yields a transient event.
func (j *journal) show(body event.Body) error {
	if !j.yield(event.Event{Time: time.Now(), Session: j.state.Session, Body: j.redacted(body)}, nil) {
		return j.broken()
	}
	return nil
}

// interruptible returns a context that ends with errInterrupted when somebody
// appends Cancelled to the log. done must be called, and waits.
func (j *journal) interruptible(ctx context.Context) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if j.state.Run.Cancelled { // before what it is to interrupt has begun
		cancel(j.interrupt())
	}
	w, ok := j.log.(event.Waiter)
	if !ok {
		return watched, func() { cancel(nil) }
	}
	var watcher sync.WaitGroup
	after := j.state.Seq
	watcher.Go(func() {
		var crashed error
		defer func() {
			if crashed != nil { // nobody could interrupt it any more
				cancel(crashed)
			}
		}()
		defer caught("the log", nil, &crashed)
		for w.Wait(watched, after) == nil {
			for e, err := range j.log.Read(watched, after) {
				if err != nil {
					return
				}
				if b, ok := e.Body.(event.Cancelled); ok {
					cancel(interruptBy(b.Limit != ""))
					return
				}
				after = e.Seq
			}
		}
	})
	return watched, func() { cancel(nil); watcher.Wait() }
}

// interrupt is why the run was interrupted.
func (j *journal) interrupt() error { return interruptBy(j.state.Run.Late) }

func interruptBy(limit bool) error {
	if limit {
		return errLate
	}
	return errInterrupted
}
