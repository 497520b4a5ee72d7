package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	mostBody  = 60_000 // bytes of a comment or a description; GitHub accepts 65,536 characters
	mostTitle = 250
)

// Comment adds a comment to a thread and returns its address. Key is unique to the comment: if a comment with
// it exists, none is added.
func (s Site) Comment(ctx context.Context, n Name, key, body string) (at string, err error) {
	c, a, err := s.open(ctx, n.Project)
	if err != nil {
		return "", err
	}
	mark := "<!-- inspan:" + key + " -->"
	look := func() (string, error) {
		for one, err := range a.notes(ctx, n, false) {
			if err != nil || strings.Contains(one.body, mark) {
				return one.web, err
			}
		}
		return "", nil
	}
	return c.createOnce(ctx, look, func() (string, error) { return a.comment(ctx, n, clean(body)+"\n\n"+mark) })
}

// images matches the beginnings of images and of other things that a page loads.
var images = regexp.MustCompile(`!\[|<(?i:img|image|picture|source|video|audio|svg|input|object|embed|iframe|link|style)\b`)

// clean removes imitations of our marker from a text to publish. It shows images as text, because a page loads their
// addresses, which a model can be made to fill with data. The Action does the same (scripts/markdown.jq).
func clean(body string) string {
	body = images.ReplaceAllStringFunc(text.Clean(body), func(begin string) string {
		if tag, ok := strings.CutPrefix(begin, "<"); ok {
			return "&lt;" + tag
		}
		return `!\[`
	})
	return text.Cut(strings.ReplaceAll(strings.TrimSpace(body), "<!-- inspan:", "<!-- "), mostBody)
}

// Proposal is a branch to be merged.
type Proposal struct {
	Branch string
	Base   string // the target branch; empty means the project's default
	Title  string
	Body   string // markdown
}

// Check returns an error for invalid branches.
func (p Proposal) Check() error {
	for _, branch := range []string{p.Branch, cmp.Or(p.Base, "main")} {
		form := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+@/-]{0,199}$`)
		if !form.MatchString(branch) || strings.Contains(branch, "..") || strings.Contains(branch, "//") ||
			strings.Contains(branch, "@{") || strings.HasSuffix(branch, "/") || strings.HasSuffix(branch, ".lock") {
			return fmt.Errorf("%.100q is not the name of a branch", branch)
		}
	}
	if p.Branch == p.Base {
		return fmt.Errorf("%s can't be merged into itself", p.Branch)
	}
	return nil
}

// Propose opens a pull or merge request for an existing branch, and returns its address. If one is open for the
// branch, it returns that.
func (s Site) Propose(ctx context.Context, project string, p Proposal) (at string, err error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	c, a, err := s.open(ctx, project)
	if err != nil {
		return "", err
	}
	if p.Base == "" {
		if p.Base, err = a.base(ctx, project); err != nil {
			return "", err
		}
	}
	p.Title, p.Body = text.Cut(text.Line(p.Title), mostTitle), clean(p.Body)
	if p.Title == "" {
		return "", errors.New("a pull request needs a title")
	}
	return c.createOnce(ctx,
		func() (string, error) { return a.proposed(ctx, project, p) },
		func() (string, error) { return a.propose(ctx, project, p) })
}

// State is the state of a check.
type State string

// States of checks.
const (
	Pending State = "pending"
	Passed  State = "passed"
	Failed  State = "failed"
)

// Status is a named status of a commit; the last one with a name counts.
type Status struct {
	Name  string
	State State
	Text  string // a short line
}

// Check is the result of a check of a commit, usually by a CI.
type Check struct {
	Name  string
	State State
}

// SetStatus sets a status of a commit, given by its full hash.
func (s Site) SetStatus(ctx context.Context, project, commit string, status Status) error {
	if !regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(commit) {
		return fmt.Errorf("%.100q is not the full hash of a commit", commit)
	}
	c, a, err := s.open(ctx, project)
	if err != nil {
		return err
	}
	status.Text = text.Cut(text.Line(status.Text), 140)
	return c.try(ctx, func() error { return a.setStatus(ctx, project, commit, status) })
}

// PushAs returns the name and the password for pushes by git, for its basic authentication header.
func (s Site) PushAs(ctx context.Context, project string) (user, password string, err error) {
	c, _, err := s.open(ctx, project)
	switch {
	case err != nil:
		return "", "", err
	case c.token == "":
		return "", "", fmt.Errorf("set %s_TOKEN, which is needed to push to %s", strings.ToUpper(string(s.kind())), s.Web())
	case s.kind() == GitLab:
		return "oauth2", c.token, nil
	}
	return "x-access-token", c.token, nil
}
