package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"
)

// hub is a GitHub.
type hub struct{ *caller }

// hubSaid is a text by a user on GitHub.
type hubSaid struct {
	Title  string                  `json:"title"`
	Body   string                  `json:"body"`
	State  string                  `json:"state"`
	User   struct{ Login string }  `json:"user"`
	Labels []struct{ Name string } `json:"labels"`
	At     time.Time               `json:"created_at"`
	Path   string                  `json:"path"` // of a comment on code
	Line   int                     `json:"line"`
	Pull   json.RawMessage         `json:"pull_request"`
	Web    string                  `json:"html_url"`
}

func (h *hub) issue(n Name) string { return "/repos/" + n.Project + "/issues/" + n.Number }
func (h *hub) pull(n Name) string  { return "/repos/" + n.Project + "/pulls/" + n.Number }

func (h *hub) thread(ctx context.Context, n Name) (t thread, err error) {
	var w hubSaid
	if err := h.get(ctx, h.issue(n), "", &w); err != nil {
		return t, err
	}
	t = thread{kind: "issue", title: w.Title, body: w.Body, state: w.State, author: w.User.Login}
	for _, l := range w.Labels {
		t.labels = append(t.labels, l.Name)
	}
	if len(w.Pull) == 0 || string(w.Pull) == "null" {
		return t, nil
	}
	t.kind = pullRequest
	var p struct {
		Head struct {
			Ref string `json:"ref"`
			SHA string `json:"sha"`
		} `json:"head"`
	}
	if err := h.get(ctx, h.pull(n), "", &p); err != nil {
		return t, err
	}
	t.branch, t.commit = p.Head.Ref, p.Head.SHA
	return t, h.get(ctx, h.pull(n), "application/vnd.github.diff", &t.diff)
}

func (h *hub) notes(ctx context.Context, n Name, code bool) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		lists := []string{h.issue(n) + "/comments"}
		if code {
			lists = append(lists, h.pull(n)+"/comments")
		}
		for _, list := range lists {
			for c, err := range pages[hubSaid](ctx, h.caller, list) {
				one := note{author: c.User.Login, body: c.Body, at: c.At, web: c.Web}
				if c.Path != "" {
					one.place = fmt.Sprintf("%s:%d", c.Path, c.Line)
				}
				if !yield(one, err) || err != nil {
					return
				}
			}
		}
	}
}

func (h *hub) comment(ctx context.Context, n Name, body string) (string, error) {
	var made hubSaid
	err := h.post(ctx, h.issue(n)+"/comments", map[string]any{"body": body}, &made)
	return made.Web, err
}

func (h *hub) base(ctx context.Context, project string) (string, error) {
	var p struct {
		Branch string `json:"default_branch"`
	}
	err := h.get(ctx, "/repos/"+project, "", &p)
	return p.Branch, err
}

func (h *hub) proposed(ctx context.Context, project string, p Proposal) (string, error) {
	owner, _, _ := strings.Cut(project, "/")
	q := url.Values{"state": {"open"}, "head": {owner + ":" + p.Branch}, "base": {p.Base}}
	for one, err := range pages[hubSaid](ctx, h.caller, "/repos/"+project+"/pulls?"+q.Encode()) {
		return one.Web, err
	}
	return "", nil
}

func (h *hub) propose(ctx context.Context, project string, p Proposal) (string, error) {
	var made hubSaid
	body := map[string]any{"title": p.Title, "head": p.Branch, "base": p.Base, "body": p.Body}
	err := h.post(ctx, "/repos/"+project+"/pulls", body, &made)
	return made.Web, err
}

func (h *hub) setStatus(ctx context.Context, project, commit string, s Status) error {
	states := map[State]string{Pending: "pending", Passed: "success", Failed: "failure"}
	body := map[string]any{"state": states[s.State], "context": s.Name, "description": s.Text}
	return h.post(ctx, "/repos/"+project+"/statuses/"+commit, body, nil)
}

// checks returns the check runs of apps, and the commit statuses set by others.
func (h *hub) checks(ctx context.Context, project, commit string) (out []Check, err error) {
	at := "/repos/" + project + "/commits/" + url.PathEscape(commit)
	var runs struct {
		Runs []struct{ Name, Status, Conclusion string } `json:"check_runs"`
	}
	if err := h.get(ctx, fmt.Sprintf("%s/check-runs?per_page=%d", at, perPage), "", &runs); err != nil {
		return nil, err
	}
	for _, r := range runs.Runs {
		state := Failed
		if r.Status != "completed" {
			state = Pending
		} else if slices.Contains([]string{"success", "neutral", "skipped"}, r.Conclusion) {
			state = Passed
		}
		out = append(out, Check{r.Name, state})
	}
	var all struct {
		Statuses []struct{ Context, State string } `json:"statuses"`
	}
	err = h.get(ctx, fmt.Sprintf("%s/status?per_page=%d", at, perPage), "", &all)
	for _, s := range all.Statuses {
		state := map[string]State{"pending": Pending, "success": Passed}[s.State]
		if state == "" {
			state = Failed
		}
		out = append(out, Check{s.Context, state})
	}
	return out, err
}
