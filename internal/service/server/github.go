package server

import (
	"context"
	"fmt"
	"regexp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/llm"
)

// issueForm is what [forge.Parse] reads that can be of GitHub, for the contract.
var issueForm = regexp.MustCompile(`^(?:https://[^/]+/)?([A-Za-z0-9-]+)/([A-Za-z0-9._-]+)(?:#|/issues/|/pull/)([1-9][0-9]*)$`)

// checkIssue reads what a client calls an issue. Wherever its address leads, GitHub is asked for it
// at the address that the operator has set.
func checkIssue(named string) (forge.Name, error) {
	n, err := forge.Parse(named)
	if err != nil || !issueForm.MatchString(named) {
		return n, Wrong("github", "not an issue or pull request", "OWNER/REPO#NUMBER, or its address")
	}
	return n, nil
}

// issue is what a task is told first of the issue that it is about; nil: it is about none.
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

// wants is what the prompt of a task says, or what its issue is for.
func (t *Task) wants() string {
	if t.Spec.Prompt == "" && t.Spec.GitHub != "" {
		return "Do what " + t.Spec.GitHub + " on GitHub asks for. Its text is above."
	}
	if t.Spec.Workflow != "" {
		return "/workflow " + t.Spec.Workflow
	}
	return t.Spec.Prompt
}
