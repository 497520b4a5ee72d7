package managed_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

const ownersToken = "token-of-the-owner-0123456789-0123456789"

// house is a server with this door, put together as the command does it, with the offline model.
type house struct {
	t     *testing.T
	dir   string
	set   func(*server.Server)
	s     *server.Server
	h     *httptest.Server
	token string
}

func newHouse(t *testing.T, set func(*server.Server)) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), set: set, token: ownersToken}
	testkit.Findings(t, "/proc/self/exe", filepath.Join(h.dir, "state"))
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
		Options: app.Options{Model: "script", Mode: tool.ModeAuto}, Dir: filepath.Join(h.dir, "tasks"), State: a.StateDir,
		Owner: ownersToken, Warn: func(text string) { h.t.Log("warned: " + text) }, HasModel: a.Providers.Known, Rewind: a.Rewind,
	}}
	managed.Join(h.s)
	if h.set != nil {
		h.set(h.s)
	}
	if err := h.s.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.h = httptest.NewServer((&netguard.Gate{Who: h.s.Who, Forms: h.s.Forms, Refuse: server.Refuse}).Wrap(h.s.Handler()))
}

// close ends the server, as a crash would.
func (h *house) close() {
	if err := h.s.Close(); err != nil {
		h.t.Error(err)
	}
	h.h.Close()
	http.DefaultClient.CloseIdleConnections()
}

// as is the house for an operator of a tenant.
func (h *house) as(name, tenant string) *house {
	h.t.Helper()
	status, text := h.do("POST", "/api/v1/identities", object{"name": name, "tenant": tenant, "role": "operator"})
	var v struct{ Token string }
	if json.Unmarshal([]byte(text), &v) != nil || v.Token == "" {
		h.t.Fatalf("%d %s", status, text)
	}
	other := *h
	other.token = v.Token
	return &other
}

// streamed opens a stream of server-sent events.
func (h *house) streamed(ctx context.Context, path string) io.ReadCloser {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.h.URL+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", h.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.Body
}

// run sends a session a message, and returns all events up to the end of the run.
func (h *house) run(session, text string) string {
	h.t.Helper()
	ctx, stop := context.WithTimeout(h.t.Context(), testkit.Patience)
	defer stop()
	stream := h.streamed(ctx, "/v1/sessions/"+session+"/events/stream")
	defer stream.Close()
	h.must("POST", "/v1/sessions/"+session+"/events", object{"events": []any{
		object{"type": "user.message", "content": []any{object{"type": "text", "text": text}}},
	}})
	var out strings.Builder
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"type":"session.status_idle"`) {
			return out.String()
		}
	}
	h.t.Fatalf("the stream ends before the session is idle: %s", out.String())
	return ""
}

// until waits for a session to have a status.
func (h *house) until(path, status string) {
	h.t.Helper()
	var v object
	testkit.WaitFor(h.t, path+" to be "+status, func() bool { v = h.must("GET", path, nil); return v["status"] == status },
		func() string { return fmt.Sprint(v) })
}

// must is the answer to a request that must be done.
func (h *house) must(method, path string, body any) object {
	h.t.Helper()
	status, text := h.do(method, path, body)
	var v object
	if json.Unmarshal([]byte(text), &v) != nil || status != http.StatusOK {
		h.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return v
}

// do sends a request with the headers that clients of this wire have.
func (h *house) do(method, path string, body any) (status int, text string) {
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
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.h.URL+path, in)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Anthropic-Beta", "managed-agents-2026-04-01,unknown-1999-01-01")
	req.Header.Set("Content-Type", "application/json")
	return h.sent(req)
}

// sent sends a request and returns the answer.
func (h *house) sent(req *http.Request) (status int, text string) {
	h.t.Helper()
	req.Header.Set("X-Api-Key", h.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// made is the id of the object that a request creates.
func (h *house) made(path string, body any) string {
	h.t.Helper()
	status, text := h.do("POST", path, body)
	var v struct{ ID string }
	if json.Unmarshal([]byte(text), &v) != nil || status != http.StatusOK || v.ID == "" {
		h.t.Fatalf("POST %s: %d %s", path, status, text)
	}
	return v.ID
}

// problem is the error of an answer: with a type, a message and the id of the request.
func (h *house) problem(method, path string, body any) (status int, message string) {
	h.t.Helper()
	status, text := h.do(method, path, body)
	var v struct {
		Type  string
		ID    string `json:"request_id"`
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.Type != "error" || v.ID == "" || v.Error.Type == "" || v.Error.Message == "" {
		h.t.Errorf("%s %s: %d %s is not an error of this wire", method, path, status, text)
	}
	return status, v.Error.Message
}

type object = map[string]any

var (
	someAgent = object{"name": "a", "model": "script", "tools": []any{object{"type": "agent_toolset_20260401"}}}
	someEnv   = object{"name": "e", "config": object{"type": "cloud"}}
)

// with is an object with a field more.
func with(o object, key string, value any) object {
	out := object{key: value}
	for k, v := range o {
		if k != key {
			out[k] = v
		}
	}
	return out
}
