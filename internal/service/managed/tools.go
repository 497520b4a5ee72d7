package managed

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/inspan/inspan/internal/service/server"
)

// theirTool is a tool of the agent toolset, with our matching tools.
type theirTool struct {
	name  string
	shown []string // tools that clients know by this name
	also  []string // tools that go with them
}

// toolset returns the tools of agent_toolset_20260401.
func toolset() []theirTool {
	return []theirTool{
		{"bash", []string{"bash"}, []string{"jobs", "git"}},
		{"read", []string{"read_file"}, []string{"view_image", "render", "lsp"}},
		{"write", []string{"write_file"}, []string{"delete_file", "notebook_edit"}},
		{"edit", []string{"edit_file", "edit_lines"}, []string{"notebook_edit", "lsp_rename"}},
		{"glob", []string{"find_files"}, []string{"list_files"}},
		{"grep", []string{"search_files"}, nil},
		{"web_fetch", []string{"web_fetch"}, []string{"http_request"}},
		{"web_search", []string{"web_search"}, nil},
	}
}

// Permission policies.
const (
	alwaysAllow = "always_allow"
	alwaysAsk   = "always_ask"
	auto        = "auto"
)

// policy is when a call may be made.
type policy struct {
	Type string `json:"type"`
}

// toolConfig is one tool of a set. In a request all fields except the name may be missing.
type toolConfig struct {
	Type    string  `json:"type,omitempty"`
	Name    string  `json:"name,omitempty"`
	Enabled *bool   `json:"enabled"`
	Policy  *policy `json:"permission_policy"`
}

// toolSpec is an entry of an agent's tools: the agent toolset, the tools of an MCP server, or a custom tool.
type toolSpec struct {
	Type        string          `json:"type"`
	Default     *toolConfig     `json:"default_config,omitempty"`
	Configs     []toolConfig    `json:"configs,omitempty"`
	Server      string          `json:"mcp_server_name,omitempty"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema,omitempty"`
}

// Kinds of tools.
const (
	toolsetType = "agent_toolset_20260401"
	mcpType     = "mcp_toolset"
	customType  = "custom"
)

// MarshalJSON implements [json.Marshaler]: a set has a list of configurations, even if that is empty.
func (t toolSpec) MarshalJSON() ([]byte, error) {
	type plain toolSpec
	if t.Type == customType {
		return json.Marshal(plain(t))
	}
	list := t.Configs
	if list == nil {
		list = []toolConfig{}
	}
	return json.Marshal(struct {
		plain
		Configs []toolConfig `json:"configs"`
	}{plain(t), list})
}

