package connect

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/inspan/inspan/internal/config"
)

// gemini reads the settings of Gemini CLI.
func (f foreignFile) gemini(data []byte) (map[string]config.MCPServer, []string, error) {
	var top struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
			Dir     string            `json:"cwd"`
			URL     string            `json:"url"`
			HTTP    string            `json:"httpUrl"`
			Headers map[string]string `json:"headers"`
			Millis  float64           `json:"timeout"`
		} `json:"mcpServers"`
	}
	if err := Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	var all struct {
		Servers map[string]map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := Unmarshal(data, &all); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	out := map[string]config.MCPServer{}
	for name, s := range top.Servers {
		one := config.MCPServer{
			Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers,
			Timeout: time.Duration(s.Millis) * time.Millisecond,
		}
		switch {
		case s.HTTP != "":
			one.URL, one.Kind = s.HTTP, "http"
		case s.URL != "":
			one.Kind = "sse"
		case s.Command != "":
			one.Command = append([]string{s.Command}, s.Args...)
		}
		out[usable(name)] = f.braced(one)
	}
	return out, unread(f, all.Servers, "command", "args", "env", "cwd", "url", "httpUrl", "headers", "timeout"), nil
}

// opencode reads the settings of opencode.
func (f foreignFile) opencode(data []byte) (map[string]config.MCPServer, []string, error) {
	var top struct {
		Servers map[string]struct {
			Command []string          `json:"command"`
			Env     map[string]string `json:"environment"`
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
			Enabled *bool             `json:"enabled"`
		} `json:"mcp"`
	}
	if err := Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	var all struct {
		Servers map[string]map[string]json.RawMessage `json:"mcp"`
	}
	if err := Unmarshal(data, &all); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	out := map[string]config.MCPServer{}
	for name, s := range top.Servers {
		one := config.MCPServer{Command: s.Command, Env: s.Env, URL: s.URL, Headers: s.Headers, Off: s.Enabled != nil && !*s.Enabled}
		if len(one.Command) > 0 || one.URL != "" { // else it only switches on what an organisation offers
			out[usable(name)] = f.braced(one)
		}
	}
	return out, unread(f, all.Servers, "type", "command", "environment", "url", "headers", "enabled"), nil
}

// braced is a server whose variables, $NAME or {env:NAME}, are written as ours.
func (f foreignFile) braced(s config.MCPServer) config.MCPServer {
	variable := regexp.MustCompile(`\{env:([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)`)
	ours := func(text string) string { return variable.ReplaceAllString(text, "$${$1$2}") }
	s.Env, s.Headers, s.URL = maps.Clone(s.Env), maps.Clone(s.Headers), ours(s.URL)
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for name := range texts {
			texts[name] = ours(texts[name])
		}
	}
	return s
}
