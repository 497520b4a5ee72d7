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

// Watch follows a session, whether or not another process drives it. It has no agent and runs nothing; only Send
// changes the session. Use [Host.Watch] to make one. It is safe for concurrent use.
type Watch struct {
	// Redact removes secrets from an input of Send. Set it before the first Send. If nil, inputs are stored as they
	// are.
	Redact func(event.Body) event.Body

	log   store.Log
	began uint64

	mu    sync.Mutex // guards state
	state *loop.State
}

// Watch opens the session with this id or a unique part of it, to follow it and to send inputs to the process that
// drives it; "last" means the most recently used one. It takes no lease and does not use Host.Agent. It fails if there
// is no such session, or if its log can't be read to the end. The caller must close it.
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

// fold applies the events since the last compaction.
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

// RunStart returns the number of the event before the run that was in progress when the Watch was opened, or before
// the last run if none was. Pass it to Events to see that run. If the run was compacted since it began, it is the
// position of the last compaction.
func (w *Watch) RunStart() uint64 { return w.began }

// Events yields the stored events with a sequence number above after, and then new ones until ctx ends, which is not
// an error. It leaves out transient events. If the log can't be read any more, the error comes last.
func (w *Watch) Events(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		seen := min(after, w.Status().Seq) // the fold must not miss an event
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

// Live is like [Watch.Events], with transient events of the run if the log is an [event.Follower].
func (w *Watch) Live(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	log, ok := w.log.(event.Follower)
	if !ok {
		return w.Events(ctx, after)
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range log.Follow(ctx, min(after, w.Status().Seq)) { // the fold must not miss an event
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

// Context describes the parts of the session's next prompt, as of the last event that Status includes.
func (w *Watch) Context() Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return contextOf(w.state)
}

// apply folds an event, unless it is already folded.
func (w *Watch) apply(e event.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Seq <= w.state.Seq {
		return nil
	}
	return w.state.Apply(e)
}

// Status returns the state of the session as of the last event that Events or Live has read, or, before that, as of
// the opening of the Watch.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := statusOf(w.state)
	st.Session = w.log.ID() // even before the first event
	return st
}

// LastSeq returns the number of the last event in the log, which Events may not have yielded yet.
func (w *Watch) LastSeq(ctx context.Context) (uint64, error) {
	end := w.Status().Seq
	for e, err := range w.log.Read(ctx, end) {
		if err != nil {
			return 0, err
		}
		end = e.Seq
	}
	return end, nil
}

// Send appends an input, see [event.Input], after Redact has removed secrets. The process that drives the session
// picks it up; otherwise it waits for the next run. Unlike [Session.Send], it leaves images in the event, and does
// not save the rules of decisions for the project or for all projects.
func (w *Watch) Send(ctx context.Context, input event.Body) error {
	if !event.Input(input) {
		return fmt.Errorf("send: %s is not an input", input.Kind())
	}
	if d, ok := input.(event.Decided); ok {
		w.mu.Lock()
		input = bindDecision(w.state, d)
		w.mu.Unlock()
	}
	if w.Redact != nil {
		input = w.Redact(input)
	}
	_, err := w.log.Append(ctx, input)
	return err
}

// Close closes the log. An Events loop in progress ends with an error.
func (w *Watch) Close() error { return w.log.Close() }
