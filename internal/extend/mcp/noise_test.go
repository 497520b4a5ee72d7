package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	sound = `{"jsonrpc":"2.0","id":1,"result":{}}`
	told  = `{"jsonrpc":"2.0","method":"notifications/message"}`
	stray = `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}`
)

// TestSiftedEvents checks which parts of a stream's event are passed on.
func TestSiftedEvents(t *testing.T) {
	for _, c := range []struct {
		bare          bool
		event         string
		want, skipped string
	}{
		{false, "event: message\nid: 3\ndata: " + sound + "\n\n", "event: message\nid: 3\ndata: " + sound + "\n\n", ""},
		{false, "id: 3\ndata:\n\n", "id: 3\ndata:\n\n", ""},
		{false, ": alive\n\n", ": alive\n\n", ""},
		{false, "event: ping\ndata: now\n\n", "event: ping\ndata: now\n\n", ""}, // which the SDK passes over itself
		{false, "data: starting up\n\n", "", "starting up"},
		{false, "data: {\"level\":\"info\"}\n\n", "", `{"level":"info"}`},
		{false, "data: [1,2]\n\n", "", "[1,2]"},
		{false, "data: " + stray + "\n\n", "", stray},
		{false, "id: 4\r\ndata: noise\r\n\r\n", "id: 4\n\n", "noise"},
		{false, "debug\ndata: " + sound + "\n\n", "data: " + sound + "\n\n", "debug"},
		{false, "data: [" + told + ",5," + stray + "," + sound + "]\n\n", "data: " + told + "\n\ndata: " + sound + "\n\n", ""},
		{false, sound + "\n", "data: " + sound + "\n\n", ""},
		{true, "event: endpoint\ndata: /messages\n\n", "event: endpoint\ndata: /messages\n\n", ""},
		{true, "event: message\ndata: " + sound + "\n\n", "event: message\ndata: " + sound + "\n\n", ""},
		{true, "event: ping\ndata: now\n\n", "", ""},
		{true, "id: 3\n\n", "", ""},
		{true, "event: message\nid: 5\ndata: noise\n\n", "", "noise"},
		{true, "data: " + stray + "\n\n", "", stray},
	} {
		var skipped []string
		s := sift{bare: c.bare, skipped: func(data []byte) { skipped = append(skipped, string(data)) }}
		if got := string(s.event([]byte(c.event))); got != c.want || strings.Join(skipped, "|") != c.skipped {
			t.Errorf("%v %q: %q, skipped %q", c.bare, c.event, got, skipped)
		}
	}
}

// TestSiftedAnswers checks that an invalid answer to a call fails only that call.
func TestSiftedAnswers(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", "\n" + sound + "\n", sound},
		{"application/json", "[" + told + "," + sound + "]", sound},
		{"text/plain", sound, sound},
		{"application/json", "\ufeff" + sound, sound},
		{"application/json", "event: message\r\ndata: " + sound + "\r\n\r\n", sound},
		{"application/json", `{"id":7,"result":{}}`, `{"id":7,"jsonrpc":"2.0","result":{}}`},
		{"application/json", `{"jsonrpc":"2.0","id":"7","result":{}}`, `{"id":7,"jsonrpc":"2.0","result":{}}`},
		{"application/json", stray, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such method"}}`},
		{"application/json", `{"ok":true}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"its answer is not a message of the protocol (application/json): {\"ok\":true}"}}`},
		{"text/html", "<h1>Sign in</h1>", `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"its answer is not a message of the protocol (text/html): \u003ch1\u003eSign in\u003c/h1\u003e"}}`},
		{"", "", `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"its answer is not a message of the protocol (of no kind): "}}`},
	} {
		s := sift{skipped: func([]byte) {}}
		if got := string(s.answer([]byte("7"), []byte(c.body), c.kind)); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.body, got, c.want)
		}
	}
}

// TestRefusedNotification checks that a server that refuses a notification as an unknown call stays connected.
func TestRefusedNotification(t *testing.T) {
	for body, want := range map[string]int{stray: http.StatusAccepted, `{"error":"no"}`: http.StatusAccepted, "no": http.StatusBadRequest} {
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(told))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(told)), nil }
		resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
		skipped := ""
		hear(req, resp, sift{skipped: func(data []byte) { skipped = string(data) }})
		left, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || err != nil || want == http.StatusAccepted && (skipped != body || len(left) > 0) || want != http.StatusAccepted && string(left) != body {
			t.Errorf("%s: status %d, %q is left, skipped %q, %v", body, resp.StatusCode, left, skipped, err)
		}
	}
}
