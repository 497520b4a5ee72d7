package mcp_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/mcp"
)

func TestReadFile(t *testing.T) {
	servers, warnings, err := mcp.ReadFile(".mcp.json", []byte(`{"mcpServers": {
		"web": {"type": "streamable-http", "url": "https://example.com/${PATH_TO:-mcp}", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 1500},
		"local": {"command": "npx", "args": ["-y", "x@1"], "env": {"A": "${B}"}, "cwd": "sub", "hosts": ["registry.npmjs.org"], "disabled": true, "autoApprove": ["x"]},
		"old": {"url": "https://example.com/sse"},
		"socket": {"type": "ws", "url": "wss://example.com"},
		"both": {"command": "x", "url": "https://example.com"},
		"bad name!": {"command": "x"},
		"typed": {"command": 7},
		"twice": {"command": "x", "env": {"A": "1", "A": "2"}},
		"late": {"command": "x", "timeout": 1e15}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []mcp.Server{
		{
			Name: "local", Command: []string{"npx", "-y", "x@1"}, Env: map[string]string{"A": "${B}"}, Dir: "sub",
			Hosts: []string{"registry.npmjs.org"}, Off: true,
		},
		{Name: "old", URL: "https://example.com/sse"},
		{Name: "socket", URL: "wss://example.com", Kind: mcp.WebSocket},
		{
			Name: "web", Kind: mcp.HTTP, URL: "https://example.com/${PATH_TO:-mcp}",
			Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}, Timeout: 1500 * time.Millisecond,
		},
	}
	if !reflect.DeepEqual(servers, want) {
		t.Errorf("%+v", servers)
	}
	if v := servers[3].Variables(); !slices.Equal(v, []string{"PATH_TO", "TOKEN"}) {
		t.Errorf("%v", v)
	}
	all := strings.Join(warnings, "\n")
	for _, part := range []string{
		`"both" is left out`, `"bad name!" is left out`,
		`"typed" is left out`, `"A" is there twice`, `"late" is left out`, `"autoApprove"`,
	} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in\n%s", part, all)
		}
	}
	if len(warnings) != 6 {
		t.Errorf("%d warnings", len(warnings))
	}
}

func TestBadFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "list": "[]", "none": "{}", "case": `{"MCPSERVERS":{}}`, "twice": `{"mcpServers":{},"mcpServers":{}}`,
		"same": `{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}`, "half": `{"mcpServers":{"a"`, "more": `{"mcpServers":{}} {}`,
		"null": `{"mcpServers":null}`, "binary": "{\"mcpServers\":{\"\xff\":{}}}", "nothing": "null",
	} {
		if servers, _, err := mcp.ReadFile("x.json", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.json: ") {
			t.Errorf("%s: %+v, %v", name, servers, err)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["${A:-b}"],"env":{"B":"c"}},"b":{"url":"http://x/"}}}`))
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","timeout":-1,"type":"ws"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, _, err := mcp.ReadFile("x", data)
		if err != nil && servers != nil {
			t.Error("servers and an error")
		}
		for _, s := range servers {
			if s.Name == "" || len(s.Name) > 40 || (len(s.Command) > 0) == (s.URL != "") {
				t.Errorf("%+v", s)
			}
			s.Variables()
		}
	})
}
