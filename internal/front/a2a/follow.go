package a2a

import (
	"context"
	"iter"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
)

// follow yields a task in its present state, and its changes until it rests. R drives the task; nil means that no
// one does, or another process. Patient is for clients that wait for more from a task that rests already.
func (v *handler) follow(ctx context.Context, id string, r *running.Run, patient bool) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		f := &follower{handler: v, id: id, patient: patient, yield: yield}
		rested, err := f.watch(ctx, r)
		if err == nil && !rested && !f.left {
			err = f.reportRest(ctx, r)
		}
		if err != nil && !f.left {
			yield(nil, err)
		}
	}
}

// follower tells one client about the progress of a task.
type follower struct {
	*handler
	id      string
	patient bool
	yield   func(sdk.Event, error) bool
	fold    transcript.Fold
	seq     uint64 // of the last event that was reported
	left    bool   // the client disconnected
}

// watch yields changes until the task rests, or until no process drives it here any more. It reports whether the
// client was told that the task rests.
func (f *follower) watch(ctx context.Context, r *running.Run) (rested bool, err error) {
	first, err := f.find(ctx, f.id)
	if err != nil {
		return false, err
	}
	f.seq = first.status.Seq
	if now := state(first.status); !f.sendEvent(first.task(-1)) || isAtRest(now) && (isOver(now) || !f.patient) {
		return true, nil
	}
	w, err := f.server.Host.Watch(ctx, f.id)
	if err != nil {
		return false, notFound(err)
	}
	defer func() { _ = w.Close() }() // it was only read
	watched, stop := untilRunEnds(ctx, r)
	defer stop()
	for e, err := range w.Events(watched, f.seq) {
		if err != nil {
			return false, err
		}
		if f.reportEvent(e, first); f.left {
			return false, nil
		}
		if st := w.Status(); e.Seq >= st.Seq && isAtRest(state(st)) {
			return false, nil
		}
	}
	return false, ctx.Err()
}

// untilRunEnds returns a context that ends with ctx, and when the run ends here for good.
func untilRunEnds(ctx context.Context, r *running.Run) (context.Context, context.CancelFunc) {
	watched, cancel := context.WithCancel(ctx)
	if r == nil {
		return watched, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-r.Done():
			if !running.Elsewhere(r.Err()) {
				cancel()
			}
		case <-watched.Done():
		}
	}()
	return watched, func() { cancel(); <-done }
}

// sendEvent sends the client an event, and reports whether the client is still there.
func (f *follower) sendEvent(e sdk.Event) bool {
	if !f.left && !f.yield(e, nil) {
		f.left = true
	}
	return !f.left
}

// reportEvent sends the client what an event means for it.
func (f *follower) reportEvent(e event.Event, r *record) {
	f.seq = e.Seq
	for _, item := range f.fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Reply:
			if said := strings.TrimSpace(i.Text); said != "" && i.State == transcript.Whole {
				f.reportWorking(e, r, bounded(said))
			}
		case *transcript.Call:
			if i.State == transcript.Running && i.Latest == "" {
				f.reportWorking(e, r, "▸ "+words.OneLine(i.Call.Name+" "+words.Subject(i.Call), 200))
			}
		}
	}
}

// reportWorking reports work in progress.
func (f *follower) reportWorking(e event.Event, r *record, text string) {
	at := e.Time
	f.sendEvent(&sdk.TaskStatusUpdateEvent{TaskID: sdk.TaskID(r.id), ContextID: r.context, Status: sdk.TaskStatus{
		State: sdk.TaskStateWorking, Timestamp: &at, Message: r.message(e.Seq, sdk.MessageRoleAgent, sdk.NewTextPart(text)),
	}})
}

// reportRest reports what was not reported yet, and the state of a task that rests, with its results. A task that
// no process drives and that does not rest was unable to continue.
func (f *follower) reportRest(ctx context.Context, run *running.Run) error {
	r, err := f.find(ctx, f.id)
	if err != nil {
		return err
	}
	for e, err := range f.server.Host.Events(ctx, f.id) {
		if err != nil {
			return notFound(err)
		}
		if e.Seq > f.seq && e.Seq <= r.status.Seq {
			f.reportEvent(e, r)
		}
	}
	status := r.currentState()
	if run != nil && !isAtRest(status.State) {
		select {
		case <-run.Done():
			if run.Err() != nil {
				return run.Err()
			}
		default:
		}
	}
	if isOver(status.State) {
		for _, a := range r.artifacts() {
			if !f.sendEvent(&sdk.TaskArtifactUpdateEvent{TaskID: sdk.TaskID(r.id), ContextID: r.context, Artifact: a, LastChunk: true}) {
				return nil
			}
		}
	}
	f.sendEvent(&sdk.TaskStatusUpdateEvent{TaskID: sdk.TaskID(r.id), ContextID: r.context, Status: status})
	return nil
}
