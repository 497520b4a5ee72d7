package managed_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

// field is one of a form: a file if it has a name.
type field struct{ field, file, text string }

// form sends a form.
func (h *house) form(path string, fields ...field) (status int, text string) {
	h.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range fields {
		make := w.CreateFormField
		if f.file != "" {
			make = func(name string) (io.Writer, error) { return w.CreateFormFile(name, f.file) }
		}
		part, err := make(f.field)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := io.WriteString(part, f.text); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		h.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.h.URL+path, &body)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	return h.sent(req)
}

// formed is the file made of a form.
func (h *house) formed(path string, fields ...field) object {
	h.t.Helper()
	status, text := h.form(path, fields...)
	var v object
	if json.Unmarshal([]byte(text), &v) != nil || status != http.StatusOK {
		h.t.Fatalf("POST %s: %d %s", path, status, text)
	}
	return v
}

// uploaded is the id of a new file.
func (h *house) uploaded(name, text string) string {
	h.t.Helper()
	return fmt.Sprint(h.formed("/v1/files", field{"file", name, text})["id"])
}

// TestFiles checks the operations of clients on files, also across a restart.
func TestFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	v := h.formed("/v1/files", field{"file", "../data.csv", "a,b"}, field{"expires_in_seconds", "", "3600"})
	if v["filename"] != "data.csv" || v["size_bytes"] != 3.0 || v["mime_type"] != "text/plain" || v["expires_at"] == nil {
		t.Errorf("file %v", v)
	}
	id := fmt.Sprint(v["id"])
	other := h.uploaded("b", "b")
	h.close()
	h.open()
	if status, text := h.do("GET", "/v1/files/"+id+"/content", nil); status != http.StatusOK || text != "a,b" {
		t.Errorf("content %d %q", status, text)
	}
	session := h.session(object{"type": "file", "file_id": id})
	for query, want := range map[string][]any{
		"": {other, id}, "?ids[]=" + id: {id}, "?scope_id=" + session: {id},
		"?scope_id=x": {}, "?ids=x": {},
	} {
		var got []any
		for _, f := range h.must("GET", "/v1/files"+query, nil)["data"].([]any) {
			got = append(got, f.(object)["id"])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	h.must("DELETE", "/v1/files/"+id, nil)
	for _, path := range []string{"/v1/files/" + id, "/v1/files/" + id + "/content"} {
		if status, _ := h.problem("GET", path, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, tc := range []struct {
		fields []field
		status int
		want   string
	}{
		{nil, 400, "exactly one"},
		{[]field{{"file", "a", "a"}, {"file", "b", "b"}}, 400, "exactly one"},
		{[]field{{"file", "a", "a"}, {"purpose", "", "b"}}, 400, "purpose"},
		{[]field{{"file", "a", "a"}, {"expires_in_seconds", "", "1"}}, 400, "expires_in_seconds"},
		{[]field{{"file", "a", "a"}, {"expires_in_seconds", "", "3600"}, {"expires_in_seconds", "", "3600"}}, 400, "twice"},
		{[]field{{"file", strings.Repeat("n", 256), "a"}}, 400, "255"},
		{[]field{{"file", "a", strings.Repeat("x", 17<<20)}}, 413, "request_too_large"},
	} {
		if status, text := h.form("/v1/files", tc.fields...); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%d %s, want %d with %q", status, text, tc.status, tc.want)
		}
	}
	if status, message := h.problem("POST", "/v1/files", object{"file": "x"}); status != http.StatusBadRequest {
		t.Errorf("a file in JSON: %d %s", status, message)
	}
}

// TestFileResources checks that files are in the workspace before the first run, come and go, and that nothing is
// written out of it.
func TestFileResources(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	one, two := h.uploaded("one", "first"), h.uploaded("two", "second")
	session := h.session(object{"type": "file", "file_id": one}, object{"type": "file", "file_id": two, "mount_path": "/workspace/in/two.txt"})
	at := "/v1/sessions/" + session + "/resources"
	has(t, h.run(session, "bash: cat mnt/session/uploads/"+one+" in/two.txt"), "firstsecond")
	added := h.must("POST", at, object{"type": "file", "file_id": one, "mount_path": "/workspace/later"})
	has(t, h.run(session, "bash: cat later"), "first")
	list, _ := json.Marshal(h.must("GET", at, nil)["data"])
	has(t, string(list), `"mount_path":"/workspace/later"`, `"mount_path":"/mnt/session/uploads/`+one)
	if got := h.must("GET", at+"/"+fmt.Sprint(added["id"]), nil); got["file_id"] != one {
		t.Errorf("resource %v", got)
	}
	h.must("DELETE", at+"/"+fmt.Sprint(added["id"]), nil)
	has(t, h.run(session, "bash: ls later"), "No such file")
	outside := filepath.Join(h.dir, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	h.run(session, "bash: ln -s "+outside+" out; ln -s "+outside+"/b link; mkdir full; echo x > full/x")
	for path, want := range map[string]int{
		"/workspace/out/a": 409, "/workspace/link": 200, "/workspace/full": 409,
		"/workspace/in/two.txt/x": 400,
	} {
		status, text := h.do("POST", at, object{"type": "file", "file_id": one, "mount_path": path})
		if status != want {
			t.Errorf("%s: %d %s, want %d", path, status, text, want)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("%v is outside of the workspace, %v", entries, err)
	}
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	file := object{"type": "file", "file_id": one}
	repo := object{"type": "github_repository", "url": "https://github.com/a/b"}
	for _, tc := range []struct {
		resources []any
		status    int
		want      string
	}{
		{[]any{object{"type": "file", "file_id": "file_none"}}, 404, "file_none"},
		{[]any{with(file, "mount_path", "a")}, 400, "begin with /"},
		{[]any{with(file, "mount_path", "/workspace/../a")}, 400, "mount_path"},
		{[]any{with(file, "mount_path", "/workspace/a/.Git/config")}, 400, "git"},
		{[]any{with(file, "mount_path", "/workspace/a\nb")}, 400, "mount_path"},
		{[]any{with(file, "mount_path", "/workspace/"+strings.Repeat("a", 300))}, 400, "too long"},
		{[]any{with(file, "url", "x")}, 400, "resources.0.url"},
		{[]any{file, file}, 400, "resources.1.mount_path"},
		{[]any{with(file, "mount_path", "/workspace/a"), with(file, "mount_path", "/workspace/a/b")}, 400, "something else"},
		{[]any{repo, with(repo, "mount_path", "/workspace/b/c")}, 400, "something else"},
		{[]any{with(repo, "url", "https://127.0.0.1/a/b")}, 400, "no public address"},
		{[]any{with(repo, "url", "https://u:p@github.com/a/b")}, 400, "password"},
		{[]any{with(repo, "checkout", object{"type": "branch"})}, 400, "checkout"},
		{[]any{with(repo, "checkout", object{"type": "commit", "sha": "--help"})}, 400, "checkout"},
		{[]any{with(repo, "checkout", object{"type": "branch", "name": "-x"})}, 400, "git takes"},
		{[]any{with(with(repo, "url", "ssh://git@github.com/a/b"), "authorization_token", "x")}, 400, "https"},
	} {
		status, message := h.problem("POST", "/v1/sessions", object{"agent": agent, "environment_id": env, "resources": tc.resources})
		if status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%v: %d %s, want %d with %q", tc.resources, status, message, tc.status, tc.want)
		}
	}
}

// forge serves the repositories below a folder over https, for requests with the token.
func forge(t *testing.T, root, token string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[http]\nsslVerify = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRepositoryResource checks that a repository is in the workspace at its checkout, and that its token remains
// nowhere: not in the workspace, the logs or the error of a failure.
func TestRepositoryResource(t *testing.T) {
	const token = "ghp_nobodyMayReadThis0123456789abcdefgh"
	root := t.TempDir()
	commit := func(args ...string) string {
		args = append([]string{"-C", filepath.Join(root, "repo"), "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(filepath.Join(root, "repo"), 0o755); err != nil {
		t.Fatal(err)
	}
	commit("init", "-q", "-b", "main")
	commit("commit", "-q", "--allow-empty", "-m", "the first")
	first := commit("rev-parse", "HEAD")
	commit("commit", "-q", "--allow-empty", "-m", "the second")
	commit("branch", "other")
	commit("commit", "-q", "--allow-empty", "-m", "the third")
	address := forge(t, root, token)
	h := newHouse(t, func(s *server.Server) { s.CloneFrom = []string{strings.TrimPrefix(address, "https://")} })
	secret := []string{token, base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))}
	file := h.uploaded("a", "in the repository")
	repo := object{"type": "github_repository", "url": address + "/repo", "authorization_token": token}
	session := h.session(
		repo,
		with(with(repo, "mount_path", "/workspace/b"), "checkout", object{"type": "branch", "name": "other"}),
		with(with(repo, "mount_path", "/workspace/c"), "checkout", object{"type": "commit", "sha": first}),
		object{"type": "file", "file_id": file, "mount_path": "/workspace/b/new"},
	)
	has(t, h.run(session, "bash: for d in repo b c; do git -C $d log -1 --format=$d:%s; done; cat b/new; cat */.git/config"),
		"repo:the third", "b:the second", "c:the first", "in the repository", address)
	list := h.must("GET", "/v1/sessions/"+session+"/resources", nil)["data"].([]any)
	one := "/v1/sessions/" + session + "/resources/" + fmt.Sprint(list[0].(object)["id"])
	if status, message := h.problem("POST", one, object{"authorization_token": token}); status != http.StatusConflict {
		t.Errorf("a token for what is cloned: %d %s", status, message)
	}
	if status, message := h.problem("DELETE", one, nil); status != http.StatusConflict {
		t.Errorf("%d %s", status, message)
	}
	failed := h.session(with(repo, "url", address+"/none"))
	h.until("/v1/sessions/"+failed, "terminated")
	_, told := h.do("GET", "/api/v1/tasks/"+failed, nil)
	has(t, told, "git clone")
	_, past := h.do("GET", "/v1/sessions/"+failed+"/events", nil)
	_, live := h.do("GET", "/v1/sessions/"+failed+"/events/stream", nil)
	for _, text := range []string{past, live} {
		has(t, text, `"type":"session.error"`, "git clone", `"type":"session.status_terminated"`)
		told += text
	}
	h.close()
	h.open() // which forgets the rest
	for _, text := range secret {
		if h.onDisk(text) || strings.Contains(told, text) {
			t.Error("the token is still there")
		}
	}
}

// TestTenantsFiles checks that no tenant sees or uses the files of another.
func TestTenantsFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	file := red.uploaded("a", "x")
	session := red.session(object{"type": "file", "file_id": file})
	at := "/v1/sessions/" + session + "/resources"
	resource := at + "/" + fmt.Sprint(red.must("GET", at, nil)["data"].([]any)[0].(object)["id"])
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/v1/files/" + file, nil},
		{"GET", "/v1/files/" + file + "/content", nil},
		{"DELETE", "/v1/files/" + file, nil},
		{"GET", at, nil},
		{"POST", at, object{"type": "file", "file_id": file}},
		{"GET", resource, nil},
		{"POST", resource, object{"authorization_token": "x"}},
		{"DELETE", resource, nil},
	} {
		if status, message := blue.problem(tc.method, tc.path, tc.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
	for _, query := range []string{"", "?ids=" + file, "?scope_id=" + session} {
		if n := len(blue.must("GET", "/v1/files"+query, nil)["data"].([]any)); n != 0 {
			t.Errorf("%q: another tenant sees %d files", query, n)
		}
	}
	own := blue.session()
	status, message := blue.problem("POST", "/v1/sessions/"+own+"/resources", object{"type": "file", "file_id": file})
	if status != http.StatusNotFound {
		t.Errorf("a file of another tenant for a session: %d %s", status, message)
	}
}
