package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/inspan/inspan/coding"
)

// hub is a fake GitHub with one repository, which git can access too, with issue 12 and pull request 13.
type hub struct {
	bare string // the repository
	git  string // the folder of git's own programs

	mu   sync.Mutex
	made []string // by requests, described
}

const issue = `{"number":12,"title":"Wrong sum","state":"open","body":"1 + 1 is 0.",` +
	`"user":{"login":"bob"},"created_at":"2026-11-01T09:30:00Z"}`

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rest, is := strings.CutPrefix(r.URL.Path, "/ann/shop.git"); is {
		r.URL.Path = "/" + filepath.Base(h.bare) + rest
		(&cgi.Handler{
			Path: filepath.Join(h.git, "git-http-backend"),
			Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(h.bare), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann"},
		}).ServeHTTP(w, r)
		return
	}
	answer := "[]"
	switch path := strings.TrimPrefix(r.URL.Path, "/repos/ann/shop"); {
	case r.Method == http.MethodPost:
		answer = h.post(r)
		w.WriteHeader(http.StatusCreated)
	case path == "":
		answer = `{"default_branch":"main"}`
	case path == "/issues/12":
		answer = issue
	case path == "/issues/13":
		answer = strings.Replace(issue, `"number":12`, `"number":13,"pull_request":{"url":"https://api.github.com/repos/ann/shop/pulls/13"}`, 1)
	case path == "/pulls/13" && strings.HasSuffix(r.Header.Get("Accept"), "diff"):
		answer = "--- a/sum.sh\n+++ b/sum.sh\n@@ -1 +1 @@\n-echo $(($1 - $2))\n+echo 2\n"
	case path == "/pulls/13":
		answer = `{"number":13,"title":"Mend the sum","state":"open","head":{"ref":"sums","sha":"` + strings.Repeat("1", 40) + `"}}`
	case strings.HasSuffix(path, "/check-runs"):
		answer = `{"total_count":0,"check_runs":[]}`
	case strings.HasSuffix(path, "/status"):
		answer = `{"state":"pending","statuses":[]}`
	}
	_, _ = w.Write([]byte(answer))
}

// post records a comment or a pull request.
func (h *hub) post(r *http.Request) string {
	var sent struct{ Title, Head, Body string }
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		return "{}"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	what, _, _ := strings.Cut(cmp.Or(sent.Title, sent.Body), "\n")
	h.made = append(h.made, filepath.Base(r.URL.Path)+": "+strings.TrimSpace(sent.Head+" "+what))
	return `{"number":14,"html_url":"https://github.com/ann/shop/pull/14"}`
}

// hosted serves a repository on a hub, and directs workflows to it.
func hosted(ctx context.Context, box coding.Sandbox, root string) (*hub, func(), error) {
	h := &hub{bare: root + ".git"}
	at := httptest.NewServer(h)
	const line = "git branch -M main && git clone -q --bare . ../work.git && git --exec-path > ../git && git remote add origin "
	err := command(ctx, box, root, line+at.URL+"/ann/shop.git")
	if err == nil {
		var git []byte
		git, err = os.ReadFile(filepath.Join(filepath.Dir(root), "git"))
		h.git = strings.TrimSpace(string(git))
	}
	if err != nil {
		at.Close()
		return nil, nil, err
	}
	for name, value := range map[string]string{"GITHUB_TOKEN": "token-of-the-example", "GITHUB_API_URL": at.URL} {
		if err := os.Setenv(name, value); err != nil {
			at.Close()
			return nil, nil, err
		}
	}
	return h, at.Close, nil
}
