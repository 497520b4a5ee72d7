package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/inspan/inspan/internal/mcp"
)

// Foreign is a file of another program that names MCP servers.
type Foreign struct {
	Path string
	Read func(f Foreign, data []byte) (map[string]MCPServer, []string, error)
	Root string // workspace that it is read for
}

// ForeignFiles lists where the programs that people come from keep their servers: Cursor,
// VS Code, Claude Code, Claude Desktop and Codex. They need not exist.
func ForeignFiles(root, home, settings string) []Foreign {
	var out []Foreign
	for _, f := range []struct {
		path string
		read func(Foreign, []byte) (map[string]MCPServer, []string, error)
	}{
		{filepath.Join(root, ".cursor", "mcp.json"), Foreign.usual},
		{filepath.Join(home, ".cursor", "mcp.json"), Foreign.usual},
		{filepath.Join(root, ".vscode", "mcp.json"), Foreign.usual},
		{filepath.Join(settings, "Code", "User", "mcp.json"), Foreign.usual},
		{filepath.Join(home, ".claude.json"), Foreign.claude},
		{filepath.Join(settings, "Claude", "claude_desktop_config.json"), Foreign.usual},
		{filepath.Join(home, ".codex", "config.toml"), Foreign.codex},
	} {
		if !slices.ContainsFunc(out, func(o Foreign) bool { return o.Path == f.path }) { // the workspace can be the home
			out = append(out, Foreign{f.path, f.read, root})
		}
	}
	return out
}

// ForeignFile is a file by its path, whose form its name tells.
func ForeignFile(path, root string) Foreign {
	read := Foreign.usual
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, ".toml"):
		read = Foreign.codex
	case base == ".claude.json":
		read = Foreign.claude
	}
	return Foreign{path, read, root}
}

// usual reads the form that nearly all have: an object of servers, called mcpServers or,
// by VS Code, servers. Comments are left out.
func (f Foreign) usual(data []byte) (map[string]MCPServer, []string, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(plain(data), &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	list := top["mcpServers"]
	if list == nil {
		list = top["servers"]
	}
	return f.servers(list)
}

// claude reads the servers of the person, and those that they have for this workspace only.
func (f Foreign) claude(data []byte) (map[string]MCPServer, []string, error) {
	var top struct {
		Servers  json.RawMessage `json:"mcpServers"`
		Projects map[string]struct {
			Servers json.RawMessage `json:"mcpServers"`
		} `json:"projects"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	out, warnings, err := f.servers(top.Servers)
	if err != nil {
		return nil, nil, err
	}
	own, more, err := f.servers(top.Projects[f.Root].Servers)
	maps.Copy(out, own)
	return out, append(warnings, more...), err
}

// servers reads an object of servers.
func (f Foreign) servers(list json.RawMessage) (map[string]MCPServer, []string, error) {
	out := map[string]MCPServer{}
	if list == nil {
		return out, nil, nil
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(list, &byName); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	renamed := map[string]json.RawMessage{}
	for name, one := range byName {
		renamed[usable(name)] = one
	}
	data, err := json.Marshal(map[string]any{"mcpServers": renamed})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	read, warnings, err := mcp.ReadFile(f.Path, data)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range read {
		out[s.Name] = f.filled(MCPServer{
			Command: s.Command, Env: s.Env, Dir: s.Dir, Hosts: s.Hosts, Read: s.Read, Write: s.Write,
			URL: s.URL, Kind: s.Kind, Headers: s.Headers, Timeout: s.Timeout, Off: s.Off,
		})
	}
	return out, warnings, nil
}

// codex reads the settings of Codex.
func (f Foreign) codex(data []byte) (map[string]MCPServer, []string, error) {
	var top struct {
		Servers map[string]struct {
			Command string            `toml:"command"`
			Args    []string          `toml:"args"`
			Env     map[string]string `toml:"env"`
			Vars    []string          `toml:"env_vars"`
			Dir     string            `toml:"cwd"`
			URL     string            `toml:"url"`
			Token   string            `toml:"bearer_token_env_var"`
			Headers map[string]string `toml:"http_headers"`
			Named   map[string]string `toml:"env_http_headers"`
			Seconds float64           `toml:"tool_timeout_sec"`
			Enabled *bool             `toml:"enabled"`
		} `toml:"mcp_servers"`
	}
	if _, err := toml.Decode(string(data), &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	out := map[string]MCPServer{}
	for name, s := range top.Servers {
		one := MCPServer{
			Env: map[string]string{}, Dir: s.Dir, URL: s.URL, Headers: map[string]string{},
			Timeout: time.Duration(s.Seconds * float64(time.Second)), Off: s.Enabled != nil && !*s.Enabled,
		}
		if s.Command != "" {
			one.Command = append([]string{s.Command}, s.Args...)
		}
		maps.Copy(one.Env, s.Env)
		maps.Copy(one.Headers, s.Headers)
		for _, v := range s.Vars {
			one.Env[v] = "${" + v + "}"
		}
		for header, v := range s.Named {
			one.Headers[header] = "${" + v + "}"
		}
		if s.Token != "" {
			one.Headers["Authorization"] = "Bearer ${" + s.Token + "}"
		}
		out[usable(name)] = one
	}
	return out, nil, nil
}

// filled is a server with the variables of others written as ours.
func (f Foreign) filled(s MCPServer) MCPServer {
	root := "."
	if s.Dir != "" && s.Dir != "${workspaceFolder}" {
		root = f.Root
	}
	if s.Dir == "${workspaceFolder}" {
		s.Dir = ""
	}
	fixed := strings.NewReplacer("${workspaceFolder}", root, "${userHome}", "${HOME}", "${pathSeparator}", "/", "${/}", "/")
	foreign := regexp.MustCompile(`\$\{(env|input):([^}]*)\}`)
	ours := func(text string) string {
		return foreign.ReplaceAllStringFunc(fixed.Replace(text), func(match string) string {
			parts := foreign.FindStringSubmatch(match)
			if parts[1] == "input" {
				parts[2] = strings.ToUpper(strings.ReplaceAll(usable(parts[2]), "-", "_"))
			}
			return "${" + parts[2] + "}"
		})
	}
	s.URL, s.Dir = ours(s.URL), ours(s.Dir)
	for i := range s.Command {
		s.Command[i] = ours(s.Command[i])
	}
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for name := range texts {
			texts[name] = ours(texts[name])
		}
	}
	return s
}

// Variables lists the variables that a server wants, as [mcp.Server.Variables] does.
func (s MCPServer) Variables() []string {
	return MCP{Servers: map[string]MCPServer{"x": s}}.List()[0].Variables()
}

// usable is a name as servers have them here.
func usable(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 40)]
}

// plain is JSON without the comments and last commas that editors allow.
func plain(data []byte) []byte {
	tokens := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|//[^\n]*|/\*[\s\S]*?\*/`)
	data = tokens.ReplaceAllFunc(data, func(token []byte) []byte {
		if token[0] == '"' {
			return token
		}
		return nil
	})
	last := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|,\s*[}\]]`)
	return last.ReplaceAllFunc(data, func(token []byte) []byte {
		if token[0] == '"' {
			return token
		}
		return token[len(token)-1:]
	})
}
