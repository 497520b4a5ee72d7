package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/llm/script"
)

// Travelling workspaces (Setup.Carry): their states are stored as blobs of the sessions. Each machine that handles
// a task makes a folder from the newest state. The folder on the driver's machine is newer than that state; the
// others are read-only copies.

// Travel turns on travelling workspaces. Their records on this machine are next to them, because several servers
// may share the folder State.
func (s *Server) Travel() {
	s.Carry = &running.Carriers{Dir: filepath.Join(s.Dir, ".copies"), Sessions: s.Sessions, Spare: s.Floor}
}

// travels reports whether the workspace of a task travels.
func (s *Server) travels(t Task) bool {
	return s.Carry != nil && !t.Spec.Elsewhere && t.Spec.Folder+t.Spec.Session == ""
}

// arrive makes sure that the workspace of a task is here, as its session has left it. Otherwise an agent would find
// an empty folder and believe that the workspace is empty.
func (s *Server) arrive(ctx context.Context, t Task) error {
	dir := s.workspace(t)
	if s.Carry != nil && t.Spec.Elsewhere {
		return os.MkdirAll(dir, 0o700) // it is empty
	}
	var err error
	if s.travels(t) {
		err = s.Carry.At(dir).Arrive(ctx, t.Session)
	} else {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return fmt.Errorf("the workspace of task %s is not here: %w", t.ID, err)
	}
	return nil
}

// holdsWork describes the copy of a task's workspace that has unmerged changes; empty means there is none, or the
// task keeps nothing.
func (s *Server) holdsWork(t Task) string {
	if t.Session == "" || cmp.Or(t.Spec.Keep, s.Keep) == KeepNever {
		return ""
	}
	return s.unmerged(t)
}

func (s *Server) unmerged(t Task) string {
	copies, err := s.copies().Unmerged(s.ctx, t.Session)
	switch {
	case err != nil:
		return "can't check whether a copy of it has changes: " + err.Error()
	case len(copies) == 0:
		return ""
	}
	return fmt.Sprintf("agent %s has unmerged changes of %s in a copy of it; "+
		"DELETE /api/v1/tasks/%s/workspace?discard=true removes them too", copies[0].Agent, text.Count(len(copies[0].Changed), "file"), t.ID)
}

// copies returns the table of the separate copies in which agents work.
func (s *Server) copies() *running.Table {
	return &running.Table{Sessions: s.Sessions, Trees: s.Trees}
}

// discard removes the workspace of a task and its copies, wherever this server can reach it.
func (s *Server) discard(t Task) (err error) {
	if t.Session != "" { // before the workspace goes, because git lists the copies in it
		err = s.copies().DropCopies(s.ctx, t.Session)
	}
	err = errors.Join(err, s.discardHere(t))
	if s.travels(t) && t.Session != "" {
		err = errors.Join(err, s.Carry.Forget(s.ctx, t.Session))
		s.quota.note(t.Session, 0)
	}
	return err
}

// discardHere removes the workspace of a task from this machine.
func (s *Server) discardHere(t Task) error {
	if s.travels(t) {
		return s.Carry.Drop(s.workspace(t))
	}
	return os.RemoveAll(s.workspace(t))
}

// sweepCopies removes the workspaces of finished tasks from this machine, until the server ends.
func (s *Server) sweepCopies() {
	for s.Carry != nil && s.ctx.Err() == nil {
		roots, err := s.Carry.Roots()
		err = errors.Join(err, s.book.catchUp(s.ctx)) // a task is in the book before it has a workspace
		for _, root := range roots {
			if err == nil && filepath.Dir(root) == s.Dir && s.mustLeave(filepath.Base(root)) {
				err = s.Carry.Drop(root)
			}
		}
		if err != nil {
			s.warn("can't remove workspaces of finished tasks: " + err.Error())
		}
		_ = keep.Sleep(s.ctx, again)
		select {
		case <-s.wake: // the book has changed
		case <-s.ctx.Done():
		}
	}
}

// mustLeave reports whether the workspace of a task must leave this machine.
func (s *Server) mustLeave(task string) bool {
	t, known := s.book.task(task)
	if !known || !over(t.Stage) || !s.stays(t, t.Stage) {
		return !known || over(t.Stage) && s.holdsWork(t) == ""
	}
	if !s.Fleeting {
		return false
	}
	state, err := s.Carry.State(s.ctx, t.Session)
	return err == nil && state.Stays == "" // otherwise it is the only one
}

// workspaceSize returns the size of a task's workspace in bytes: that of its folder here, which a call may be changing, or
// of its stored state if that is larger.
func (s *Server) workspaceSize(t Task) int64 {
	here := weight(s.workspace(t))
	if !s.travels(t) || t.Session == "" || over(t.Stage) && !s.stays(t, t.Stage) {
		return here
	}
	if bytes, known := s.quota.state(t.Session); known {
		return max(here, bytes)
	}
	bytes, err := s.Carry.Held(s.ctx, t.Session)
	if err == nil {
		s.quota.note(t.Session, bytes)
	}
	return max(here, bytes)
}

// InWorkspace calls f to change the workspace of a task that is not at work.
func (v *Visit) InWorkspace(t Task, f func(dir string) error) error {
	dir := v.workspace(t)
	if !v.travels(t) {
		return f(dir)
	}
	if err := v.arrive(v, t); err != nil {
		return err
	}
	log, err := v.Sessions.Open(v, t.Session)
	if err != nil {
		return err
	}
	agent := &inspan.Agent{Model: &script.Model{}}
	v.Carry.At(dir).Wire(agent, inspan.SessionSpec{ID: t.Session, Root: dir, Blobs: log.Blobs()}, true)
	s, err := agent.Open(v, log)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	err = s.Rewind(v, 0, func(context.Context, *event.Restored) (*event.Restored, error) { return nil, f(dir) })
	if errors.Is(err, inspan.ErrBusy) || errors.Is(err, inspan.ErrUnreadMessage) || running.Elsewhere(err) {
		err = Conflict("the agent works, or is about to start; try again when it is idle")
	}
	return errors.Join(err, s.Close())
}
