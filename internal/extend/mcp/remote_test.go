package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit"
)

// served is a server over HTTP, and the house that may reach it.
func served(t *testing.T, kind, path string, handler http.Handler) *house {
	t.Helper()
	s := httptest.NewServer(handler)
	h := newHouse(t, mcp.Server{Name: "far", URL: s.URL + path, Kind: kind, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}})
	guard := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxBytes: 1 << 30}
	client := guard.Client()
	client.Timeout = time.Millisecond // ours counts, not that one
	h.HTTP = func(mcp.Server) *http.Client { return client }
	h.Expand = func(mcp.Server, string) string { return "abc" }
	t.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return h
}

// guarded lets only those in who have the key.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer abc" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestRemote(t *testing.T) {
	server := honest()
	get := func(*http.Request) *sdk.Server { return server }
	aged := aged()
	for name, c := range map[string]struct {
		kind, path, revision string
		handler              http.Handler
	}{
		"streamable": {mcp.HTTP, "/mcp", "2025-11-25", sdk.NewStreamableHTTPHandler(get, nil)},
		"stateless":  {"", "/mcp", "2026-07-28", sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true})},
		"json":       {"", "/mcp", "2025-11-25", sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{JSONResponse: true})},
		"handshake":  {"", "/mcp", "2025-11-25", sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return aged }, nil)},
		"socket":     {mcp.WebSocket, "/", "2026-07-28", sockets(server)},
		"sse":        {"", "/sse", "2025-11-25", sdk.NewSSEHandler(get, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			h := served(t, c.kind, c.path, guarded(c.handler))
			s := h.begin("far", mcp.Ready)
			if s.Revision != c.revision || s.Tools != 5 {
				t.Errorf("%+v", s)
			}
			res, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`)
			if err != nil || text(res) != "you said x" {
				t.Errorf("%q, %v", text(res), err)
			}
			h.closes()
		})
	}
}

// TestRemoteChanges adds a tool after a while. noisy writes lines that are not messages between a handler's events.
type noisy struct {
	http.ResponseWriter
	said bool
}

func (n *noisy) Write(p []byte) (int, error) {
	count, err := n.ResponseWriter.Write(p)
	if events := strings.HasPrefix(n.Header().Get("Content-Type"), "text/event-stream"); events && !n.said && bytes.HasSuffix(p, []byte("\n\n")) {
		n.said = true
		fmt.Fprint(n.ResponseWriter, "data: starting up\n\ndata: {\"level\": \"info\"}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\ndebug\n\n")
	}
	return count, err
}

func (n *noisy) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noisy) Flush() { n.ResponseWriter.(http.Flusher).Flush() }

// TestRemoteNoise is passed over, and told once, whatever way a server is reached.
func TestRemoteNoise(t *testing.T) {
	server := honest()
	get := func(*http.Request) *sdk.Server { return server }
	for name, c := range map[string]struct {
		kind, path string
		handler    http.Handler
	}{
		"streamable": {mcp.HTTP, "/mcp", sdk.NewStreamableHTTPHandler(get, nil)},
		"stateless":  {mcp.HTTP, "/mcp", sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true})},
		"sse":        {mcp.SSE, "/sse", sdk.NewSSEHandler(get, nil)},
		"socket":     {mcp.WebSocket, "/", sockets(server, "starting up", `{"level": "info"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			h := served(t, c.kind, c.path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.kind != mcp.WebSocket {
					w = &noisy{ResponseWriter: w}
				}
				c.handler.ServeHTTP(w, r)
			}))
			h.begin("far", mcp.Ready)
			for range 2 {
				if res, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`); err != nil || text(res) != "you said x" {
					t.Errorf("%q, %v", text(res), err)
				}
			}
			if told := h.warned(); strings.Count(told, "inspan skips") != 1 || h.status("far").Restarts != 0 {
				t.Errorf("told %q, %+v", told, h.status("far"))
			}
			h.closes()
		})
	}
}

func TestRemoteChanges(t *testing.T) {
	for revision, stateless := range map[string]bool{"2026-07-28": true, "2025-11-25": false} {
		t.Run(revision, func(t *testing.T) {
			server := honest()
			h := served(t, "", "/mcp", sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
				&sdk.StreamableHTTPOptions{Stateless: stateless}))
			before := h.begin("far", mcp.Ready)
			if before.Revision != revision {
				t.Fatalf("%+v", before)
			}
			server.AddTool(&sdk.Tool{Name: "more", InputSchema: map[string]any{"type": "object"}}, nil)
			h.until("change", func() bool { return h.status("far").Tools == before.Tools+1 })
			if h.status("far").Digest == before.Digest {
				t.Error("the digest is the same")
			}
		})
	}
}

func TestRemoteFailures(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for name, c := range map[string]struct {
		kind, want string
		handler    http.HandlerFunc
	}{
		"redirect": {"", "redirects to http://", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}},
		"key": {"", "it requires authentication", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		"hang": {"", "did not answer in 300ms", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the end of the request is seen
			<-r.Context().Done()
		}},
		"huge": {"", "more than 16 MiB", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}},
		"huge event": {"", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: ")
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}},
		"page":   {"", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		"broken": {"", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"sse that leads elsewhere": {mcp.SSE, "another server", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: %s/steal\n\n", other.URL)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := served(t, c.kind, "/mcp", c.handler)
			h.Patience = testkit.Patience
			if name == "hang" {
				h.Patience = 300 * time.Millisecond
			}
			s := h.begin("far", mcp.Failed)
			if !strings.Contains(s.Why, c.want) {
				t.Errorf("%q", s.Why)
			}
			h.closes()
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("another server was asked")
	}
}

// TestRemoteThatDoesNotLetGo answers nothing any more when it is left.
func TestRemoteThatDoesNotLetGo(t *testing.T) {
	server := honest()
	next := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var left atomic.Bool
	h := served(t, "", "/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			left.Store(true)
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
		next.ServeHTTP(w, r)
	}))
	h.begin("far", mcp.Ready)
	h.closes()
	if !left.Load() {
		t.Error("it was not told")
	}
}

// sockets serves over web sockets.
func sockets(server *sdk.Server, greetings ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			return
		}
		for _, text := range greetings {
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(text)) // what follows says whether it came
		}
		stream := websocket.NetConn(r.Context(), conn, websocket.MessageText)
		_ = server.Run(r.Context(), &sdk.IOTransport{Reader: stream, Writer: stream})
	})
}

// TestInside talks to a server in the same process, again when it has gone away.
func TestInside(t *testing.T) {
	var serving sync.WaitGroup
	var mu sync.Mutex
	var last net.Conn
	dials := 0
	h := newHouse(t, mcp.Server{Name: "in", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		mu.Lock()
		defer mu.Unlock()
		last = theirs
		dials++
		serving.Go(func() { _ = honest().Run(ctx, &sdk.IOTransport{Reader: theirs, Writer: theirs}) })
		return ours, nil
	}})
	s := h.begin("in", mcp.Ready)
	if s.Kind != mcp.Inside || s.Revision != "2026-07-28" {
		t.Errorf("%+v", s)
	}
	if res, err := h.call(t.Context(), "mcp__in__echo", `{"text":"x"}`); err != nil || text(res) != "you said x" {
		t.Errorf("%q, %v", text(res), err)
	}
	mu.Lock()
	_ = last.Close()
	mu.Unlock()
	h.until("again", func() bool { return h.status("in").Restarts == 1 && h.status("in").State == mcp.Ready })
	h.Close()
	serving.Wait()
	if dials != 2 {
		t.Errorf("%d dials", dials)
	}
}