// mcpServer is an MCP server of an agent.
type mcpServer struct {
	Type string `json:"type"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

const (
	mostTools   = 256
	mostServers = 20
)

// settled returns the tools of a request with all defaults filled in.
func settled(list []toolSpec, servers []mcpServer) ([]toolSpec, error) {
	out, seen, used := []toolSpec{}, map[string]bool{}, map[string]bool{}
	if len(list) > mostTools {
		return nil, invalid("tools", fmt.Sprintf("there are %d", len(list)), fmt.Sprintf("at most %d", mostTools))
	}
	for i, t := range list {
		field := fmt.Sprintf("tools.%d", i)
		key := t.Type + "/" + t.Server + "/" + t.Name
		if seen[key] {
			return nil, invalid(field, "it is there twice", "one entry each")
		}
		seen[key] = true
		var err error
		switch t.Type {
		case toolsetType:
			err = t.settle(field, alwaysAllow, true)
		case mcpType:
			if used[t.Server] = true; !slices.ContainsFunc(servers, func(s mcpServer) bool { return s.Name == t.Server }) {
				return nil, invalid(field+".mcp_server_name", "no such server in mcp_servers", "the name of one")
			}
			err = t.settle(field, alwaysAsk, false)
		case customType:
			if err = bounded(field+".name", t.Name, 1, 64); err == nil {
				err = bounded(field+".description", t.Description, 1, 16<<10)
			}
		default:
			err = invalid(field+".type", fmt.Sprintf("it is %q", t.Type), toolsetType+", "+mcpType+" or "+customType)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	for i, s := range servers {
		if !used[s.Name] {
			return nil, invalid(fmt.Sprintf("mcp_servers.%d", i), "no mcp_toolset uses it", "an entry of tools with its mcp_server_name")
		}
	}
	return out, nil
}

// settle fills in the defaults of a set. The agent toolset allows known names only.
func (t *toolSpec) settle(field, usual string, known bool) error {
	yes := true
	base := toolConfig{Enabled: &yes, Policy: &policy{usual}}
	if t.Default != nil {
		if t.Default.Name != "" || t.Default.Type != "" {
			return invalid(field+".default_config", "it names a tool", "enabled and permission_policy")
		}
		base = t.Default.over(base)
	}
	t.Default = &base
	t.Configs = slices.Clone(t.Configs)
	for i, c := range t.Configs {
		name := fmt.Sprintf("%s.configs.%d.name", field, i)
		if known {
			if !slices.ContainsFunc(toolset(), func(s theirTool) bool { return s.name == c.Name }) || c.Type != "" && c.Type != c.Name {
				return invalid(name, fmt.Sprintf("no tool %q", c.Name), "bash, read, write, edit, glob, grep, web_fetch or web_search")
			}
			c.Type = c.Name
		} else if c.Name == "" || c.Type != "" {
			return invalid(name, "it is missing, or there is a type", "the name of a tool")
		}
		if t.Configs[i] = c.over(base); !known && !*base.Enabled && *t.Configs[i].Enabled {
			return unserved(fmt.Sprintf("%s.configs.%d.enabled", field, i),
				"single tools of an MCP server whose default is off; turn the others off by name")
		}
	}
	for i, c := range append(t.Configs, base) {
		if !slices.Contains([]string{alwaysAllow, alwaysAsk, auto}, c.Policy.Type) {
			return invalid(fmt.Sprintf("%s.configs.%d.permission_policy.type", field, i), fmt.Sprintf("it is %q", c.Policy.Type),
				alwaysAllow+", "+alwaysAsk+" or "+auto)
		}
	}
	return nil
}

// over returns a configuration, with missing fields from another.
func (c toolConfig) over(base toolConfig) toolConfig {
	if c.Enabled == nil {
		c.Enabled = base.Enabled
	}
	if c.Policy == nil {
		c.Policy = base.Policy
	}
	return c
}

// of returns the configuration of a tool of the set.
func (t toolSpec) of(name string) toolConfig {
	for _, c := range t.Configs {
		if c.Name == name {
			return c
		}
	}
	return *t.Default
}

// checkServers reports what is wrong with a list of MCP servers.
func checkServers(list []mcpServer) error {
	if len(list) > mostServers {
		return invalid("mcp_servers", fmt.Sprintf("there are %d", len(list)), fmt.Sprintf("at most %d", mostServers))
	}
	seen := map[string]bool{}
	for i, s := range list {
		field := fmt.Sprintf("mcp_servers.%d", i)
		u, err := url.Parse(s.URL)
		switch {
		case s.Type != "url":
			return invalid(field+".type", fmt.Sprintf("it is %q", s.Type), "url")
		case seen[s.Name]:
			return invalid(field+".name", "it is there twice", "one name each")
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			return invalid(field+".url", "not an address of a server", "https://...")
		case u.User != nil || u.RawQuery != "":
			return invalid(field+".url", "it may hold a secret, which would be stored", "an address without user and query")
		}
		seen[s.Name] = true
	}
	return nil
}

// equip sets an agent's tools in the spec of a task. Rules only tighten the server's permissions: a tool that
// is off is denied, one that always asks asks in every mode, and for the others the server's mode and rules
// apply.
func (a *agent) equip(p *server.Spec) {
	p.Ask, p.Deny, p.Servers, p.Tools = nil, []string{"ask_user"}, nil, nil
	if !a.delegates() {
		p.Deny = append(p.Deny, "spawn_agent", "manage_agents")
	}
	rule := func(c toolConfig, names ...string) {
		switch {
		case !*c.Enabled:
			p.Deny = append(p.Deny, names...)
		case c.Policy.Type == alwaysAsk:
			p.Ask = append(p.Ask, names...)
		}
	}
	off := false
	set := toolSpec{Default: &toolConfig{Enabled: &off}}
	for _, t := range a.Tools {
		switch t.Type {
		case toolsetType:
			set = t
		case customType:
			p.Tools = append(p.Tools, server.ClientTool{Name: t.Name, Description: t.Description, Schema: t.Schema})
		case mcpType:
			prefix := "mcp__" + t.Server + "__"
			rule(*t.Default, prefix+"*")
			for _, c := range t.Configs {
				rule(c, prefix+c.Name)
			}
		}
	}
	for _, t := range toolset() {
		rule(set.of(t.name), slices.Concat(t.shown, t.also)...)
	}
	for _, s := range a.Servers {
		p.Servers = append(p.Servers, server.MCPServer{Name: s.Name, URL: s.URL})
	}
}
