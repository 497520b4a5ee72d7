package testkit

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"
)

//go:embed testdata/github.json
var githubAPI []byte

// GitHub speaks the REST API of GitHub. It is also tested with GitHub's official client (test/oracle).
type GitHub struct {
	Stand
	// App checks the proof of the app whose installation has the Token; empty means there is no app.
	App func(proof string) error
}

// ServeHTTP implements [http.Handler].
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.git(w, r) {
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3")
	if r.Header.Get("X-GitHub-Api-Version") != "2022-11-28" || r.Header.Get("User-Agent") == "" {
		g.wrong(r, fmt.Errorf("headers are missing"))
	}
	if install := strings.HasSuffix(path, "/installation") || strings.HasSuffix(path, "/access_tokens"); install && g.App != nil {
		g.installed(w, r, path)
		return
	}
	g.serve(w, r, newContract(githubAPI), path, g.answer)
}

// installed answers an app.
func (g *GitHub) installed(w http.ResponseWriter, r *http.Request, path string) {
	op, _, known := newContract(githubAPI).find(r.Method, path)
	if err := g.App(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil || !known {
		status(w, http.StatusUnauthorized)
		return
	}
	out := object{"id": 7}
	if r.Method == http.MethodPost {
		g.add(path, nil)
		out = object{"token": g.Token, "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	}
	g.write(w, r, op, out)
}

func hubSaid(who, text string) object {
	return object{"user": object{"login": who}, "body": text, "created_at": stood}
}

func (g *GitHub) answer(path string, args []string, r *http.Request, body map[string]any) any {
	name, ours := strings.CutPrefix(path, "/repos/ann/shop")
	if !ours {
		return nil
	}
	if r.Method == http.MethodPost {
		return g.post(name, body)
	}
	switch name {
	case "":
		return object{"default_branch": "main"}
	case "/issues/12", "/issues/13":
		return hubIssue(name)
	case "/pulls/13":
		if strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.github.") && strings.HasSuffix(r.Header.Get("Accept"), "diff") {
			return "diff --git a/sum.go b/sum.go\n--- a/sum.go\n+++ b/sum.go\n@@ -1 +1 @@\n-a-b\n+a+b\n"
		}
		return object{"number": 13, "title": "Mend the sum", "state": "open", "head": object{"ref": "sums", "sha": headHash}}
	case "/issues/12/comments", "/issues/13/comments":
		return paged(g.comments(name), r)
	case "/pulls/13/comments":
		c := hubSaid("erin", "Why not before?")
		c["path"], c["line"] = "sum.go", 1
		return paged([]object{c}, r)
	case "/pulls":
		return g.pulls(r)
	}
	return g.checked(name, args[len(args)-1], r)
}

func hubIssue(name string) object {
	issue := hubSaid("bob", "The sum is off by one.\u001b[2J Run `make test`.")
	issue["number"], issue["title"], issue["state"], issue["labels"] = 12, "Wrong sum", "open", []object{{"name": "bug"}, {"name": "sums"}}
	if name == "/issues/13" {
		issue = hubSaid("carol", "Sums right.")
		issue["number"], issue["title"], issue["state"], issue["labels"] = 13, "Mend the sum", "open", []object{}
		issue["pull_request"] = object{"url": "https://api.github.com/repos/ann/shop/pulls/13"}
	}
	return issue
}

func (g *GitHub) comments(name string) (all []object) {
	if name == "/issues/12/comments" {
		for n := range 130 {
			all = append(all, hubSaid("dan", fmt.Sprintf("comment %d of 130", n+1)))
		}
	}
	for i, m := range g.at(name) {
		c := hubSaid("inspan", m["body"].(string))
		c["html_url"] = fmt.Sprintf("https://github.com/ann/shop/issues/12#issuecomment-%d", i)
		all = append(all, c)
	}
	return all
}

// pulls returns the opened pull requests that match the query.
func (g *GitHub) pulls(r *http.Request) []object {
	var all []object
	for i, m := range g.at("/pulls") {
		q := r.URL.Query()
		if q.Get("head") == "ann:"+m["head"].(string) && q.Get("base") == m["base"] {
			all = append(all, object{"number": 20 + i, "html_url": fmt.Sprintf("https://github.com/ann/shop/pull/%d", 20+i)})
		}
	}
	return paged(all, r)
}

// checked returns the checks of a commit.
func (g *GitHub) checked(name, commit string, r *http.Request) any {
	switch name {
	case "/commits/" + commit + "/check-runs":
		return object{"total_count": 2, "check_runs": []object{
			{"name": "build", "status": "completed", "conclusion": "success"}, {"name": "lint", "status": "in_progress", "conclusion": nil},
		}}
	case "/commits/" + commit + "/status":
		var all []object
		for _, m := range g.at("/statuses/" + commit) {
			all = append(all, object{"context": m["context"], "state": m["state"]})
		}
		return object{"state": "pending", "statuses": paged(all, r)}
	}
	return nil
}

func (g *GitHub) post(name string, body map[string]any) any {
	n := g.add(name, body)
	switch {
	case strings.HasSuffix(name, "/comments"):
		return object{"id": n, "body": body["body"], "html_url": fmt.Sprintf("https://github.com/ann/shop/issues/12#issuecomment-%d", n)}
	case name == "/pulls":
		return object{"number": n, "html_url": fmt.Sprintf("https://github.com/ann/shop/pull/%d", n)}
	}
	return object{"state": body["state"], "context": body["context"]}
}
