package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

// work is a task that is worked on here.
type work struct {
	*Server
	tenant string
	cancel context.CancelCauseFunc
	idle   atomic.Bool // it waits for a person's decision, and takes no slot
	rests  atomic.Bool // besides that, it does nothing
}

// again is the pause before a retry.
const again = 2 * time.Second

var (
	errCancelled = errors.New("cancelled")
	errTimedOut  = errors.New("its time limit was reached")
)

// run takes a task from its stage to its end, unless the server ends before.
func (w *work) run(ctx context.Context, t Task) error {
	if err := w.book.heal(ctx); err != nil {
		return w.wait(t, err)
	}
	t, _ = w.book.task(t.ID)
	var opened *inspan.Session
	var err error
	for err == nil && !over(t.Stage) && w.ctx.Err() == nil && !w.isDraining() {
		switch {
		case ctx.Err() != nil && t.Session == "":
			return w.end(ctx, t, why(ctx), nil)
		case t.Stage == StageSubmitted:
			err = w.to(ctx, &t, event.Staged{Stage: StageQueued})
		case t.Stage == StageQueued:
			err = w.to(ctx, &t, event.Staged{Stage: StageHydrating})
		case t.Stage == StageHydrating:
			opened, err = w.hydrate(ctx, &t)
		case t.Stage == StageIdle && (t.closed != "" || ctx.Err() != nil):
			err = w.to(w.ctx, &t, event.Staged{Stage: StageFinalizing})
		case t.Stage == StageIdle:
			st, read := w.status(t.Session)
			_, rests := t.rests(time.Now())
			switch {
			case read != nil || rests && !st.Active:
				if opened != nil {
					read = errors.Join(read, opened.Close())
				}
				return read
			case !rests && !st.Active:
				err = w.to(w.ctx, &t, event.Staged{Stage: StageFinalizing, Why: "no message before the idle time-out"})
				continue
			}
			fallthrough
		case t.Stage == StageRunning, t.Stage == StageWaiting:
			err = w.driven(ctx, &t, opened)
			opened = nil
		case t.Stage == StageFinalizing:
			return w.finish(ctx, t)
		}
	}
	if opened != nil {
		_ = opened.Close() // nothing was done in it
	}
	switch {
	case err == nil || w.ctx.Err() != nil || w.isDraining():
		return err
	case lacksRoom(err):
		if t.Stage == StageIdle { // a message has come
			_ = w.to(w.ctx, &t, event.Staged{Stage: StageRunning})
		}
		return w.stall(t, "workspace: "+err.Error(), err)
	case diskFault(err), errors.Is(err, store.ErrUnavailable):
		return w.wait(t, err)
	}
	return errors.Join(err, w.end(ctx, t, err, nil))
}

// lacksRoom reports whether only the workspace of this task is out of room here.
func lacksRoom(err error) bool {
	_, lacks := errors.AsType[*running.RoomError](err)
	return lacks
}

// stall leaves a task in its stage until it is retried, and records why.
func (w *work) stall(t Task, why string, err error) error {
	if t.Stage == StageRunning {
		_ = w.to(w.ctx, &t, event.Staged{Stage: StageWaiting, Why: why})
	}
	return err
}

// diskFault reports whether an error says that there is no room to continue.
func diskFault(err error) bool {
	_, short := errors.AsType[*DiskError](err)
	return short || keep.DiskFault(err)
}

// wait leaves a task in its stage until it is retried, and records why, as far as that can be written.
func (w *work) wait(t Task, err error) error {
	if keep.DiskFault(err) {
		w.disk.failed(err)
		w.lookAtDisk()
	}
	if diskFault(err) {
		return w.stall(t, "disk: "+noRoom, err)
	}
	return err
}

// why returns the cause of a done context, if a person or the clock has ended the task.
func why(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errCancelled) || errors.Is(cause, errTimedOut) || errors.Is(cause, errQuota) {
		return cause
	}
	return ctx.Err()
}

// to moves the task to another stage.
func (w *work) to(ctx context.Context, t *Task, m event.Staged) error {
	m.Task = t.ID
	if err := w.book.move(ctx, m); err != nil {
		return err
	}
	w.pulse.beat()
	*t, _ = w.book.task(t.ID)
	return nil
}

