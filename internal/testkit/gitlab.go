package testkit

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
)

//go:embed testdata/gitlab.json
var gitlabAPI []byte

// GitLab speaks the REST API of GitLab, below /api/v4.
type GitLab struct{ Stand }

// ServeHTTP implements [http.Handler].
func (g *GitLab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.git(w, r) {
		return
	}
	g.serve(w, r, newContract(gitlabAPI), strings.TrimPrefix(r.URL.EscapedPath(), "/api/v4"), g.answer)
}

func labSaid(who, text string) object {
	return object{"author": object{"username": who}, "body": text, "created_at": stood, "system": false}
}

func (g *GitLab) answer(path string, args []string, r *http.Request, body map[string]any) any {
	name, ours := strings.CutPrefix(path, "/projects/ann%2Fshop")
	if !ours {
		return nil
	}
	if r.Method == http.MethodPost {
		return g.post(name, body)
	}
	switch name {
	case "":
		return object{"default_branch": "main"}
	case "/issues/12":
		return object{
			"id": 1012, "iid": 12, "title": "Wrong sum", "description": "The sum is off by one.", "state": "opened",
			"author": object{"username": "bob"}, "labels": []string{"bug", "sums"},
		}
	case "/merge_requests/13":
		return object{
			"id": 1013, "iid": 13, "title": "Mend the sum", "description": nil, "state": "opened", "author": object{"username": "carol"},
			"labels": []string{}, "source_branch": "sums", "sha": headHash,
		}
	case "/merge_requests/13/diffs":
		return paged([]object{
			{"old_path": "sum.go", "new_path": "sum.go", "diff": "@@ -1 +1 @@\n-a-b\n+a+b\n", "new_file": false, "deleted_file": false},
			{"old_path": "new.go", "new_path": "new.go", "diff": "", "new_file": true, "too_large": true},
		}, r)
	case "/issues/12/notes", "/merge_requests/13/notes":
		return paged(g.comments(name), r)
	case "/merge_requests":
		return g.merges(r)
	}
	return g.checked(name, args[len(args)-1], r)
}

func (g *GitLab) comments(name string) (all []object) {
	if name == "/issues/12/notes" {
		for n := range 130 {
			all = append(all, labSaid("dan", fmt.Sprintf("comment %d of 130", n+1)))
		}
	} else {
		c := labSaid("erin", "Why not before?")
		c["position"] = object{"new_path": "sum.go", "new_line": 1}
		done := labSaid("carol", "changed the description")
		done["system"] = true
		all = append(all, c, done)
	}
	for i, m := range g.at(name) {
		c := labSaid("inspan", m["body"].(string))
		c["id"] = 101 + i
		all = append(all, c)
	}
	return all
}

func (g *GitLab) merges(r *http.Request) []object {
	var all []object
	q := r.URL.Query()
	for i, m := range g.at("/merge_requests") {
		if q.Get("source_branch") == m["source_branch"] && q.Get("target_branch") == m["target_branch"] {
			all = append(all, object{"id": 1020 + i, "iid": 20 + i, "web_url": fmt.Sprintf("https://gitlab.com/ann/shop/-/merge_requests/%d", 20+i)})
		}
	}
	return paged(all, r)
}

func (g *GitLab) checked(name, commit string, r *http.Request) any {
	if name != "/repository/commits/"+commit+"/statuses" {
		return nil
	}
	all := []object{{"name": "build", "status": "success"}, {"name": "lint", "status": "running"}}
	for _, m := range g.at("/statuses/" + commit) {
		all = append(all, object{"name": m["name"], "status": m["state"]})
	}
	return paged(all, r)
}

func (g *GitLab) post(name string, body map[string]any) any {
	n := g.add(name, body)
	switch {
	case strings.HasSuffix(name, "/notes"):
		return object{"id": n, "body": body["body"]}
	case name == "/merge_requests":
		return object{"id": 1000 + n, "iid": n, "web_url": fmt.Sprintf("https://gitlab.com/ann/shop/-/merge_requests/%d", n)}
	}
	return object{"name": body["name"], "status": body["state"]}
}
