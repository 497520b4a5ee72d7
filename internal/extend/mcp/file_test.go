package mcp_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
)

func TestReadFile(t *testing.T) {
	servers, warnings, err := mcp.ReadFile(".mcp.json", "/w", []byte(`{"mcpServers": {
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
		`"both" is ignored`, `"bad name!" is ignored`,
		`"typed" is ignored`, `"A" is there twice`, `"late" is ignored`, `"autoApprove"`,
	} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in\n%s", part, all)
		}
	}
	if len(warnings) != 6 {
		t.Errorf("%d warnings", len(warnings))
	}
}

// TestShapes reads one server as the programs write it that name servers.
func TestShapes(t *testing.T) {
	run := mcp.Server{Name: "a", Command: []string{"npx", "-y", "x"}, Env: map[string]string{"K": "${KEY}"}}
	web := mcp.Server{Name: "a", URL: "https://a.example/mcp", Headers: map[string]string{"X": "Bearer ${KEY}"}}
	with := func(s mcp.Server, change func(*mcp.Server)) mcp.Server { change(&s); return s }
	for name, c := range map[string]struct {
		text string
		want mcp.Server
	}{
		"Claude Code":      {`{"mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"K": "${KEY}"}}}}`, with(run, func(s *mcp.Server) { s.Kind = mcp.Stdio })},
		"Cursor":           {`{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${env:KEY}"}}}}`, run},
		"Cursor, comments": {"\ufeff{\"mcpServers\": { // ours\n\"a\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\",], \"env\": {\"K\": \"${KEY}\"},},}}", run},
		"VS Code":          {`{"inputs": [], "servers": {"a": {"type": "http", "url": "https://a.example/mcp", "headers": {"X": "Bearer ${input:KEY}"}}}}`, with(web, func(s *mcp.Server) { s.Kind = mcp.HTTP })},
		"VS Code settings": {`{"mcp": {"inputs": [], "servers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${KEY}"}}}}}`, run},
		"Windsurf":         {`{"mcpServers": {"a": {"serverUrl": "https://a.example/mcp", "headers": {"X": "Bearer ${env:KEY}"}, "disabledTools": ["b"]}}}`, with(web, func(s *mcp.Server) { s.Without = []string{"b"} })},
		"Windsurf, SSE":    {`{"mcpServers": {"a": {"serverUrl": "https://a.example/sse"}}}`, mcp.Server{Name: "a", URL: "https://a.example/sse"}},
		"Antigravity":      {`{"mcpServers": {"a": {"serverUrl": "https://a.example/mcp", "headers": {"X": "Bearer ${KEY}"}, "disabled": true}}}`, with(web, func(s *mcp.Server) { s.Off = true })},
		"opencode, local":  {`{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"K": "{env:KEY}"}, "enabled": true}}}`, run},
		"opencode, remote": {`{"mcp": {"a": {"type": "remote", "url": "https://a.example/mcp", "headers": {"X": "Bearer {env:KEY}"}, "enabled": false}}}`, with(web, func(s *mcp.Server) { s.Off = true })},
		"its own name":     {`{"mcpServers": {"a": {"type": "local", "command": ["npx"], "args": ["-y", "x"], "environment": {"K": "${KEY}"}}}}`, run},
		"Gemini CLI":       {`{"mcpServers": {"a": {"httpUrl": "https://a.example/mcp", "headers": {"X": "Bearer ${KEY}"}, "includeTools": ["b"], "excludeTools": ["c"]}}}`, with(web, func(s *mcp.Server) { s.Kind, s.Only, s.Without = mcp.HTTP, []string{"b"}, []string{"c"} })},
		"a folder":         {`{"mcpServers": {"a": {"command": "npx", "args": ["-y", "${workspaceFolder}/x"], "cwd": "sub"}}}`, mcp.Server{Name: "a", Command: []string{"npx", "-y", "/w/x"}, Dir: "sub"}},
		"the folder":       {`{"mcpServers": {"a": {"command": "${workspaceFolder}/x", "cwd": "${workspaceFolder}"}}}`, mcp.Server{Name: "a", Command: []string{"/w/x"}}},
	} {
		servers, warnings, err := mcp.ReadFile("x", "/w", []byte(c.text))
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(servers, []mcp.Server{c.want}) {
			t.Errorf("%s: %+v, %q, %v\nwant %+v", name, servers, warnings, err, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"url": "https://a.example", "serverUrl": "https://b.example"}`: "more than one of url",
		`{"command": "x", "env": {}, "environment": {}}`:                 "both env and environment",
		`{"command": [7]}`: "command", `{"command": []}`: "is ignored", `{"type": "strange", "url": "https://a.example"}`: "strange",
	} {
		servers, warnings, err := mcp.ReadFile("x", "/w", []byte(`{"mcpServers": {"a": `+text+`}}`))
		if err != nil || len(servers) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("%s: %+v, %q, %v, want %q", text, servers, warnings, err, want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "list": "[]", "none": "{}", "case": `{"MCPSERVERS":{}}`, "twice": `{"mcpServers":{},"mcpServers":{}}`,
		"same": `{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}`, "half": `{"mcpServers":{"a"`, "more": `{"mcpServers":{}} {}`,
		"null": `{"mcpServers":null}`, "binary": "{\"mcpServers\":{\"\xff\":{}}}", "nothing": "null",
	} {
		if servers, _, err := mcp.ReadFile("x.json", "/w", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.json: ") {
			t.Errorf("%s: %+v, %v", name, servers, err)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["${A:-b}"],"env":{"B":"c"}},"b":{"url":"http://x/"}}}`))
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","timeout":-1,"type":"ws"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, _, err := mcp.ReadFile("x", "/w", data)
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
