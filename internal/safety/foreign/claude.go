package foreign

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Translated is a permission rule of Claude Code and its translation.
type Translated struct {
	Action tool.Action
	Text   string   // as written
	Rules  []string // the equivalent rules of inspan; none: see Why
	Wider  string   // why the rules cover more than the original; empty means they don't
	Why    string   // why it is not understood
}

// Permissions is the permissions part of a Claude Code settings file.
type Permissions struct {
	Rules   []Translated // deny first, then ask, then allow
	Limits  []Limit      // restrictions that are not rules
	Mode    string       // defaultMode, as written; may be empty
	Folders []string     // additionalDirectories
	Other   []string     // keys below permissions without a meaning here, sorted
}

// Limit is a setting of Claude Code that restricts something and is not a rule. It is obeyed as closely as
// possible, and never less strictly if it can be obeyed at all.
type Limit struct {
	Text    string      // as written
	Mode    tool.Mode   // the mode that it excludes
	Servers ServerLimit // the servers that it excludes
	NoAllow bool        // allow rules don't apply, except those of an organisation
	How     string      // its effect here; empty means none
}

// ServerLimit excludes MCP servers.
type ServerLimit struct {
	Folder  bool     // it concerns only servers from the folder
	Only    bool     // all except the named ones are excluded; otherwise the named ones
	Names   []string // of servers
	Starts  [][]string
	Reaches []string // addresses, with * for any text
	set     bool
}

// Bars reports whether a server is excluded.
func (l ServerLimit) Bars(name string, command []string, address string, ofFolder bool) bool {
	if !l.set || l.Folder && !ofFolder {
		return false
	}
	named := slices.Contains(l.Names, name) ||
		len(command) > 0 && slices.ContainsFunc(l.Starts, func(s []string) bool { return slices.Equal(s, command) }) ||
		address != "" && slices.ContainsFunc(l.Reaches, func(pattern string) bool { return text.Wild(pattern, address) })
	return named != l.Only
}

// ReadPermissions reads the permissions in a settings.json of Claude Code. If it can't be read at all, the
// error names source. A value in a wrong form becomes a rule that is not understood.
func ReadPermissions(data []byte, source string) (Permissions, error) {
	var file map[string]json.RawMessage // keys are case-sensitive
	r := claudeReading{}
	err := Unmarshal(data, &file)
	if raw := file["permissions"]; err == nil && raw != nil {
		err = Unmarshal(raw, &r.permissions)
	}
	if err != nil {
		return Permissions{}, fmt.Errorf("read permissions of %s: %w", source, err)
	}
	r.lists()
	r.servers(file)
	r.sandbox(file["sandbox"])
	r.switches("", file)
	r.switches("permissions.", r.permissions)
	return r.out, nil
}

// claudeReading is a partly read settings file.
type claudeReading struct {
	permissions map[string]json.RawMessage
	out         Permissions
}

func (r *claudeReading) lists() {
	for _, action := range []tool.Action{tool.Deny, tool.Ask, tool.Allow} {
		raw, has := r.permissions[string(action)]
		delete(r.permissions, string(action))
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); has && err != nil {
			r.wrong(action, brief(raw), "it is not a list")
		}
		for _, one := range list {
			var rule string
			if json.Unmarshal(one, &rule) != nil {
				r.wrong(action, brief(one), "it is not a text")
				continue
			}
			t := Translated{Action: action, Text: rule}
			if t.Rules, t.Why = Rules(action, rule); t.Why != "" {
				if all := wider(action, rule); all != nil {
					t.Rules, t.Wider, t.Why = all, t.Why, ""
				}
			}
			r.out.Rules = append(r.out.Rules, t)
		}
	}
	_ = json.Unmarshal(r.permissions["defaultMode"], &r.out.Mode)
	_ = json.Unmarshal(r.permissions["additionalDirectories"], &r.out.Folders)
	delete(r.permissions, "defaultMode")
	delete(r.permissions, "additionalDirectories")
	r.out.Other = slices.Sorted(maps.Keys(r.permissions))
}

func (r *claudeReading) wrong(action tool.Action, said, why string) {
	r.out.Rules = append(r.out.Rules, Translated{Action: action, Text: said, Why: why})
}

func brief(raw json.RawMessage) string { return text.Clip(text.Flat(text.Printed(string(raw))), 60) }

