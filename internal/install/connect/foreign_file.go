package connect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/foreign"
)

// foreignFile is a file of another program that configures MCP servers.
type foreignFile struct {
	path    string
	read    func(f foreignFile, data []byte) (map[string]config.MCPServer, []string, error)
	root    string // workspace that it is read for
	project bool   // its servers are for the workspace only
}

// foreignFiles lists the files in which other programs configure servers: Cursor, VS Code, Copilot CLI, Claude Code,
// Claude Desktop, Codex, Gemini CLI and opencode. They need not exist.
func foreignFiles(root, home, settings string) []foreignFile {
	out := []foreignFile{
		{filepath.Join(home, ".cursor", "mcp.json"), foreignFile.usual, root, false},
		{filepath.Join(settings, "Code", "User", "mcp.json"), foreignFile.usual, root, false},
		{filepath.Join(home, ".copilot", "mcp-config.json"), foreignFile.usual, root, false},
		{filepath.Join(home, ".claude.json"), foreignFile.claude, root, false},
		{filepath.Join(settings, "Claude", "claude_desktop_config.json"), foreignFile.usual, root, false},
		{filepath.Join(home, ".codex", "config.toml"), foreignFile.codex, root, false},
		{filepath.Join(home, ".gemini", "settings.json"), foreignFile.gemini, root, false},
		{filepath.Join(home, ".config", "opencode", "opencode.json"), foreignFile.opencode, root, false},
		{filepath.Join(home, ".config", "opencode", "opencode.jsonc"), foreignFile.opencode, root, false},
		{filepath.Join(home, ".claude.json"), foreignFile.claudeProject, root, true},
	}
	for _, f := range []foreignFile{
		{filepath.Join(root, ".cursor", "mcp.json"), foreignFile.usual, root, true},
		{filepath.Join(root, ".vscode", "mcp.json"), foreignFile.usual, root, true},
		{filepath.Join(root, ".gemini", "settings.json"), foreignFile.gemini, root, true},
		{filepath.Join(root, "opencode.json"), foreignFile.opencode, root, true},
		{filepath.Join(root, "opencode.jsonc"), foreignFile.opencode, root, true},
	} {
		if !slices.ContainsFunc(out, func(o foreignFile) bool { return o.path == f.path }) { // the workspace can be the home
			out = append(out, f)
		}
	}
	return out
}

// foreignFilesAt returns the file at a path; its name determines its format. That of Claude Code is read for the
// person and for the workspace.
func foreignFilesAt(path, root string) []foreignFile {
	read := foreignFile.usual
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, ".toml"):
		read = foreignFile.codex
	case base == ".claude.json":
		return []foreignFile{{path, foreignFile.claude, root, false}, {path, foreignFile.claudeProject, root, false}}
	case base == "opencode.json", base == "opencode.jsonc":
		read = foreignFile.opencode
	case base == "settings.json" && filepath.Base(filepath.Dir(path)) == ".gemini":
		read = foreignFile.gemini
	}
	return []foreignFile{{path, read, root, false}}
}

// largest bounds a file in bytes. That of Claude Code contains much besides servers.
const largest = 32 << 20

// ReadForeign reads a settings file of another agent.
func ReadForeign(path string) ([]byte, error) {
	if filepath.Base(path) == ".claude.json" {
		return config.ReadAtMost(path, largest)
	}
	return config.ReadFile(path)
}

// all reads the servers in the file.
func (f foreignFile) all() (map[string]config.MCPServer, []string, error) {
	data, err := ReadForeign(f.path)
	if err != nil {
		return nil, nil, err
	}
	return f.read(f, data)
}

// usual reads the most common format: an object of servers.
func (f foreignFile) usual(data []byte) (map[string]config.MCPServer, []string, error) {
	var top struct {
		Usual json.RawMessage `json:"mcpServers"`
		Short json.RawMessage `json:"servers"`
	}
	if err := foreign.Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if top.Usual == nil {
		top.Usual = top.Short
	}
	return f.servers(top.Usual)
}

// claudeFile is the part of Claude Code's file that has servers.
type claudeFile struct {
	Servers  json.RawMessage `json:"mcpServers"`
	Projects map[string]struct {
		Servers json.RawMessage `json:"mcpServers"`
	} `json:"projects"`
}

// claude reads the servers of the person.
func (f foreignFile) claude(data []byte) (map[string]config.MCPServer, []string, error) {
	var top claudeFile
	if err := foreign.Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return f.servers(top.Servers)
}

