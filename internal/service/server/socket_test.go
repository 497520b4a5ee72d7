package server_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/inspan/inspan/internal/service/server"
)

// socket opens a conversation over a WebSocket.
func (h *house) socket(query, name string) *websocket.Conn {
	h.t.Helper()
	head := http.Header{"Authorization": {"Bearer " + h.token}}
	if name != "" {
		head.Set("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", name)
	}
	conn, res, err := websocket.Dial(h.t.Context(), h.h.URL+"/ws"+query, &websocket.DialOptions{HTTPHeader: head})
	if err != nil {
		h.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// heard reads events until one is of the kind, and returns all that came as text.
func (h *house) heard(conn *websocket.Conn, kind string) (all string, seq uint64) {
	h.t.Helper()
	for {
		_, raw, err := conn.Read(h.t.Context())
		if err != nil {
			h.t.Fatal(err, all)
		}
		all += string(raw) + "\n"
		var e struct {
			Kind, Type string
			Seq        uint64
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			h.t.Fatal(err)
		}
		if e.Kind == kind || e.Type == kind {
			return all, e.Seq
		}
	}
}

// TestSocket checks that prompts and events go over a WebSocket, that mistakes are reported and end nothing, and that a
// named conversation continues in another connection.
func TestSocket(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	send := func(conn *websocket.Conn, text string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	name := strings.Repeat("n", 33)
	conn := h.socket("", name)
	send(conn, `{"prompt":"say: heron"}`)
	all, seq := h.heard(conn, "stopped")
	if !strings.Contains(all, `"kind":"delta"`) || !strings.Contains(all, "heron") {
		t.Errorf("heard %s", all)
	}
	for _, wrong := range []string{`{`, `{"x":1}`, `{"prompt":" "}`} {
		send(conn, wrong)
		if all, _ := h.heard(conn, "error"); !strings.Contains(all, "invalid_request_error") {
			t.Errorf("%s: %s", wrong, all)
		}
	}
	if err := conn.CloseNow(); err != nil {
		t.Error(err)
	}
	conn = h.socket("?after="+strconv.FormatUint(seq, 10), name)
	send(conn, `{"prompt":"say: egret"}`)
	if all, _ := h.heard(conn, "stopped"); strings.Contains(all, "heron") || !strings.Contains(all, "egret") {
		t.Errorf("heard %s", all)
	}
	if tasks := h.tasks(); len(tasks) != 1 {
		t.Errorf("%d tasks", len(tasks))
	}
	send(conn, `{"prompt":"bash: sleep 4073"}`)
	h.heard(conn, "started")
	send(conn, `{"interrupt":true}`)
	h.heard(conn, "stopped")

	conn = h.socket("", "")
	send(conn, `{"prompt":"say: once"}`)
	h.heard(conn, "stopped")
	_ = conn.CloseNow()
	h.until(h.tasks()[0].ID, server.StageCompleted)

	if status, body := h.do(h.request(t.Context(), "GET", "/ws", nil)); status/100 != 4 {
		t.Errorf("no WebSocket: %d %s", status, body)
	}
	short := h.request(t.Context(), "GET", "/ws", nil)
	short.Header.Set("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", "short")
	if status, body := h.do(short); status != http.StatusBadRequest {
		t.Errorf("a short name: %d %s", status, body)
	}
}