// end makes the last move of a task. Without a cause it has completed.
func (w *work) end(ctx context.Context, t Task, cause error, r *Result) error {
	m := event.Staged{Stage: StageCompleted}
	switch {
	case errors.Is(cause, errCancelled):
		m.Stage, m.By = StageCancelled, t.cancelled
	case errors.Is(cause, errTimedOut):
		m.Stage, m.Why = StageTimedOut, errTimedOut.Error()
	case cause != nil:
		m.Stage, m.Why = StageFailed, cause.Error()
	}
	w.removeWorkspace(t, m.Stage)
	if r != nil {
		raw, err := json.Marshal(r)
		if err != nil {
			return err
		}
		m.Result = raw
	}
	return w.to(context.WithoutCancel(ctx), &t, m)
}

// reopen opens the session of a task for its pool.
func (s *Server) reopen(ctx context.Context, id string) (*inspan.Session, error) {
	t, known := s.book.taskOf(id)
	if !known || over(t.Stage) {
		return nil, fmt.Errorf("open session %s: %w", id, running.ErrUnowned)
	}
	if err := s.arrive(ctx, t); err != nil {
		return nil, err
	}
	host, err := s.host(t)
	if err != nil {
		return nil, err
	}
	return s.inTurn(ctx, func() (*inspan.Session, error) { return host.Open(ctx, id) })
}

// driven runs the agent until its run has stopped: here, or on the machine that the engine chooses.
func (w *work) driven(ctx context.Context, t *Task, opened *inspan.Session) error {
	if w.Engine == nil {
		return w.drive(ctx, t, opened)
	}
	if opened != nil {
		if err := opened.Close(); err != nil {
			return err
		}
	}
	return w.supervise(ctx, t)
}

// drive runs the agent until its run has stopped.
func (w *work) drive(ctx context.Context, t *Task, opened *inspan.Session) error {
	r, err := w.pool.Drive(w.ctx, t.Session, opened)
	told, seen := false, uint64(0)
	for err == nil {
		if err = w.attend(ctx, t, r, &told); err != nil {
			break
		}
		st, read := w.status(t.Session)
		switch {
		case read != nil:
			return read
		case st.Stopped == nil && w.disk.trouble() != nil && ctx.Err() == nil:
			return w.disk.trouble()
		case r.Err() != nil && !running.Elsewhere(r.Err()):
			return r.Err()
		case told, st.Stopped != nil, t.Spec.Open && !st.Active:
			return w.settle(ctx, t, st)
		case running.Elsewhere(r.Err()):
			err = w.await(ctx, t, st.Seq, again)
		case len(st.Questions()) > 0 && ctx.Err() == nil:
			err = w.await(ctx, t, st.Seq, 0)
		case st.Active && st.Seq > seen:
			seen = st.Seq // a message came when the run was about to end
		case ctx.Err() == nil:
			return errors.New("its run ended without a reason")
		}
		if err == nil {
			r, err = w.pool.Drive(w.ctx, t.Session, nil)
		}
	}
	if w.ctx.Err() != nil || w.isDraining() {
		return w.ctx.Err()
	}
	return err
}

// settle moves a task whose run has stopped: to its end, or, if it stays open, to idle.
func (w *work) settle(ctx context.Context, t *Task, st inspan.Status) error {
	if !t.Spec.Open || ctx.Err() != nil {
		return w.to(w.ctx, t, event.Staged{Stage: StageFinalizing})
	}
	r, err := w.result(*t, st)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.to(w.ctx, t, event.Staged{Stage: StageIdle, Result: raw})
}

// attend waits until a run is over. Meanwhile it records whether the run waits for a person, and interrupts it
// when the task is cancelled or its time over.
func (w *work) attend(ctx context.Context, t *Task, r *running.Run, told *bool) error {
	seen := w.live.follow(t.Session, false)
	defer seen.leave()
	full, left := w.disk.full(), false
	for {
		if err := w.attitude(t, r.Status()); err != nil {
			return err
		}
		gone := ctx.Done()
		if *told {
			gone = nil
		}
		select {
		case <-r.Done():
			if left { // whatever error it has
				return &DiskError{noRoom}
			}
			return nil
		case <-full:
			full, left = nil, true
			r.Detach() // without an interrupt, after the running calls
		case <-seen.turns:
		case <-gone:
			if w.ctx.Err() != nil {
				<-r.Done()
				return w.ctx.Err()
			}
			*told = true
			stop := event.Cancelled{By: w.interrupter(t.ID), Reason: why(ctx).Error(), All: true}
			if _, err := w.pool.Drive(w.ctx, t.Session, nil, stop); err != nil {
				return err
			}
		}
	}
}

func (w *work) interrupter(id string) string {
	if t, _ := w.book.task(id); t.cancelled != "" {
		return t.cancelled
	}
	return "inspan serve"
}

