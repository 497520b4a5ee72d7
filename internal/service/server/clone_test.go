package server_test

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
)

// gitServer is a server of git over https on this machine, which counts its requests.
type gitServer struct {
	*httptest.Server
	port string
	hits atomic.Int64
}

// newGitServer serves the repositories below a folder, and redirects requests for moved elsewhere.
func newGitServer(t *testing.T, root, moved string) *gitServer {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	f := &gitServer{}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.hits.Add(1)
		if rest, is := strings.CutPrefix(r.URL.Path, "/moved/"); is {
			http.Redirect(w, r, moved+rest+"?"+r.URL.RawQuery, http.StatusFound)
			return
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	u, err := url.Parse(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.port = u.Port()
	return f
}

// gitSettings are those of the person who runs the server.
func gitSettings(t *testing.T, text string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answers is a name server that knows some names, and answers only the first question for each: git
// must not ask again.
func answers(names map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		ip, err := netip.ParseAddr(names[strings.TrimSuffix(host, ".")])
		return []netip.Addr{ip}, err
	}
}

// TestCloneFrom checks that repositories come from public hosts only: hosts of this machine and of private networks are
// refused in any spelling, before a packet is sent, unless the operator has named them. The client does not learn where
// a name leads.
func TestCloneFrom(t *testing.T) {
	gitSettings(t, "[http]\nsslVerify = false\n")
	f := newGitServer(t, t.TempDir(), "")
	h := newHouse(t, func(s *server.Server) {
		s.Guard = &netguard.Guard{Resolve: answers(map[string]string{
			"inner.example.test": "10.1.2.3", "here.example.test": "127.0.0.1", "meta.example.test": "169.254.169.254",
		})}
	})
	for _, host := range []string{
		"127.0.0.1:" + f.port, "localhost:" + f.port, "a.localhost", "[::1]:" + f.port, "169.254.169.254", "10.0.0.1", "192.168.1.1", "[fd00::1]",
		"[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "0", "127.0.0.1.", "LOCALHOST", "ann@127.0.0.1",
		"-oProxyCommand=x", "-x@example.com", "a b", "exa\u0000mple.com", "example.com?x=y", "example.com#x", "metadata_.-x",
	} {
		for _, scheme := range []string{"https://", "ssh://"} {
			spec := server.Spec{Prompt: "x", Repository: &server.Repository{URL: scheme + host + "/a"}}
			status, text := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", spec))
			if status != http.StatusBadRequest || !strings.Contains(text, "repository.url") {
				t.Errorf("%s%s: %d %s", scheme, host, status, text)
			}
		}
	}
	for _, address := range []string{
		"http://example.com/a", "git://example.com/a", "ext::sh -c x", "example.com:a",
		"file://example.com/a", "file:a", "https:///a", "https://ann:pw@example.com/a",
	} {
		h.call("POST", "/api/v1/tasks", server.Spec{Prompt: "x", Repository: &server.Repository{URL: address}}, http.StatusBadRequest, nil)
	}
	for _, host := range []string{"inner.example.test", "here.example.test:" + f.port, "meta.example.test"} {
		for _, scheme := range []string{"https://", "ssh://"} {
			task := h.until(
				h.submit(server.Spec{Prompt: "bash: true", Repository: &server.Repository{URL: scheme + host + "/a"}}).ID,
				server.StageFailed,
			)
			if !strings.Contains(task.Why, "finds no public address") || strings.Contains(task.Why, "10.1") || strings.Contains(task.Why, "127.0") {
				t.Errorf("%s%s: %s", scheme, host, task.Why)
			}
		}
	}
	if n := f.hits.Load(); n != 0 {
		t.Errorf("%d requests came to this machine", n)
	}
}

// TestClonePinned checks that git connects to the address that was checked, though it could not look the name up
// itself, and that it follows no redirect, not even of a host that the operator has named.
func TestClonePinned(t *testing.T) {
	gitSettings(t, "[http]\nsslVerify = false\n")
	var inner *gitServer
	h := newHouse(t, func(s *server.Server) {
		s.Guard = &netguard.Guard{
			Resolve: answers(map[string]string{"forge.example.test": "127.0.0.1"}), Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		}
	})
	h.repository()
	inner = newGitServer(t, h.root, "")
	f := newGitServer(t, h.root, inner.URL+"/")
	clone := func(path string, stage event.Stage) server.Task {
		t.Helper()
		from := "https://forge.example.test:" + f.port + path
		return h.until(h.submit(server.Spec{Prompt: "bash: git log", Repository: &server.Repository{URL: from}}).ID, stage)
	}
	if done := clone("/repo/.git", server.StageCompleted); done.Result == nil || done.Result.Evidence.Branch != "inspan/"+done.ID {
		t.Errorf("%+v", done.Result)
	}
	clone("/moved/repo/.git", server.StageFailed)
	h.close()
	h.set = func(s *server.Server) { s.Guard, s.CloneFrom = nil, netguard.Hosts{"127.0.0.1:" + f.port} }
	h.open()
	here := func(path string, stage event.Stage) {
		t.Helper()
		h.until(h.submit(server.Spec{Prompt: "bash: git log", Repository: &server.Repository{URL: f.URL + path}}).ID, stage)
	}
	here("/repo/.git", server.StageCompleted)
	here("/moved/repo/.git", server.StageFailed)
	if n := inner.hits.Load(); n != 0 {
		t.Errorf("%d requests were redirected", n)
	}
	h.call(
		"POST",
		"/api/v1/tasks",
		server.Spec{Prompt: "x", Repository: &server.Repository{URL: inner.URL + "/repo"}},
		http.StatusBadRequest,
		nil,
	)
}

// TestClonePinnedSSH checks that ssh, with the operator's settings, connects to the checked address, and looks up the
// host's key by its name.
func TestClonePinnedSSH(t *testing.T) {
	log := filepath.Join(t.TempDir(), "ssh")
	gitSettings(t, "[core]\nsshCommand = \"printf '%s\\\\n' >"+log+"\"\n")
	h := newHouse(t, func(s *server.Server) {
		s.Guard = &netguard.Guard{
			Resolve: answers(map[string]string{"forge.example.test": "127.0.0.7"}), Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		}
	})
	h.until(
		h.submit(server.Spec{Prompt: "x", Repository: &server.Repository{URL: "ssh://git@forge.example.test:2222/a"}}).ID,
		server.StageFailed,
	)
	raw, err := os.ReadFile(log)
	for _, want := range []string{"HostName=127.0.0.7\n", "HostKeyAlias=[forge.example.test]:2222\n", "2222\n", "git@forge.example.test\n"} {
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%v: ssh is told %q, without %q", err, raw, want)
		}
	}
}

// TestBranchNames compares the accepted names of branches with git's.
func TestBranchNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	repo := h.repository()
	for _, name := range []string{
		"a", "fix/a.b", "ü/日本", "a@b", "@a", "a-b_c", "1", "a.lock.b", "inspan/x", "a{b", "}", "a'b", "a\"b", "$(x)",
		"a.lock", "a.lock/b", ".x", "a/.x", "x..y", "x//y", "/x", "x/", "x.", "-x", "x y", "x~", "x^", "x:", "x?", "x*", "x[", "x\\y",
		"x\x7f", "x\x01", "x@{y", "HEAD", "x\ny", "x\ty",
	} {
		valid := exec.CommandContext(t.Context(), "git", "check-ref-format", "--branch", name).Run() == nil
		status, text := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{
			Prompt: "bash: true", Repository: &server.Repository{URL: repo, Branch: name},
		}))
		if (status == http.StatusCreated) != valid || !valid && status != http.StatusBadRequest {
			t.Errorf("branch %q: %d %s; git takes it: %t", name, status, text, valid)
		}
	}
}
