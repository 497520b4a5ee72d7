package server

import (
	"context"
	"fmt"
	"regexp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/llm"
)

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