// attitude moves a task between running and waiting, following its session.
func (w *work) attitude(t *Task, st inspan.Status) error {
	stage := StageRunning
	if len(st.Questions()) > 0 {
		stage = StageWaiting
	}
	w.rests.Store(st.OnlyWaits)
	if before := w.idle.Swap(stage == StageWaiting); before != (stage == StageWaiting) {
		w.stir()
	}
	if stage == t.Stage {
		return nil
	}
	if t.Stage == StageIdle && stage == StageWaiting { // it asked before the task was seen running
		if err := w.to(w.ctx, t, event.Staged{Stage: StageRunning}); err != nil {
			return err
		}
	}
	return w.to(w.ctx, t, event.Staged{Stage: stage})
}

// await waits until there is more in a session, its task is over, or the time has passed; 0 means no limit.
func (w *work) await(ctx context.Context, t *Task, seq uint64, most time.Duration) error {
	log, err := w.Sessions.Open(w.ctx, t.Session)
	if err != nil {
		return err
	}
	defer log.Close()
	if most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, most)
		defer stop()
	}
	if err := log.Wait(ctx, seq); err != nil && ctx.Err() == nil {
		return err
	}
	return w.ctx.Err()
}

// status returns the status of a session.
func (s *Server) status(id string) (inspan.Status, error) {
	return (&running.Table{Sessions: s.Sessions}).Status(s.ctx, id)
}

// finish collects the result of a task, clears its workspace, and ends it.
func (w *work) finish(ctx context.Context, t Task) error {
	st, err := w.status(t.Session)
	if err != nil {
		return err
	}
	r, err := w.result(t, st)
	if err != nil {
		return err
	}
	r.Evidence = w.evidence(context.WithoutCancel(ctx), t)
	var cause error
	switch {
	case t.Spec.Open && t.cancelled == "" && why(ctx) == nil: // it was closed
	case t.cancelled != "", st.Stopped != nil && st.Stopped.Reason == event.ReasonCancelled && why(ctx) == nil:
		cause = errCancelled
	case errors.Is(why(ctx), errTimedOut), errors.Is(why(ctx), errQuota):
		cause = why(ctx)
	case st.Stopped == nil:
		cause = errors.New("its run has not stopped")
	case st.Stopped.Reason != event.ReasonDone:
		cause = errors.New(strings.TrimSuffix(string(st.Stopped.Reason)+": "+st.Stopped.Detail, ": "))
	}
	return w.end(ctx, t, cause, r)
}

// result returns the result of a task so far, without the evidence.
func (w *work) result(t Task, st inspan.Status) (*Result, error) {
	r := &Result{Seq: st.Seq, Turns: st.Turns, Cost: st.Cost, Unpriced: st.Unpriced, Seconds: time.Since(t.Created).Round(time.Millisecond).Seconds()}
	if st.Stopped != nil {
		r.Stopped = string(st.Stopped.Reason)
	}
	var err error
	r.Says, err = w.says(t.Session)
	return r, err
}

const mostSaid = 64 << 10 // bytes of the agent's last words

// says returns the last words of the agent of a session.
func (s *Server) says(id string) (string, error) {
	var f transcript.Fold
	for e, err := range store.Events(s.ctx, s.Sessions, id) {
		if err != nil {
			return "", err
		}
		f.Apply(e)
	}
	return text.Head(f.Last, mostSaid), nil
}

// stays reports whether the workspace of a task stays after this end.
func (s *Server) stays(t Task, end event.Stage) bool {
	keep := cmp.Or(t.Spec.Keep, s.Keep)
	return keep == KeepAlways || keep != KeepNever && end != StageCompleted && t.Session != ""
}

// removeWorkspace removes the workspace of a task that has ended, unless it should stay, or other tasks work there: the
// last of these clears it. It also stays while a copy of it has unmerged changes, unless the task keeps
// nothing.
func (s *Server) removeWorkspace(t Task, end event.Stage) {
	last := t.ID
	if other, known := s.book.task(t.Spec.Beside); known {
		if t, end = other, other.Stage; !over(end) {
			return
		}
	}
	switch {
	case s.stays(t, end):
		if s.travels(t) && t.Session != "" {
			if err := s.arrive(s.ctx, t); err != nil { // else the remaining workspace would be the initial one
				s.warn(err.Error())
			}
		}
		return
	case t.Spec.Folder != "" || s.works(t.ID, last):
		return
	}
	if why := s.holdsWork(t); why != "" {
		s.warn("the workspace of task " + t.ID + " was not removed: " + why)
		return
	}
	if err := s.discard(t); err != nil {
		s.warn("the workspace of task " + t.ID + " can't be removed: " + err.Error())
	}
}
