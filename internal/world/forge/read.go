package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	pullRequest  = "pull request" // of GitHub
	mostReading  = 350_000        // bytes of an issue, some 100,000 tokens
	mostComments = 300
)

// thread is an issue, or a pull or merge request.
type thread struct {
	kind, title, body, state, author string

	labels []string
	notes  []note
	branch string // the branch to merge; empty for an issue
	commit string // its last commit
	diff   string
	checks []Check
}

// note is a comment on a thread.
type note struct {
	author, body string

	at    time.Time
	place string // in a file; empty means it concerns the whole
	web   string // address
}

// Read returns the text of an issue with its comments, and of a pull or merge request also with its changes and
// checks. All of it is untrusted.
func (s Site) Read(ctx context.Context, n Name) (string, error) {
	_, a, err := s.open(ctx, n.Project)
	if err != nil {
		return "", err
	}
	t, err := a.thread(ctx, n)
	if err != nil {
		return "", err
	}
	for one, err := range a.notes(ctx, n, t.kind == pullRequest) {
		if err != nil {
			return "", err
		}
		if t.notes = append(t.notes, one); len(t.notes) == mostComments {
			break
		}
	}
	if t.commit != "" {
		t.checks, err = a.checks(ctx, n.Project, t.commit)
		if r, ok := errors.AsType[*refusal](err); ok && (r.status == http.StatusForbidden || r.status == http.StatusNotFound) {
			err = nil // a token may cover only issues
		}
	}
	return t.told(s.kind(), n), err
}

// told returns the text of a thread for an agent.
func (t thread) told(site Kind, n Name) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s, %s, by %s: %s\n", site, t.kind, n, t.state, t.author, t.title)
	if len(t.labels) > 0 {
		b.WriteString("Labels: " + strings.Join(t.labels, ", ") + "\n")
	}
	if t.branch != "" {
		fmt.Fprintf(&b, "Branch: %s\n", t.branch)
	}
	for _, c := range t.checks {
		fmt.Fprintf(&b, "Check %s: %s\n", c.Name, c.State)
	}
	b.WriteString("\n" + t.body + "\n")
	for _, c := range t.notes {
		fmt.Fprintf(&b, "\n--- %s, %s", c.author, c.at.UTC().Format("2006-01-02 15:04"))
		if c.place != "" {
			b.WriteString(", on " + c.place)
		}
		b.WriteString(":\n" + c.body + "\n")
	}
	if t.diff != "" {
		b.WriteString("\nIts changes:\n\n" + t.diff)
	}
	return text.Cut(text.Clean(b.String()), mostReading)
}
