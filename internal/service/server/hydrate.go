package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
)

const hydration = 2 * time.Minute // the time limit for making a workspace

// workspace returns the folder that a task works in.
func (s *Server) workspace(t Task) string {
	if t.Spec.Folder != "" {
		return t.Spec.Folder
	}
	if other, known := s.book.task(t.Spec.Beside); known {
		return s.workspace(other)
	}
	return filepath.Join(s.Dir, t.ID)
}

// hydrate makes the workspace of a task and opens a session there. A workspace that a crash has left half made
// is made again.
func (w *work) hydrate(ctx context.Context, t *Task) (*inspan.Session, error) {
	ctx, end := context.WithTimeoutCause(ctx, hydration, fmt.Errorf("its workspace was not ready within %s", hydration))
	defer end()
	dir := w.workspace(*t)
	err := w.makeWorkspace(ctx, *t, dir)
	if err == nil {
		err = w.furnish(ctx, *t, dir)
	}
	if err == nil && w.travels(*t) {
		err = w.Carry.At(dir).Begin()
	}
	if err != nil {
		if short := w.short(); short != "" {
			return nil, &DiskError{short}
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	issue, err := w.issue(ctx, *t)
	if err != nil {
		return nil, err
	}
	host, err := w.host(*t)
	if err != nil {
		return nil, err
	}
	opened, err := w.open(w.ctx, host, *t, dir)
	if err != nil {
		return nil, err
	}
	if issue != nil {
		err = opened.Send(w.ctx, *issue)
	}
	stage := StageIdle
	if prompt := t.wants(); prompt != "" && err == nil { // first, so that an interruption applies to it
		stage = StageRunning
		err = opened.Send(w.ctx, event.Said{Parts: llm.Say(prompt), By: t.By, Message: t.ID})
	}
	if err == nil {
		m := event.Staged{Stage: stage, Session: opened.ID()}
		if t.Spec.Fork != nil {
			m.Result, err = json.Marshal(Result{Cost: opened.Status().Cost})
		}
		if err == nil {
			err = w.to(w.ctx, t, m)
		}
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// furnish puts into a workspace what a door has stored for it.
func (w *work) furnish(ctx context.Context, t Task, dir string) error {
	if w.Furnish == nil {
		return nil
	}
	v, err := w.For(ctx, t.ID, "")
	if err != nil {
		return err
	}
	return w.Furnish(v, t, dir)
}

func (w *work) makeWorkspace(ctx context.Context, t Task, dir string) error {
	switch {
	case t.Spec.Session != "":
		return nil // its session already works there
	case t.Spec.Folder != "":
		return w.checkFolder("folder", dir) // it may have been replaced by now
	}
	if t.Spec.Beside != "" {
		_, err := os.Stat(dir)
		return err
	}
	if err := w.discardHere(t); err != nil {
		return err
	}
	r := t.Spec.Repository
	if r == nil {
		return os.MkdirAll(dir, 0o700)
	}
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return err
	}
	if err := w.clone(ctx, Checkout{Repository: *r}, dir); err != nil {
		return Within("repository", err)
	}
	_, err := w.Git(ctx, dir, "checkout", "--quiet", "-b", branch(t))
	return err
}

// branch returns the branch that a task works on in a clone.
func branch(t Task) string {
	if r := t.Spec.Repository; r != nil && r.Branch != "" {
		return r.Branch
	}
	return "inspan/" + t.ID
}

const mostEvidence = 100 // most commits or files that are named

// evidence returns the visible results of the work in a workspace that is a git repository.
func (s *Server) evidence(ctx context.Context, t Task) (e Evidence) {
	if t.Spec.Repository == nil {
		return Evidence{}
	}
	if err := s.arrive(ctx, t); err != nil {
		return Evidence{Problem: err.Error()}
	}
	ctx, end := context.WithTimeout(ctx, hydration)
	defer end()
	dir := s.workspace(t)
	// Programs in the workspace's git settings are not run: where commands run without the sandbox, an agent
	// can have written any setting.
	if err := worktree.Inert(dir); err != nil {
		return Evidence{Problem: err.Error()}
	}
	calm := []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "--no-optional-locks"}
	ask := func(args ...string) string {
		out, err := s.Git(ctx, dir, slices.Concat(calm, args)...)
		if err != nil && e.Problem == "" {
			e.Problem = "git " + args[0] + ": " + err.Error()
		}
		return strings.TrimSpace(out)
	}
	e.Branch = ask("rev-parse", "--abbrev-ref", "HEAD")
	e.Base = ask("merge-base", "HEAD", base(t))
	e.Commits = lines(ask("log", "--format=%h %s", fmt.Sprintf("-%d", mostEvidence), e.Base+"..HEAD"))
	e.Uncommitted = lines(ask("status", "--porcelain", "--ignore-submodules=all"))
	if len(e.Commits) > 0 {
		remote := ask("for-each-ref", "--format=%(objectname)", "refs/remotes/origin/"+e.Branch)
		e.Pushed = remote != "" && remote == ask("rev-parse", "HEAD")
	}
	return e
}

// base returns the branch of the remote where a task began.
func base(t Task) string {
	if t.Spec.Repository.Ref != "" {
		return t.Spec.Repository.Ref
	}
	return "origin/HEAD"
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	all := strings.Split(s, "\n")
	return all[:min(len(all), mostEvidence)]
}
