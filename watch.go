package inspan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/store"
)

// Watch is a session seen from outside: somebody else drives it, or nobody does. It
// has no agent, so it runs nothing, and changes nothing but by what is sent to it.
// Use [Host.Watch]. Safe for concurrent use.
type Watch struct {
	// Redact returns what Send is to store of an input: it without secrets. Set it before the
	// first Send; nil: inputs are stored as they are.
	Redact func(event.Body) event.Body

	log   store.Log
	began uint64

	mu    sync.Mutex // guards state
	state *loop.State
}

// Watch opens the session with the id, or a unique part of it, to look at it and to
// send inputs to whoever drives it; "last" means the one used last. Nobody is
// kept from anything by it. Host.Agent is not needed. An error says that there is no
// such session, or that its log can't be read to its end. The caller closes it.
func (h *Host) Watch(ctx context.Context, id string) (*Watch, error) {
	id, err := store.Resolve(ctx, h.Sessions(), id)
	if err != nil {
		return nil, err
	}
	log, err := h.Sessions().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	w := &Watch{log: log, state: &loop.State{}}
	if err := w.fold(ctx); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return w, nil
}

// fold reads what has happened since the last compaction.
func (w *Watch) fold(ctx context.Context) error {
	start, err := w.log.Start(ctx)
	if err != nil {
		return err
	}
	w.began = start
	if err := drive.Readable(ctx, w.log); err != nil {
		return err
	}
	for e, err := range w.log.Read(ctx, start) {
		if err != nil {
			return err
		}
		before := w.state.Run.Active
		if err := w.state.Apply(e); err != nil {
			return err
		}
		if !before && w.state.Run.Active {
			w.began = e.Seq - 1
		}
	}
	return nil
}

// ID returns the session's id.
func (w *Watch) ID() string { return w.log.ID() }

// Began is what to give Events to see the run that went on when the session was
// opened, the last one if none did: the number of the event before its first, or of
// the one before its last compaction.
func (w *Watch) Began() uint64 { return w.began }

// Events yields the stored events with a sequence number above after and then those
// that come, until ctx is done, which is not an error. Transient events are not among
// them. A log that can't be read any more is an error, yielded last.
func (w *Watch) Events(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		seen := min(after, w.Status().Seq) // the fold must miss none
		for ctx.Err() == nil {
			for e, err := range w.log.Read(ctx, seen) {
				if err == nil {
					err = w.apply(e)
				}
				if err != nil && ctx.Err() != nil {
					return
				}
				if (err != nil || e.Seq > after) && !yield(e, err) || err != nil {
					return
				}
				seen = e.Seq
			}
			if err := w.log.Wait(ctx, seen); err != nil && ctx.Err() == nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}

// Live is [Watch.Events] with the transient events of the run among them, if the log tells them as an
// [event.Follower] does.
func (w *Watch) Live(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	log, told := w.log.(event.Follower)
	if !told {
		return w.Events(ctx, after)
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range log.Follow(ctx, min(after, w.Status().Seq)) { // the fold must miss none
			if err == nil && !e.Transient() {
				err = w.apply(e)
			}
			if err != nil && ctx.Err() != nil {
				return
			}
			if (err != nil || e.Transient() || e.Seq > after) && !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Context tells what the next prompt of the session is made of, as of the last event that Status
// knows.
func (w *Watch) Context() Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return contextOf(w.state)
}

// apply folds an event that was not there before.
func (w *Watch) apply(e event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Seq <= w.state.Seq {
		return nil
	}
	return w.state.Apply(e)
}

// Status returns how the session stood when it was opened, or, once Events has gone
// beyond that, as of the last event that it has yielded.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := statusOf(w.state)
	st.Session = w.log.ID() // also before the first event
	return st
}

// End is the number of the last event that is in the log by now. Events may still have to yield it.
func (w *Watch) End(ctx context.Context) (uint64, error) {
	end := w.Status().Seq
	for e, err := range w.log.Read(ctx, end) {
		if err != nil {
			return 0, err
		}
		end = e.Seq
	}
	return end, nil
}

// Send appends an input, see [event.Input]. Whoever drives the session takes note of
// it; without a driver it waits for the next run. Redact takes the secrets out of it. Unlike
// with [Session.Send] images stay in the event, and a decision that holds for the project or
// always is not remembered, which is the caller's to do.
func (w *Watch) Send(ctx context.Context, input event.Body) error {
	if !event.Input(input) {
		return fmt.Errorf("send: %s is not an input", input.Kind())
	}
	if d, ok := input.(event.Decided); ok {
		w.mu.Lock()
		input = bound(w.state, d)
		w.mu.Unlock()
	}
	if w.Redact != nil {
		input = w.Redact(input)
	}
	_, err := w.log.Append(ctx, input)
	return err
}

// Close closes the log. Whatever Events is at ends with an error.
func (w *Watch) Close() error { return w.log.Close() }
