package drive

import (
	"context"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/tool"
)

// workspace saves the state of the workspace: in checkpoints around calls that change something and, if the
// workspace moves between machines, where the others find it.
type workspace struct {
	cfg     *Config
	journal *journal
	jobs    *jobs

	uncheckable bool // checkpoints can't be taken for the rest of the session

	// State of the run in progress.
	span    bool // a checkpoint was taken before calls, and none after them
	changed bool // calls that may have changed the workspace have ended since its state was saved
	touched bool // there were such calls in this run
	leaves  bool // calls have left something running
}

// begin begins a run.
func (w *workspace) begin() { w.span, w.changed, w.touched, w.leaves = false, false, false, false }

// ended records the end of a call, which may have changed the workspace.
func (w *workspace) ended(end event.Ended, mayChange bool) {
	w.changed, w.touched = w.changed || mayChange, w.touched || mayChange
	w.leaves = w.leaves || end.Left
}

// attach adds to bodies where the state of a moving workspace is stored, if they acknowledge work that may have
// changed it: no result, request or stop is stored before the state is.
func (w *workspace) attach(ctx context.Context, bodies []event.Body) ([]event.Body, error) {
	at := -1
	for i, b := range bodies {
		switch b.(type) {
		case event.Opened, event.StepEnded:
			at = len(bodies)
		case event.Claimed:
			at = i + 1
		case event.Ended:
			if w.changed || w.background() {
				at = len(bodies)
			}
		case event.Asked:
			if w.background() {
				at = i
			}
		case event.Stopped:
			if w.touched {
				at = i
			}
		}
	}
	if at < 0 || w.cfg.Sync == nil {
		return bodies, nil
	}
	w.changed = false
	kept, err := w.sync(ctx)
	return slices.Insert(slices.Clone(bodies), at, kept...), err
}

// background reports whether jobs, or processes that commands have left, may be working beside calls.
func (w *workspace) background() bool { return w.leaves || w.jobs.some() }

func (w *workspace) sync(ctx context.Context) (kept []event.Body, err error) {
	defer fault.Recover("Workspace.Sync", nil, &err)
	return w.cfg.Sync(ctx, w.journal.state.Workspace)
}

// keep saves the current state of a moving workspace.
func (w *workspace) keep(ctx context.Context) error {
	if w.cfg.Sync == nil {
		return nil
	}
	kept, err := w.sync(ctx)
	if err != nil {
		return err
	}
	return w.journal.record(ctx, kept...)
}

// leave saves the state when a driver ends in the middle of a run. If that fails, the next driver does it.
func (w *workspace) leave(ctx context.Context) {
	if w.touched && w.journal.state.Run.Active {
		_ = w.keep(ctx)
	}
}

// checkable reports whether checkpoints of the workspace can be taken.
func (w *workspace) checkable() bool { return w.cfg.Checkpoint != nil && !w.uncheckable }

// checkpoint takes a checkpoint before or after calls that change something. If it can't be taken, that is
// noted once and stops nothing.
func (w *workspace) checkpoint(ctx context.Context, after bool) error {
	body, err := w.cfg.Checkpoint(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		w.span, body.After = !after, after
		return w.journal.record(ctx, body)
	}
	w.span, w.uncheckable = false, true
	return w.journal.record(ctx, event.Note{
		Topic: "checkpoint",
		Text:  "no more checkpoints of the workspace are taken, so that what is changed now can't be put back: " + err.Error(),
	})
}

// changes reports whether effects may change the workspace. Effects on a throwaway copy don't.
func changes(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return !e.Throwaway && !tool.ReadOnly([]tool.Effect{e}) })
}
