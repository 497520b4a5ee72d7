package drive

import (
	"context"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/tool"
)

// workspace saves the state of the workspace: in checkpoints around calls that may change it, and with Config.Sync if
// the workspace moves between machines.
type workspace struct {
	cfg     *Config
	journal *journal
	jobs    *jobs

	uncheckable bool // taking a checkpoint failed, so no more are taken

	// State of the run in progress.
	spanOpen      bool // a checkpoint was taken before calls, and none after them yet
	unsaved       bool // calls that may have changed the workspace have ended since it was last synced
	everChanged   bool // such calls have ended in this run
	leftProcesses bool // a call left a process running
}

// begin begins a run.
func (w *workspace) begin() {
	w.spanOpen, w.unsaved, w.everChanged, w.leftProcesses = false, false, false, false
}

// callEnded records the end of a call, which may have changed the workspace.
func (w *workspace) callEnded(end event.Ended, mayChange bool) {
	w.unsaved, w.everChanged = w.unsaved || mayChange, w.everChanged || mayChange
	w.leftProcesses = w.leftProcesses || end.Left
}

// attach syncs a moving workspace before events that acknowledge work on it, and adds the events of the sync to them.
// So no result, request or stop is stored before the state of the workspace.
func (w *workspace) attach(ctx context.Context, bodies []event.Body) ([]event.Body, error) {
	at := -1 // where to insert
	for i, b := range bodies {
		switch b.(type) {
		case event.Opened, event.StepEnded:
			at = len(bodies)
		case event.Claimed:
			at = i + 1
		case event.Ended:
			if w.unsaved || w.background() {
				at = len(bodies)
			}
		case event.Asked:
			if w.background() {
				at = i
			}
		case event.Stopped:
			if w.everChanged {
				at = i
			}
		}
	}
	if at < 0 || w.cfg.Sync == nil {
		return bodies, nil
	}
	w.unsaved = false
	kept, err := w.sync(ctx)
	return slices.Insert(slices.Clone(bodies), at, kept...), err
}

// background reports whether jobs or left processes may change the workspace at any time.
func (w *workspace) background() bool { return w.leftProcesses || w.jobs.hasStarted() }

func (w *workspace) sync(ctx context.Context) (kept []event.Body, err error) {
	defer fault.Recover("Workspace.Sync", nil, &err)
	return w.cfg.Sync(ctx, w.journal.state.Workspace)
}

// save syncs a moving workspace.
func (w *workspace) save(ctx context.Context) error {
	if w.cfg.Sync == nil {
		return nil
	}
	kept, err := w.sync(ctx)
	if err != nil {
		return err
	}
	return w.journal.record(ctx, kept...)
}

// checkpoint takes a checkpoint before or after calls that may change the workspace. If that fails, it notes so once,
// and the run continues without checkpoints.
func (w *workspace) checkpoint(ctx context.Context, after bool) error {
	body, err := w.cfg.Checkpoint(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		w.spanOpen, body.After = !after, after
		return w.journal.record(ctx, body)
	}
	w.spanOpen, w.uncheckable = false, true
	return w.journal.record(ctx, event.Note{
		Topic: "checkpoint",
		Text:  "checkpoints of the workspace are off, so changes from now on can't be undone: " + err.Error(),
	})
}

// changes reports whether effects may change the workspace. Effects on a throwaway copy don't.
func changes(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return !e.Throwaway && !tool.ReadOnly([]tool.Effect{e}) })
}
