package a2a_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/a2a"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/safety/netguard"
)

func TestMain(m *testing.M) {
	if ran, code := app.Helper(); ran {
		os.Exit(code)
	}
	testkit.Main(m)
}

const (
	annsToken = "token-of-ann-0123456789-0123456789"
	bobsToken = "token-of-bob-0123456789-0123456789"
)

// house is a server over a workspace of its own, put together as the command does it,
// with the offline model, behind a gate for two.
type house struct {
	t           testing.TB
	host        *inspan.Host
	root, state string
	url         string
	here        bool // consent is given here only
	server      *a2a.Server
	stop        func() // ends the server, as the end of its process would
}

func newHouse(t testing.TB, mode tool.Mode) *house {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("INSPAN_CONFIG_DIR", dir)
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(dir, "state"))
	h := &house{t: t, root: filepath.Join(t.TempDir(), "work"), state: filepath.Join(dir, "state")}
	if err := os.MkdirAll(h.root, 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Findings(t, "/proc/self/exe", h.state)
	h.start(mode)
	t.Cleanup(func() { h.stop(); http.DefaultClient.CloseIdleConnections() })
	return h
}

// start starts a server over the existing state.
func (h *house) start(mode tool.Mode) {
	h.t.Helper()
	a, err := app.Load("/proc/self/exe")
	if err != nil {
		h.t.Fatal(err)
	}
	h.host = a.Host(app.Options{Model: "script", Mode: mode}, func(string) {})
	s := &a2a.Server{Host: h.host, Root: h.root, DecideHere: h.here}
	h.server = s
	ann, bob := netguard.One("ann", annsToken), netguard.One("bob", bobsToken)
	g := a2a.Gate()
	g.Who = func(token string) (string, bool) {
		if who, ok := ann(token); ok {
			return who, ok
		}
		return bob(token)
	}
	l, err := g.Listen(h.t.Context(), "127.0.0.1:0", false)
	if err != nil {
		h.t.Fatal(err)
	}
	srv, done := netguard.Server(g.Wrap(s.Handler())), make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	h.url = "http://" + l.Addr().String()
	h.stop = func() { s.Close(); _ = srv.Close(); <-done }
}

func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, name), []byte(text), 0o600); err != nil {
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

// log is the stored log of a session.
func (h *house) log(session string) string {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.state, "sessions", session, "log.jsonl"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(raw)
}

// The parts of the protocol that tests look at, in its own words.

type part struct {
	Text string         `json:"text,omitempty"`
	Data map[string]any `json:"data,omitempty"`
	Raw  []byte         `json:"raw,omitempty"`
	URL  string         `json:"url,omitempty"`

	MediaType string `json:"mediaType,omitempty"`
}

type message struct {
	ID        string `json:"messageId"`
	ContextID string `json:"contextId,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	Role      string `json:"role"`
	Parts     []part `json:"parts"`
}

type status struct {
	State     string    `json:"state"`
	Message   *message  `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

type artifact struct {
	ID    string `json:"artifactId"`
	Parts []part `json:"parts"`
}

type task struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts"`
	History   []message  `json:"history"`
}

// answer is the text of the artifact that has it.
func (t task) artifact(id string) part {
	for _, a := range t.Artifacts {
		if a.ID == id {
			return a.Parts[0]
		}
	}
	return part{}
}

// happening is an element of a stream.
type happening struct {
	Task   *task `json:"task"`
	Status *struct {
		TaskID string `json:"taskId"`
		Status status `json:"status"`
	} `json:"statusUpdate"`
	Artifact *struct {
		TaskID   string   `json:"taskId"`
		Artifact artifact `json:"artifact"`
	} `json:"artifactUpdate"`
}

// visitor sends requests with a token.
type visitor struct {
	*house
	token   string
	version string
}

func (h *house) visitor(token string) *visitor { return &visitor{h, token, "1.0"} }

func (v *visitor) post(ctx context.Context, method string, params any) *http.Response {
	v.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
	if err != nil {
		v.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url, strings.NewReader(string(body)))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+v.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", v.version)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	return res
}

// call returns the result, or the code of the error.
func (v *visitor) call(method string, params, into any) (code int) {
	v.t.Helper()
	res := v.post(v.t.Context(), method, params)
	defer res.Body.Close() //nolint:errcheck // it is only read
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.result(raw, into)
}

func (v *visitor) result(raw []byte, into any) (code int) {
	v.t.Helper()
	var out struct {
		Result json.RawMessage `json:"result"`
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		v.t.Fatalf("%v: %s", err, raw)
	}
	if out.Error != nil {
		return out.Error.Code
	}
	if err := json.Unmarshal(out.Result, into); err != nil {
		v.t.Fatalf("%v: %s", err, raw)
	}
	return 0
}

// say is a message with an id of its own.
func say(text string) message {
	return message{ID: rand.Text(), Role: "ROLE_USER", Parts: []part{{Text: text}}}
}

// send sends a message and returns the task it came to.
func (v *visitor) send(m message, now bool) (task, int) {
	v.t.Helper()
	var out happening
	code := v.call("SendMessage", map[string]any{"message": m, "configuration": map[string]any{"returnImmediately": now}}, &out)
	if code != 0 {
		return task{}, code
	}
	if out.Task == nil {
		v.t.Fatal("no task")
	}
	return *out.Task, 0
}

func (v *visitor) get(id string) task {
	v.t.Helper()
	var out task
	if code := v.call("GetTask", map[string]any{"id": id}, &out); code != 0 {
		v.t.Fatalf("error %d", code)
	}
	return out
}

// stream collects a stream to its end, and calls each function with every element.
func (v *visitor) stream(method string, params any, each ...func(happening)) (all []happening, code int) {
	v.t.Helper()
	res := v.post(v.t.Context(), method, params)
	defer res.Body.Close()                                     //nolint:errcheck // it is only read
	if res.Header.Get("Content-Type") != "text/event-stream" { // it never begins
		raw, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusBadRequest {
			v.t.Fatalf("%v, %s: %s", err, res.Status, raw)
		}
		return nil, v.result(raw, &json.RawMessage{})
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		var h happening
		if code := v.result([]byte(data), &h); code != 0 {
			return all, code
		}
		all = append(all, h)
		for _, f := range each {
			f(h)
		}
	}
	if err := lines.Err(); err != nil {
		v.t.Fatal(err)
	}
	return all, 0
}

// states are the states reported by a stream, in order, without repeats.
func states(all []happening) string {
	var out []string
	for _, h := range all {
		state := ""
		switch {
		case h.Task != nil:
			state = h.Task.Status.State
		case h.Status != nil:
			state = h.Status.Status.State
		}
		state = strings.ToLower(strings.TrimPrefix(state, "TASK_STATE_"))
		if state != "" && (len(out) == 0 || out[len(out)-1] != state) {
			out = append(out, state)
		}
	}
	return strings.Join(out, " ")
}