// claudeProject reads the servers of the person for this workspace only.
func (f foreignFile) claudeProject(data []byte) (map[string]config.MCPServer, []string, error) {
	var top claudeFile
	if foreign.Unmarshal(data, &top) != nil {
		return nil, nil, nil //nolint:nilerr // claude says so
	}
	return f.servers(top.Projects[f.root].Servers)
}

// gemini reads the settings of Gemini CLI. There $NAME is also a variable, and url means the older HTTP
// transport.
func (f foreignFile) gemini(data []byte) (map[string]config.MCPServer, []string, error) {
	var top struct {
		Servers json.RawMessage `json:"mcpServers"`
	}
	if err := foreign.Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	out, warnings, err := f.servers(top.Servers)
	variable := regexp.MustCompile(`\$([A-Za-z_]\w*)`)
	for name, s := range out {
		if s.URL = variable.ReplaceAllString(s.URL, "$${$1}"); s.URL != "" && s.Kind == "" {
			s.Kind = mcp.SSE
		}
		for _, texts := range []map[string]string{s.Env, s.Headers} {
			for key := range texts {
				texts[key] = variable.ReplaceAllString(texts[key], "$${$1}")
			}
		}
		out[name] = s
	}
	return out, warnings, err
}

// opencode reads the settings of opencode. An entry without a command and an address only enables or disables a
// server of an organisation.
func (f foreignFile) opencode(data []byte) (map[string]config.MCPServer, []string, error) {
	var top struct {
		Servers map[string]map[string]json.RawMessage `json:"mcp"`
	}
	if err := foreign.Unmarshal(data, &top); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	var bare []string
	for _, name := range slices.Sorted(maps.Keys(top.Servers)) {
		if s := top.Servers[name]; s["command"] == nil && s["url"] == nil {
			bare = append(bare, fmt.Sprintf("%s: the MCP server %s has neither a command nor an address", f.path, usable(name)))
			delete(top.Servers, name)
		}
	}
	list, err := json.Marshal(top.Servers)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	out, warnings, err := f.servers(list)
	return out, append(bare, warnings...), err
}

// servers reads an object of servers.
func (f foreignFile) servers(list json.RawMessage) (map[string]config.MCPServer, []string, error) {
	out := map[string]config.MCPServer{}
	if list == nil || string(list) == "null" {
		return out, nil, nil
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(list, &byName); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	renamed := map[string]json.RawMessage{}
	for name, one := range byName {
		renamed[usable(name)] = one
	}
	data, err := json.Marshal(map[string]any{"mcpServers": renamed})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	read, warnings, err := mcp.ReadFile(f.path, f.root, data)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range read {
		out[s.Name] = config.MCPServer{
			Command: s.Command, Env: s.Env, Dir: s.Dir, Hosts: s.Hosts, Read: s.Read, Write: s.Write,
			URL: s.URL, Kind: s.Kind, Headers: s.Headers, Timeout: s.Timeout, Only: s.Only, Without: s.Without, Off: s.Off,
		}
	}
	return out, warnings, nil
}

// codex reads the settings of Codex.
func (f foreignFile) codex(data []byte) (map[string]config.MCPServer, []string, error) {
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
			Only    []string          `toml:"enabled_tools"`
			Without []string          `toml:"disabled_tools"`
			Enabled *bool             `toml:"enabled"`
		} `toml:"mcp_servers"`
	}
	var all struct {
		Servers map[string]map[string]any `toml:"mcp_servers"`
	}
	if err := cmp.Or(config.Decode(f.path, data, &top), config.Decode(f.path, data, &all)); err != nil {
		return nil, nil, err
	}
	out := map[string]config.MCPServer{}
	for name, s := range top.Servers {
		one := config.MCPServer{
			Env: map[string]string{}, Dir: s.Dir, URL: s.URL, Headers: map[string]string{},
			Timeout: time.Duration(s.Seconds * float64(time.Second)), Only: s.Only, Without: s.Without, Off: s.Enabled != nil && !*s.Enabled,
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
	return out, unread(f, all.Servers, "command", "args", "env", "env_vars", "cwd", "url", "bearer_token_env_var", "http_headers",
		"env_http_headers", "tool_timeout_sec", "enabled_tools", "disabled_tools", "enabled"), nil
}

// unread returns warnings about fields of servers that are not imported.
func unread[T any](f foreignFile, servers map[string]map[string]T, known ...string) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		for _, field := range slices.Sorted(maps.Keys(servers[name])) {
			if !slices.Contains(known, field) {
				warnings = append(warnings, fmt.Sprintf("%[1]s: inspan ignores the field %[3]q of the MCP server %[2]s",
					f.path, usable(name), text.Cut(field, 60)))
			}
		}
	}
	return warnings
}

// usable returns a name in the form that servers have in inspan.
func usable(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 40)]
}