// servers reads the lists that exclude MCP servers.
func (r *claudeReading) servers(file map[string]json.RawMessage) {
	type entry struct {
		Name    string   `json:"serverName"`
		Command []string `json:"serverCommand"`
		URL     string   `json:"serverUrl"`
	}
	of := func(key string, into any) (string, bool) {
		raw, has := file[key]
		said := key + " " + brief(raw)
		if has = has && string(raw) != "null"; has && json.Unmarshal(raw, into) != nil {
			r.wrong(tool.Deny, said, "it is of no form that is known")
			has = false
		}
		return said, has
	}
	limit := func(said, how string, s ServerLimit) {
		s.set = true
		r.out.Limits = append(r.out.Limits, Limit{Text: said, Servers: s, How: how})
	}
	var off, on []string
	if said, has := of("disabledMcpjsonServers", &off); has {
		limit(said, "these servers of the folder are not used", ServerLimit{Folder: true, Names: off})
	}
	all := true
	_, _ = of("enabledMcpjsonServers", &on)
	if said, has := of("enableAllProjectMcpServers", &all); has && !all {
		limit(said, "servers of the folder are used only if enabledMcpjsonServers names them", ServerLimit{Folder: true, Only: true, Names: on})
	}
	managed := false
	if said, has := of("allowManagedMcpServersOnly", &managed); has && managed {
		limit(said, "no server of the folder is used", ServerLimit{Folder: true, Only: true})
	}
	for _, one := range []struct {
		key, how string
		only     bool
	}{
		{"allowedMcpServers", "only servers that it names are used", true},
		{"deniedMcpServers", "servers that it names are not used", false},
	} {
		var list []entry
		if said, has := of(one.key, &list); has {
			s := ServerLimit{Only: one.only}
			for _, e := range list {
				if e.Name != "" {
					s.Names = append(s.Names, e.Name)
				}
				if len(e.Command) > 0 {
					s.Starts = append(s.Starts, e.Command)
				}
				if e.URL != "" {
					s.Reaches = append(s.Reaches, e.URL)
				}
			}
			limit(said, one.how, s)
		}
	}
}

// sandbox converts the restrictions of Claude Code's sandbox to rules.
func (r *claudeReading) sandbox(raw json.RawMessage) {
	var file map[string]json.RawMessage
	_ = json.Unmarshal(raw, &file) // a value that is not an object restricts nothing
	var network, files map[string]json.RawMessage
	_ = json.Unmarshal(file["network"], &network)
	_ = json.Unmarshal(file["filesystem"], &files)
	for _, one := range []struct {
		key  string
		raw  json.RawMessage
		rule func(string) string
	}{
		{"sandbox.network.deniedDomains", network["deniedDomains"], func(host string) string { return "WebFetch(domain:" + host + ")" }},
		{"sandbox.filesystem.denyRead", files["denyRead"], func(at string) string { return "Read(" + fromRoot(at) + ")" }},
		{"sandbox.filesystem.denyWrite", files["denyWrite"], func(at string) string { return "Edit(" + fromRoot(at) + ")" }},
	} {
		var list []string
		if len(one.raw) > 0 && json.Unmarshal(one.raw, &list) != nil {
			r.wrong(tool.Deny, one.key+" "+brief(one.raw), "it is not a list of texts")
		}
		for _, value := range list {
			t := Translated{Action: tool.Deny, Text: one.key + " " + value}
			t.Rules, t.Why = Rules(tool.Deny, one.rule(value))
			r.out.Rules = append(r.out.Rules, t)
		}
	}
	r.switches("sandbox.", file)
	r.switches("sandbox.network.", network)
	r.switches("sandbox.filesystem.", files)
}

// fromRoot converts a path of the sandbox, where / is the machine's root, to one in rules, where / is the
// folder.
func fromRoot(at string) string {
	switch {
	case strings.HasPrefix(at, "/"):
		return "/" + path.Clean(at)
	case strings.HasPrefix(at, "~"), strings.HasPrefix(at, "./"):
		return at
	}
	return "./" + at
}

// switches reads single values that restrict something.
func (r *claudeReading) switches(at string, table map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		said := string(table[key])
		limit := Limit{Text: at + key + " " + brief(table[key])}
		switch on := said != "false" && said != "null" && said != `""`; {
		case !on && key != "allowUnsandboxedCommands", understood(at + key):
			continue
		case key == "disableBypassPermissionsMode":
			limit.Mode, limit.How = tool.ModeYolo, "mode yolo may not be used"
		case key == "disableAutoMode":
			limit.Mode, limit.How = tool.ModeAuto, "mode auto may not be used"
		case key == "allowManagedPermissionRulesOnly":
			limit.NoAllow, limit.How = true, "rules that allow don't hold, but for those of the organisation"
		case key == "allowUnsandboxedCommands" && !on:
			limit.How = "commands outside of the sandbox ask"
		case key == "failIfUnavailable":
			limit.How = "commands that no sandbox holds ask"
		case !tightens(key):
			continue
		}
		r.out.Limits = append(r.out.Limits, limit)
	}
}

// understood reports whether a key with a restricting name is read elsewhere.
func understood(key string) bool {
	return slices.Contains([]string{
		"disabledMcpjsonServers", "deniedMcpServers", "allowManagedMcpServersOnly", "disableAllHooks",
		"sandbox.network.deniedDomains", "sandbox.filesystem.denyRead", "sandbox.filesystem.denyWrite",
	}, key)
}

// tightens reports whether a setting restricts something, judging by its name.
func tightens(key string) bool {
	return slices.ContainsFunc([]string{"disable", "deny", "denied", "disallow", "block", "forbid", "restrict", "strict", "allowManaged", "require"},
		func(begin string) bool { return strings.HasPrefix(key, begin) })
}
