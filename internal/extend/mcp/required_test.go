package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/tool"
)

// elder is a server by hand of revision 2025-11-25, whose tools say how they want to be
// called: as tasks, or not.
type elder struct {
	mu   sync.Mutex
	seen []string
}

func (s *elder) saw(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen {
		if one == what {
			return true
		}
	}
	return false
}

func (s *elder) reply(method, id string, asTask bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asTask {
		method += " task"
	}
	s.seen = append(s.seen, strings.TrimSpace(method+" "+id))
	at := func(state string) string {
		return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null,`+
			`"pollInterval":100`, id, state)
	}
	const text = `{"content":[{"type":"text","text":%q}],"isError":%t}`
	switch strings.TrimSuffix(method, " task") {
	case "initialize":
		return `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},` +
			`"serverInfo":{"name":"elder","version":"1"}}`
	case "tools/list":
		var tools []string
		for _, name := range []string{"works", "fails", "refused", "waits", "hasty", "forgotten", "ended"} {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`, name))
		}
		return `"result":{"tools":[{"name":"both","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
			strings.Join(tools, ",") + `]}`
	case "tools/call":
		if !asTask || id == "hasty" {
			return `"result":` + fmt.Sprintf(text, "at once", false)
		}
		return `"result":{"task":{` + at("working") + `}}`
	case "tasks/get":
		state := map[string]string{"works": "completed", "fails": "failed", "refused": "failed", "waits": "working", "ended": "cancelled"}[id]
		if state == "" {
			return `"error":{"code":-32602,"message":"Task not found"}`
		}
		return `"result":{` + at(state) + `,"statusMessage":"it is so"}`
	case "tasks/result":
		if id == "refused" {
			return `"error":{"code":-32000,"message":"no \u001b[31mway"}`
		}
		return `"result":` + fmt.Sprintf(text, "the result", id == "fails")
	case "tasks/cancel":
		return `"result":{` + at("cancelled") + `}`
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

func (s *elder) server(t *testing.T) mcp.Server {
	t.Helper()
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return mcp.Server{Name: "own", Source: mcp.User, Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		serving.Go(func() {
			defer theirs.Close() //nolint:errcheck // it is over
			for lines := bufio.NewScanner(theirs); lines.Scan(); {
				var r struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
					Params struct {
						Name string          `json:"name"`
						ID   string          `json:"taskId"`
						Task json.RawMessage `json:"task"`
					} `json:"params"`
				}
				if json.Unmarshal(lines.Bytes(), &r) == nil && r.ID != nil {
					fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID,
						s.reply(r.Method, r.Params.Name+r.Params.ID, string(r.Params.Task) == "{}"))
				}
			}
		})
		return ours, nil
	}}
}

// TestRequiredTasks calls tools of revision 2025-11-25 as tasks if they require that, and fetches their results. The
// pin ignores this: a known tool is called as it requires now.
func TestRequiredTasks(t *testing.T) {
	t.Parallel()
	pins := mcp.Pins{Dir: filepath.Join(t.TempDir(), "pins")}
	for range 2 {
		s := &elder{}
		h := newHouse(t, s.server(t))
		h.Pins = pins
		h.Start()
		h.until("tools", func() bool { return len(h.Tools()) == 8 })
		for name, want := range map[string]string{
			"works": "the result, <nil>", "fails": "the result, mcp__own__fails failed", "both": "at once, <nil>", "hasty": "at once, <nil>",
			"refused":   `, mcp__own__refused failed: no `,
			"forgotten": ", mcp__own__forgotten is a task that its server no longer knows, so its effects are unknown: Task not found",
			"ended":     ", mcp__own__ended was cancelled by its server; its effects until then are unknown: it is so",
		} {
			said, _, err := h.does(t.Context(), name)
			if got := fmt.Sprintf("%s, %v", said, err); !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") {
				t.Errorf("%s: %s", name, got)
			}
		}
		if s.saw("tools/call task both") || !s.saw("tools/call task works") || s.saw("tasks/cancel works") {
			t.Errorf("%q", s.seen)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := h.tool("mcp__own__waits").Run(ctx, &tool.Call{Args: []byte("{}"), Progress: func(string) { cancel() }})
		if !errors.Is(err, context.Canceled) || !s.saw("tasks/cancel waits") {
			t.Errorf("%v, %q", err, s.seen)
		}
		h.Close()
	}
}
