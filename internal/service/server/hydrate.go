package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/forge"
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
	if err == nil && w.Furnish != nil { // with the things that a door has stored for it
		var v *Visit
		if v, err = w.For(ctx, t.ID, ""); err == nil {
			err = w.Furnish(v, *t, dir)
		}
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
	_, err := w.Git(ctx, dir, "checkout", "--quiet", "-b", cmp.Or(r.Branch, "inspan/"+t.ID))
	return err
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
	e.Base = ask("merge-base", "HEAD", cmp.Or(t.Spec.Repository.Ref, "origin/HEAD")) // where the task began
	e.Commits = lines(ask("log", "--format=%h %s", fmt.Sprintf("-%d", mostEvidence), e.Base+"..HEAD"))
	e.Uncommitted = lines(ask("status", "--porcelain", "--ignore-submodules=all"))
	if len(e.Commits) > 0 {
		remote := ask("for-each-ref", "--format=%(objectname)", "refs/remotes/origin/"+e.Branch)
		e.Pushed = remote != "" && remote == ask("rev-parse", "HEAD")
	}
	return e
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	all := strings.Split(s, "\n")
	return all[:min(len(all), mostEvidence)]
}

// issueForm matches those forms of [forge.Parse] that can be of GitHub, for the contract.
var issueForm = regexp.MustCompile(`^(?:https://[^/]+/)?([A-Za-z0-9-]+)/([A-Za-z0-9._-]+)(?:#|/issues/|/pull/)([1-9][0-9]*)$`)

// checkIssue parses a client's reference to an issue. Whatever host is in its address, the issue is read from
// the GitHub address that the operator has set.
func checkIssue(named string) (forge.Name, error) {
	n, err := forge.Parse(named)
	if err != nil || !issueForm.MatchString(named) {
		return n, Wrong("github", "not an issue or pull request", "OWNER/REPO#NUMBER, or its address")
	}
	return n, nil
}

// issue returns the first message to a task about its issue; nil means it has none.
func (w *work) issue(ctx context.Context, t Task) (*event.Steered, error) {
	if t.Spec.GitHub == "" {
		return nil, nil
	}
	n, err := checkIssue(t.Spec.GitHub)
	if err != nil {
		return nil, err
	}
	hub := w.GitHub
	if t.Tenant != "" {
		hub.Token = ""
	}
	says, err := hub.Read(ctx, n)
	if err != nil && hub.Token == "" {
		return nil, fmt.Errorf("%w (where the server starts, and for a task of no tenant)", err)
	}
	if err != nil {
		return nil, err
	}
	return &event.Steered{
		Parts: llm.Say(says), By: "GitHub", Origin: event.OriginHook, Message: t.ID + "/github", Taint: event.Taint{Untrusted: true},
	}, nil
}

// wants returns the prompt of a task, or a reference to its issue.
func (t *Task) wants() string {
	if t.Spec.Prompt == "" && t.Spec.GitHub != "" {
		return "Do what " + t.Spec.GitHub + " on GitHub asks for. Its text is above."
	}
	if t.Spec.Workflow != "" {
		return "/workflow " + t.Spec.Workflow
	}
	return t.Spec.Prompt
}
