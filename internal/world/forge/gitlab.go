package forge

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"time"
)

// lab is a GitLab.
type lab struct{ *caller }

type labUser struct {
	Name string `json:"username"`
}

// labThread is an issue or a merge request.
type labThread struct {
	Title  string   `json:"title"`
	Body   string   `json:"description"`
	State  string   `json:"state"`
	Author labUser  `json:"author"`
	Labels []string `json:"labels"`
	Branch string   `json:"source_branch"`
	Commit string   `json:"sha"`
	Web    string   `json:"web_url"`
}

// labNote is a comment.
type labNote struct {
	ID     int64     `json:"id"`
	Body   string    `json:"body"`
	Author labUser   `json:"author"`
	At     time.Time `json:"created_at"`
	System bool      `json:"system"` // an automatic note by GitLab
	Place  struct {
		Path string `json:"new_path"`
		Line int    `json:"new_line"`
	} `json:"position"`
}

func (l *lab) project(path string) string { return "/projects/" + url.PathEscape(path) }

func (l *lab) at(n Name) string {
	if n.Merge {
		return l.project(n.Project) + "/merge_requests/" + n.Number
	}
	return l.project(n.Project) + "/issues/" + n.Number
}

func (l *lab) thread(ctx context.Context, n Name) (t thread, err error) {
	var w labThread
	if err := l.get(ctx, l.at(n), "", &w); err != nil {
		return t, err
	}
	t = thread{
		kind: "issue", title: w.Title, body: w.Body, state: w.State, author: w.Author.Name, labels: w.Labels,
		branch: w.Branch, commit: w.Commit,
	}
	if !n.Merge {
		return t, nil
	}
	t.kind = "merge request"
	t.diff, err = l.diff(ctx, n)
	return t, err
}

// diff returns the diff of a merge request, in git's format.
func (l *lab) diff(ctx context.Context, n Name) (string, error) {
	type change struct {
		Old  string `json:"old_path"`
		New  string `json:"new_path"`
		Diff string `json:"diff"`
		Born bool   `json:"new_file"`
		Dead bool   `json:"deleted_file"`
		Huge bool   `json:"too_large"`
		Shut bool   `json:"collapsed"`
	}
	var b strings.Builder
	for c, err := range pages[change](ctx, l.caller, l.at(n)+"/diffs") {
		if err != nil {
			return "", err
		}
		before, after := "a/"+c.Old, "b/"+c.New
		if c.Born {
			before = "/dev/null"
		}
		if c.Dead {
			after = "/dev/null"
		}
		fmt.Fprintf(&b, "diff --git a/%s b/%s\n--- %s\n+++ %s\n%s", c.Old, c.New, before, after, c.Diff)
		if c.Huge || c.Shut {
			b.WriteString("(GitLab does not show changes that are so large)\n")
		}
		if b.Len() > mostReading {
			break
		}
	}
	return b.String(), nil
}

func (l *lab) notes(ctx context.Context, n Name, _ bool) iter.Seq2[note, error] {
	return func(yield func(note, error) bool) {
		for c, err := range pages[labNote](ctx, l.caller, l.at(n)+"/notes?order_by=created_at&sort=asc") {
			if err == nil && c.System {
				continue
			}
			one := note{author: c.Author.Name, body: c.Body, at: c.At, web: l.web(n, c.ID)}
			if c.Place.Path != "" {
				one.place = fmt.Sprintf("%s:%d", c.Place.Path, c.Place.Line)
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// web returns the address of a comment.
func (l *lab) web(n Name, id int64) string {
	what := "issues"
	if n.Merge {
		what = "merge_requests"
	}
	return fmt.Sprintf("%s/%s/-/%s/%s#note_%d", l.Web(), n.Project, what, n.Number, id)
}

func (l *lab) comment(ctx context.Context, n Name, body string) (string, error) {
	var made labNote
	err := l.post(ctx, l.at(n)+"/notes", map[string]any{"body": body}, &made)
	return l.web(n, made.ID), err
}

func (l *lab) base(ctx context.Context, project string) (string, error) {
	var p struct {
		Branch string `json:"default_branch"`
	}
	err := l.get(ctx, l.project(project), "", &p)
	return p.Branch, err
}

func (l *lab) proposed(ctx context.Context, project string, p Proposal) (string, error) {
	q := url.Values{"state": {"opened"}, "source_branch": {p.Branch}, "target_branch": {p.Base}}
	for one, err := range pages[labThread](ctx, l.caller, l.project(project)+"/merge_requests?"+q.Encode()) {
		return one.Web, err
	}
	return "", nil
}

func (l *lab) propose(ctx context.Context, project string, p Proposal) (string, error) {
	var made labThread
	body := map[string]any{"title": p.Title, "source_branch": p.Branch, "target_branch": p.Base, "description": p.Body}
	err := l.post(ctx, l.project(project)+"/merge_requests", body, &made)
	return made.Web, err
}

func (l *lab) setStatus(ctx context.Context, project, commit string, s Status) error {
	states := map[State]string{Pending: "pending", Passed: "success", Failed: "failed"}
	body := map[string]any{"state": states[s.State], "name": s.Name, "description": s.Text}
	return l.post(ctx, l.project(project)+"/statuses/"+commit, body, nil)
}

func (l *lab) checks(ctx context.Context, project, commit string) (out []Check, err error) {
	type status struct{ Name, Status string }
	for s, err := range pages[status](ctx, l.caller, l.project(project)+"/repository/commits/"+url.PathEscape(commit)+"/statuses") {
		if err != nil {
			return out, err
		}
		state := Pending
		switch s.Status {
		case "success", "skipped":
			state = Passed
		case "failed", "canceled":
			state = Failed
		}
		out = append(out, Check{s.Name, state})
	}
	return out, nil
}
