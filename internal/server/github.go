package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/llm"
)

// GitHub is where issues and pull requests are read, over its REST API of version 2022-11-28.
type GitHub struct {
	API string // address; empty: https://api.github.com
	// Token is what it is asked with for tasks of no tenant, whose submitters could read with it what
	// is not theirs. Empty: none.
	Token string
}

const (
	mostReading  = 350_000 // bytes of an issue, which are some 100,000 tokens
	mostFetched  = 4 << 20 // bytes of one answer
	mostComments = 300
	perPage      = 100
	mostTries    = 3
)

var issueForm = regexp.MustCompile(`^(?:https://[^/]+/)?([A-Za-z0-9-]+)/([A-Za-z0-9._-]+)(?:#|/issues/|/pull/)([1-9][0-9]*)$`)

// issue is an issue or a pull request.
type issue struct{ owner, repo, number string }

func (i issue) String() string { return i.owner + "/" + i.repo + "#" + i.number }

// checkIssue reads what a client calls an issue.
func checkIssue(named string) (issue, error) {
	m := issueForm.FindStringSubmatch(named)
	if m == nil || len(m[1]) > 39 || len(m[2]) > 100 || len(m[3]) > 9 || m[2] == "." || m[2] == ".." {
		return issue{}, Wrong("github", "not an issue or pull request", "OWNER/REPO#NUMBER, or its address")
	}
	return issue{m[1], m[2], m[3]}, nil
}

// written is something that somebody has written on GitHub.
type written struct {
	Title  string                  `json:"title"`
	Body   string                  `json:"body"`
	State  string                  `json:"state"`
	User   struct{ Login string }  `json:"user"`
	Labels []struct{ Name string } `json:"labels"`
	At     time.Time               `json:"created_at"`
	Path   string                  `json:"path"` // of a comment on code
	Line   int                     `json:"line"`
	Pull   json.RawMessage         `json:"pull_request"`
}

// hub reads from GitHub for one task.
type hub struct {
	GitHub
	client *http.Client
}

// hub is how GitHub is asked for a tenant.
func (s *Server) hub(tenant string) hub {
	h := hub{GitHub: s.GitHub}
	g := &netguard.Guard{MaxBytes: mostFetched, Timeout: 30 * time.Second}
	if h.API != "" { // which the operator has set
		g.Local = netguard.Anywhere()
	}
	if h.API = strings.TrimSuffix(cmp.Or(h.API, "https://api.github.com"), "/"); tenant != "" {
		h.Token = ""
	}
	h.client = g.Unredirected()
	return h
}

// get reads a document, again if GitHub fails for a moment.
func (h hub) get(ctx context.Context, path, kind string, into func([]byte) error) error {
	for try := 1; ; try++ {
		status, raw, err := h.ask(ctx, path, kind)
		switch {
		case err == nil && status == http.StatusOK:
			return into(raw)
		case err == nil && status < 500 && h.Token == "":
			const hint = "what is private needs GITHUB_TOKEN where the server starts, and a task of no tenant"
			return fmt.Errorf("GitHub answers %d for %s; %s", status, path, hint)
		case err == nil && status < 500:
			return fmt.Errorf("GitHub answers %d for %s", status, path)
		case err == nil:
			err = fmt.Errorf("GitHub answers %d for %s", status, path)
		}
		if try == mostTries || keep.Sleep(ctx, time.Duration(try)*time.Second) != nil {
			return err
		}
	}
}

func (h hub) ask(ctx context.Context, path, kind string) (status int, raw []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.API+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", kind)
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	req.Header.Set("User-Agent", "inspan")
	if h.Token != "" {
		req.Header.Set("Authorization", "Bearer "+h.Token)
	}
	res, err := h.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	raw, err = io.ReadAll(res.Body)
	return res.StatusCode, raw, errors.Join(err, res.Body.Close())
}

const asJSON = "application/vnd.github+json"

// list reads a list of comments.
func (h hub) list(ctx context.Context, path string) (all []written, err error) {
	for page := 1; len(all) < mostComments; page++ {
		var some []written
		err := h.get(ctx, fmt.Sprintf("%s?per_page=%d&page=%d", path, perPage, page), asJSON, func(raw []byte) error {
			return json.Unmarshal(raw, &some)
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < perPage {
			break
		}
	}
	return all, nil
}

// read is the text of an issue with its comments, and of a pull request with its changes.
func (h hub) read(ctx context.Context, i issue) (string, error) {
	base := "/repos/" + i.owner + "/" + i.repo
	var w written
	if err := h.get(ctx, base+"/issues/"+i.number, asJSON, func(raw []byte) error { return json.Unmarshal(raw, &w) }); err != nil {
		return "", err
	}
	comments, err := h.list(ctx, base+"/issues/"+i.number+"/comments")
	if err != nil {
		return "", err
	}
	kind, diff := "issue", ""
	if len(w.Pull) > 0 && string(w.Pull) != "null" {
		kind = "pull request"
		more, err := h.list(ctx, base+"/pulls/"+i.number+"/comments")
		if err != nil {
			return "", err
		}
		comments = append(comments, more...)
		err = h.get(ctx, base+"/pulls/"+i.number, "application/vnd.github.diff", func(raw []byte) error { diff = string(raw); return nil })
		if err != nil {
			return "", err
		}
	}
	return w.told(kind, i, comments, diff), nil
}

// told is what the agent reads of an issue.
func (w written) told(kind string, i issue, comments []written, diff string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "GitHub %s %s, %s, by %s: %s\n", kind, i, w.State, w.User.Login, w.Title)
	for n, label := range w.Labels {
		b.WriteString(map[bool]string{true: "Labels: ", false: ", "}[n == 0] + label.Name)
	}
	b.WriteString("\n\n" + w.Body + "\n")
	for _, c := range comments {
		fmt.Fprintf(&b, "\n--- %s, %s", c.User.Login, c.At.UTC().Format("2006-01-02 15:04"))
		if c.Path != "" {
			fmt.Fprintf(&b, ", on %s:%d", c.Path, c.Line)
		}
		b.WriteString(":\n" + c.Body + "\n")
	}
	if diff != "" {
		b.WriteString("\nIts changes:\n\n" + diff)
	}
	plain := strings.Map(func(r rune) rune {
		if controls(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(b.String(), "\uFFFD"))
	return text.Cut(plain, mostReading)
}

// issue is what a task is told first of the issue that it is about; nil: it is about none.
func (w *work) issue(ctx context.Context, t Task) (*event.Steered, error) {
	if t.Spec.GitHub == "" {
		return nil, nil
	}
	i, err := checkIssue(t.Spec.GitHub)
	if err != nil {
		return nil, err
	}
	says, err := w.hub(t.Tenant).read(ctx, i)
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
