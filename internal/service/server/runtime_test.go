package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

// invoke sends an invocation in a conversation, and returns the answer.
func (h *house) invoke(name string, body map[string]any, accept string) (status int, text string) {
	h.t.Helper()
	r := h.request(h.t.Context(), "POST", "/invocations", body)
	r.Header.Set("Accept", accept)
	if name != "" {
		r.Header.Set("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", name)
	}
	return h.do(r)
}

// TestInvocations checks the runtime contract: a session header identifies one conversation, over either path, and each
// call returns the result of its own run.
func TestInvocations(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	name := strings.Repeat("s", 33)
	said := func(prompt string) (task server.Task) {
		t.Helper()
		status, text := h.invoke(name, map[string]any{"prompt": prompt}, "application/json")
		if err := json.Unmarshal([]byte(text), &task); err != nil || status != http.StatusOK {
			t.Fatal(status, text, err)
		}
		return task
	}
	first := said("say: heron")
	for _, word := range []string{"egret", "wren", "rook"} {
		if next := said("say: " + word); next.Session != first.Session || next.Workspace != first.Workspace || next.Result.Says != word {
			t.Errorf("%s: %+v", word, next)
		}
	}
	conn := h.socket("", name)
	h.heard(conn, "stopped") // of the runs before
	_ = conn.CloseNow()
	status, text := h.invoke("", map[string]any{"prompt": "say: alone"}, "application/json, text/event-stream")
	if status != http.StatusOK || !strings.Contains(text, `"stage":"completed"`) || strings.Contains(text, first.Session) {
		t.Errorf("without a session: %d %s", status, text)
	}
	if tasks := h.tasks(); len(tasks) != 2 {
		t.Errorf("%d tasks", len(tasks))
	}
	for _, wrong := range []struct {
		name   string
		body   map[string]any
		status int
	}{
		{"short", map[string]any{"prompt": "x"}, http.StatusBadRequest},
		{name, map[string]any{"prompt": "x", "mode": "plan"}, http.StatusConflict},
		{name, map[string]any{"prompt": "x", "open": true}, http.StatusBadRequest},
		{"", map[string]any{"background": true}, http.StatusBadRequest},
	} {
		if status, text := h.invoke(wrong.name, wrong.body, ""); status != wrong.status {
			t.Errorf("%v: %d %s", wrong, status, text)
		}
	}
	h.call("POST", "/api/v1/tasks/"+first.ID+"/close", nil, http.StatusOK, nil)
	h.until(first.ID, server.StageCompleted)
	if again := said("say: anew"); again.ID == first.ID || again.Result.Says != "anew" {
		t.Errorf("after its end: %+v", again)
	}
}

// TestInvokedInTheBackground checks that such a call is answered at once, that health says busy until its work is done,
// and that a call without a prompt waits for that.
func TestInvokedInTheBackground(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	name := strings.Repeat("b", 256)
	ping := func() string { _, text := h.as("").do(h.request(t.Context(), "GET", "/ping", nil)); return text }
	status, text := h.invoke(name, map[string]any{"prompt": h.slow("a"), "folder": h.root, "background": true}, "")
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	h.appears("a", "ran")
	if got := ping(); !strings.Contains(got, `"HealthyBusy"`) {
		t.Error(got)
	}
	h.release("a")
	status, text = h.invoke(name, map[string]any{}, "")
	if status != http.StatusOK || !strings.Contains(text, `"stage":"idle"`) || !strings.Contains(text, `"stopped":"done"`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestInvokedLive checks that a client which prefers a stream gets the events as they come, and the task last.
func TestInvokedLive(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, c := range [][2]string{
		{"", "text/event-stream"},
		{strings.Repeat("l", 40), "text/event-stream"},
		{strings.Repeat("l", 40), "Text/Event-Stream, application/json;q=0.5"},
	} {
		name, accepts := c[0], c[1]
		r := h.request(t.Context(), "POST", "/invocations", map[string]any{"prompt": "say: heron"})
		r.Header.Set("Accept", accepts)
		if name != "" {
			r.Header.Set("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", name)
		}
		status, text := h.do(r)
		if status != http.StatusOK || strings.Count(text, "event: stopped") != 1 || !strings.Contains(text, `"says":"heron"`) ||
			!strings.Contains(text[strings.LastIndex(text, "event: "):], "event: task\ndata: {\"id\":\"task_") {
			t.Errorf("in %q: %d %s", name, status, text)
		}
	}
}

// TestRuntimeTrusted checks that after such a runtime its own paths need no token and no known host, and all others
// do.
func TestRuntimeTrusted(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		h := newHouse(t, func(s *server.Server) { s.Runtime = trusted })
		send := func(path string, body any) int {
			method := "POST"
			if body == nil {
				method = "GET"
			}
			r := h.request(t.Context(), method, path, body)
			r.Header.Del("Authorization")
			r.Host = "runtime.example.org"
			status, _ := h.do(r)
			return status
		}
		got := []int{send("/invocations", map[string]any{"prompt": "say: x"}), send("/ping", nil), send("/api/v1/tasks", map[string]any{"prompt": "x"})}
		want := []int{http.StatusForbidden, http.StatusForbidden, http.StatusForbidden}
		if trusted {
			want[0], want[1] = http.StatusOK, http.StatusOK
		}
		r := h.request(t.Context(), "GET", "/api/v1/tasks", nil)
		r.Header.Del("Authorization")
		if status, _ := h.do(r); got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || status != http.StatusUnauthorized {
			t.Errorf("trusted %t: %v, want %v; without a token %d", trusted, got, want, status)
		}
	}
}
