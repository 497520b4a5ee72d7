package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/install/running"
)

// With an engine a task has two processes: the server, which follows the log of its session and moves its
// stages, and the worker that the engine chooses, which drives the session. They share the store and, unless
// workspaces travel, their folders, and nothing else.

// supervise follows a task whose session is driven by a worker, until its run has stopped. Every message to the
// session, from any sender, wakes it.
func (w *work) supervise(ctx context.Context, t *Task) error {
	seen, err := (&inspan.Host{Store: w.Sessions}).Watch(w.ctx, t.Session)
	if err != nil {
		return err
	}
	defer seen.Close()
	after, until, wake := seen.Status().Seq, ctx, true
	var said event.Body
	quiet, stuck := firstLook, false
	for {
		st := seen.Status()
		if !stuck {
			if err := w.attitude(t, st); err != nil {
				return err
			}
		}
		switch {
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case st.Stopped != nil, t.Spec.Open && !st.Active:
			return w.settle(ctx, t, st)
		case until == ctx && ctx.Err() != nil && stuck: // nothing would react to it
			return w.giveUp(ctx, t)
		case until == ctx && ctx.Err() != nil: // it was cancelled, or is late; its end is still followed
			until, wake = w.ctx, true
			stop := event.Cancelled{By: w.interrupter(t.ID), Reason: why(ctx).Error(), All: true}
			if err := seen.Send(w.ctx, stop); err != nil {
				return err
			}
		}
		for told := false; wake; { // with the message, or with the content of its log
			err := w.Engine.Wake(w.ctx, t.Session, said)
			if err == nil || w.ctx.Err() != nil {
				break
			}
			if !told {
				w.warn("can't reach the engine, trying again: " + err.Error())
				told = true
			}
			_ = keep.Sleep(w.ctx, again)
		}
		before := after
		if after, said, err = w.heed(until, seen, after, quiet); err != nil {
			return err
		}
		wake = said != nil
		if after > before {
			quiet, stuck = firstLook, false
			continue
		}
		quiet = min(2*quiet, mostQuiet)
		if stuck, err = w.stuck(t); err != nil {
			return err
		}
		if stuck && until == w.ctx {
			return w.giveUp(ctx, t)
		}
	}
}

// If nothing happens in a session for this long, the engine is asked whether it is stuck, and then less and
// less often.
const (
	firstLook = 5 * again
	mostQuiet = 5 * time.Minute
)

// stuck reports whether no worker can continue a session, and records it.
func (w *work) stuck(t *Task) (bool, error) {
	cause, err := w.Engine.Stuck(w.ctx, t.Session)
	if err != nil {
		cause = "" // an engine that can't be reached is asked again
	}
	switch {
	case cause == "":
		return false, nil
	case t.Stage != StageRunning:
		return t.Why != "", nil // it waits for a person, or this was reported before
	}
	w.warn("no worker can continue task " + t.ID + ": " + cause)
	return true, w.to(w.ctx, t, event.Staged{Stage: StageWaiting, Why: "workers: " + cause})
}

// giveUp ends a task that is to end and that no worker can continue.
func (w *work) giveUp(ctx context.Context, t *Task) error {
	err := w.end(ctx, *t, why(ctx), nil)
	*t, _ = w.book.task(t.ID)
	return err
}

// heed follows a session until a message, a decision, a question or its end comes, nothing has happened for some
// time, or ctx is done. Said is a message for the driver of the session; nil means none.
func (w *work) heed(ctx context.Context, seen *inspan.Watch, after uint64, quiet time.Duration) (last uint64, said event.Body, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	late := time.AfterFunc(quiet, stop)
	defer late.Stop()
	for e, err := range seen.Events(ctx, after) {
		if err != nil {
			return after, nil, err
		}
		late.Reset(quiet)
		after = e.Seq
		w.saw(e)
		if event.Input(e.Body) {
			return after, e.Body, nil
		}
		if turns(e.Body) {
			break
		}
	}
	return after, nil, nil
}

// Work is the work of a process for an engine: see [running.Work].
type Work = running.Work

// Work drives sessions of tasks that the engine gives to this process, until ctx ends. Then running calls have
// as long as the drain, and other workers continue the sessions. It is for a Server that is not started:
// another process serves the same store, with the same fields and, unless workspaces travel, the same folders.
func (s *Server) Work(ctx context.Context, w Work) error {
	if s.Engine == nil {
		return errors.New("work: there is no engine")
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	s.Dir = keep.Real(dir)
	log, err := newReader(ctx, s.Sessions)
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	s.book = newBook(log, s.Redact)
	s.book.whose, s.secrets = s.Whose, &oauth.Keychain{Dir: filepath.Join(s.State, "server-secrets")}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wake, s.opens.Most = make(chan struct{}, 1), 1
	err = s.book.catchUp(ctx)
	if err == nil {
		s.wg.Go(s.follow)
		s.wg.Go(s.sweepCopies)
		w.OnEvent = s.saw
		w.Open = func(ctx context.Context, id string) (*inspan.Session, error) {
			if err := s.book.catchUp(ctx); err != nil { // the server may have just written to it
				return nil, err
			}
			return s.reopen(ctx, id)
		}
		err = s.Engine.Work(ctx, w)
	}
	s.cancel()
	s.wg.Wait()
	return errors.Join(err, log.Close())
}
