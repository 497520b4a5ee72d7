package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/store"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

const ownersToken = "token-of-the-owner-0123456789-0123456789"

// house is a server put together as the command does it, with the offline model, behind a gate.
type house struct {
	t     testing.TB
	dir   string
	root  string // a folder that tasks may use
	s     *server.Server
	h     *httptest.Server
	set   func(*server.Server)
	token string
	api   *description
}

// newHouse makes a house and opens it. Set may change the server before it starts.
func newHouse(t testing.TB, set func(*server.Server)) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, dir: dir, root: filepath.Join(dir, "root"), set: set, token: ownersToken, api: &description{}}
	if err := os.Mkdir(h.root, 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Findings(t, "/proc/self/exe", filepath.Join(dir, "state"))
	h.open()
	t.Cleanup(h.close)
	return h
}

// load reads the settings of the house.
func (h *house) load() (*app.App, error) {
	return app.LoadFrom("/proc/self/exe", config.Where{Settings: filepath.Join(h.dir, "config", "config.toml"), State: filepath.Join(h.dir, "state")})
}

// open starts a server over the existing state.
func (h *house) open() {
	h.t.Helper()
	a, err := h.load()
	if err != nil {
		h.t.Fatal(err)
	}
	h.s = &server.Server{Setup: server.Setup{
		Sessions: a.Store(), Send: a.Send, Redact: a.Permission.Redacted, Git: a.Extensions.Store().Git,
		Host:    (&app.Hosts{Load: h.load, Warn: func(string) {}}).Host,
		Options: app.Options{Model: "script", Mode: tool.ModeAuto}, Dir: filepath.Join(h.dir, "tasks"), Folders: []string{h.root},
		Owner: ownersToken, Warn: func(text string) { h.t.Log("warned: " + text) }, Rewind: a.Rewind,
		Workflows: app.Workflows(a, "", "").Checked,
	}}
	if h.set != nil {
		h.set(h.s)
	}
	if err := h.s.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.h = httptest.NewServer(h.s.Gate().Wrap(h.s.Handler()))
}

// close ends the server, as a crash would.
func (h *house) close() {
	if h.s == nil {
		return
	}
	if err := h.s.Close(); err != nil {
		h.t.Error(err)
	}
	h.h.Close()
	http.DefaultClient.CloseIdleConnections()
	h.s = nil
}

// as is the house for the holder of another token.
func (h *house) as(token string) *house {
	v := *h
	v.token = token
	return &v
}

func (h *house) request(ctx context.Context, method, path string, body any) *http.Request {
	h.t.Helper()
	var in io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			h.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, h.h.URL+path, in)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "application/json")
	return req
}

// do sends a request and returns the status and the body of the answer.
func (h *house) do(req *http.Request) (status int, body string) {
	h.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	h.api.holds(h, res, raw)
	return res.StatusCode, string(raw)
}

// call sends a request that must be answered with a status, and decodes the answer.
func (h *house) call(method, path string, body any, status int, into any) {
	h.t.Helper()
	got, text := h.do(h.request(h.t.Context(), method, path, body))
	if got != status {
		h.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		h.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

func (h *house) submit(spec server.Spec) server.Task {
	h.t.Helper()
	var t server.Task
	h.call("POST", "/api/v1/tasks", spec, http.StatusCreated, &t)
	return t
}

func (h *house) task(id string) (t server.Task) {
	h.t.Helper()
	h.call("GET", "/api/v1/tasks/"+id, nil, http.StatusOK, &t)
	return t
}

// until waits for a task to be in one of the stages.
func (h *house) until(id string, stages ...event.Stage) server.Task {
	h.t.Helper()
	return h.when(id, fmt.Sprint(stages), func(t server.Task) bool { return slices.Contains(stages, t.Stage) })
}

// when waits for a task to be so.
func (h *house) when(id, what string, so func(server.Task) bool) server.Task {
	h.t.Helper()
	var t server.Task
	testkit.WaitFor(h.t, "task "+id+" to be "+what, func() bool { t = h.task(id); return so(t) },
		func() string { return fmt.Sprintf("it is %s (%s), %+v", t.Stage, t.Why, t.Result) })
	return t
}

// sessions is the store of the house, for processes other than the server.
func (h *house) sessions(t *testing.T) store.Store {
	t.Helper()
	a, err := h.load()
	if err != nil {
		t.Fatal(err)
	}
	return a.Store()
}

// results are the results of a session's calls.
func (h *house) results(session string) string {
	h.t.Helper()
	var out strings.Builder
	for e, err := range store.Events(h.t.Context(), h.s.Sessions, session) {
		if err != nil {
			h.t.Fatal(err)
		}
		if b, ok := e.Body.(event.Ended); ok {
			fmt.Fprintf(&out, "%+v\n", b)
		}
	}
	return out.String()
}

// identity makes an identity and returns the house for it.
func (h *house) identity(name, tenant string, role server.Role) *house {
	h.t.Helper()
	var made struct{ Token string }
	h.call("POST", "/api/v1/identities", map[string]any{"name": name, "tenant": tenant, "role": role}, http.StatusCreated, &made)
	return h.as(made.Token)
}

// repository makes a git repository with one commit below the root.
func (h *house) repository() string {
	h.t.Helper()
	dir := filepath.Join(h.root, "repo")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir},
		{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := exec.CommandContext(h.t.Context(), "git", args...).CombinedOutput(); err != nil {
			h.t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	return "file://" + dir
}

// stages are the stages that a task has passed.
func stages(t server.Task) string {
	var out []string
	for _, m := range t.History {
		out = append(out, string(m.Stage))
	}
	return strings.Join(out, " ")
}

// slow is a prompt for a command that runs until a file is there, and notes that it ran.
func (h *house) slow(name string) string {
	return fmt.Sprintf("bash: echo ran >> %s; until [ -e go-%s ]; do sleep 0.02; done; echo over >> %s", name, name, name)
}

// release lets the command of slow end.
func (h *house) release(name string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, "go-"+name), nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(h.root, name))
	if err != nil {
		return ""
	}
	return string(raw)
}

// appears waits for a file to hold a text.
func (h *house) appears(name, text string) {
	h.t.Helper()
	testkit.WaitFor(h.t, name+" to hold "+text, func() bool { return strings.Contains(h.read(name), text) },
		func() string { return h.read(name) })
}
