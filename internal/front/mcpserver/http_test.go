package mcpserver_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit"
)

// listen serves over HTTP behind a gate and returns the address.
func (h *house) listen(g *netguard.Gate) string {
	h.t.Helper()
	l, err := g.Listen(h.t.Context(), "127.0.0.1:0", false)
	if err != nil {
		h.t.Fatal(err)
	}
	srv := netguard.Server(g.Wrap(h.Handler()))
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	h.t.Cleanup(func() {
		h.Close()
		_ = srv.Close()
		<-done
		http.DefaultClient.CloseIdleConnections()
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	return "http://localhost:" + port
}

// tokened sends a token with each request.
type tokened string

func (k tokened) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(req)
}

const (
	annsToken = "token-of-ann-0123456789-0123456789"
	bobsToken = "token-of-bob-0123456789-0123456789"
)

// two is a gate for two principals.
func two() *netguard.Gate {
	ann, bob := netguard.One("ann", annsToken), netguard.One("bob", bobsToken)
	return &netguard.Gate{Who: func(token string) (string, bool) {
		if who, ok := ann(token); ok {
			return who, ok
		}
		return bob(token)
	}}
}

// visit has a client speak a revision with a server at an address.
func (h *house) visit(url, token, revision string, answer func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	h.t.Helper()
	c := &client{t: h.t, answer: answer, rounds: h.rounds}
	c.join(revision, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: tokened(token)}})
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestHTTP checks that all goes over HTTP as it does at a pipe.
func TestHTTP(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.write("a.txt", "one\n")
		url := h.listen(two())
		c := h.visit(url, annsToken, revision, says("allow once"))
		if v := c.InitializeResult(); v == nil || v.ProtocolVersion != revision {
			t.Errorf("%+v", v)
		}
		if text, failed := c.call("read_file", map[string]any{"path": "a.txt"}); failed {
			t.Errorf("%s", text)
		}
		if text, failed := c.call("edit_file", map[string]any{"path": "a.txt", "old_string": "one", "new_string": "two"}); failed ||
			h.read("a.txt") != "two\n" {
			t.Errorf("%s", text)
		}
		res, err := c.agent(t.Context(), map[string]any{"task": "call: write_file {\"path\":\"one.txt\",\"content\":\"1\"}\nsay: made"})
		if err != nil || res.IsError || h.read("one.txt") != "1" || len(c.questions()) != 2 {
			t.Errorf("%v %+v, %d questions", err, res, len(c.questions()))
		}
		testkit.WaitFor(t, "the progress", func() bool { return strings.Contains(c.heard(), "▸ write_file one.txt") })
	})
}

// TestPrincipals checks that no principal reaches another's objects.
func TestPrincipals(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		h := newHouse(t, "ask")
		h.rounds = &sdk.MultiRoundTripOptions{Disabled: true}
		url := h.listen(two())
		ann, bob := h.visit(url, annsToken, revision, nil), h.visit(url, bobsToken, revision, nil)
		res, err := ann.agent(t.Context(), map[string]any{"task": "say: mine"})
		if err != nil {
			t.Fatal(err)
		}
		hers := map[string]any{"task": "say: more", "session": reportOf(t, res).Session}
		if res, err := bob.agent(t.Context(), hers); err != nil || !res.IsError || !strings.Contains(textOf(res), "no such session") {
			t.Errorf("%v %+v", err, res)
		}
		if said, err := bob.transcript(t.Context(), hers["session"].(string)); err == nil {
			t.Errorf("bob reads %s", said)
		}
		if said, err := ann.transcript(t.Context(), hers["session"].(string)); err != nil || !strings.Contains(said, "mine") {
			t.Errorf("%v: %s", err, said)
		}
		if res, err := ann.agent(t.Context(), hers); err != nil || res.IsError {
			t.Errorf("%v %+v", err, res)
		}
		if !strings.Contains(h.log(hers["session"].(string)), `"by":"mcp:ann"`) {
			t.Error("the log does not say whose it is")
		}
		if revision == older {
			h.foreignSession(url, ann.ID())
			return
		}
		ann = h.visit(url, annsToken, revision, says(""))
		write := &sdk.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "new.txt", "content": "x"}}
		asks, err := ann.CallTool(t.Context(), write)
		if err != nil || !asks.NeedsInput() {
			t.Fatalf("%+v %v", asks, err)
		}
		write.RequestState = asks.RequestState
		write.InputResponses = sdk.InputResponseMap{"decision": &sdk.ElicitResult{
			Action:  "accept",
			Content: map[string]any{"decision": "allow once"},
		}}
		if res, err := bob.CallTool(t.Context(), write); err == nil || h.read("new.txt") != "" {
			t.Errorf("bob answers for ann: %+v", res)
		}
		if res, err := ann.CallTool(t.Context(), write); err != nil || res.IsError || h.read("new.txt") != "x" {
			t.Errorf("%+v %v", res, err)
		}
	})
}

// foreignSession sends a request into the HTTP session of another.
func (h *house) foreignSession(url, id string) {
	h.t.Helper()
	if id == "" {
		h.t.Fatal("no session")
	}
	for token, want := range map[string]int{annsToken: http.StatusOK, bobsToken: http.StatusNotFound} {
		req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, url,
			strings.NewReader(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`))
		if err != nil {
			h.t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Session-Id": id, "Mcp-Protocol-Version": older,
		} {
			req.Header.Set(k, v)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			h.t.Fatal(err)
		}
		res.Body.Close() //nolint:errcheck // it was only read
		if res.StatusCode != want {
			h.t.Errorf("%d, want %d", res.StatusCode, want)
		}
	}
}

// TestHTTPEnds checks that nothing runs on when a request or an HTTP session is ended, or the server.
func TestHTTPEnds(t *testing.T) {
	for i, tc := range []struct {
		name, revision string
		end            func(*house, *client, context.CancelFunc)
	}{
		{"request", older, func(_ *house, _ *client, cancel context.CancelFunc) { cancel() }},
		{"request", newer, func(_ *house, _ *client, cancel context.CancelFunc) { cancel() }},
		{"session", older, func(h *house, c *client, _ context.CancelFunc) { h.hangUp(c.ID()) }},
		{"server", older, func(h *house, _ *client, _ context.CancelFunc) { h.Close() }},
		{"server", newer, func(h *house, _ *client, _ context.CancelFunc) { h.Close() }},
	} {
		t.Run(tc.name+" "+tc.revision, func(t *testing.T) {
			h := newHouse(t, "auto")
			h.url = h.listen(two())
			c := h.visit(h.url, annsToken, tc.revision, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = c.agent(ctx, map[string]any{"task": "bash: sleep " + mark(20+i)})
			}()
			testkit.WaitFor(t, "the process", func() bool { return processes(t, mark(20+i)) > 0 })
			tc.end(h, c, cancel)
			testkit.WaitFor(t, "its end", func() bool { return processes(t, mark(20+i)) == 0 })
			cancel()
			<-ended
			if tc.name != "server" {
				return
			}
			res, err := (&http.Client{Transport: tokened(annsToken)}).Get(h.url)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close() //nolint:errcheck // it was only read
			if res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("a server that was closed: %d", res.StatusCode)
			}
		})
	}
}

// hangUp ends an HTTP session.
func (h *house) hangUp(id string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodDelete, h.url, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", id)
	res, err := (&http.Client{Transport: tokened(annsToken)}).Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close() //nolint:errcheck // it was only read
	if res.StatusCode != http.StatusNoContent {
		h.t.Errorf("%d", res.StatusCode)
	}
}
