package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// Translated is a permission rule of Claude Code and what it means here.
type Translated struct {
	Action tool.Action
	Text   string   // as written there
	Rules  []string // the same as rules of ours; none: see Why
	Why    string   // it is not understood
}

// Permissions are what a settings file of Claude Code says about permissions.
type Permissions struct {
	Rules   []Translated // deny first, then ask, then allow
	Mode    string       // defaultMode, as written there; may be empty
	Folders []string     // additionalDirectories
	Other   []string     // keys that mean nothing here, sorted
}

// ReadPermissions reads the permissions out of a settings.json. The error is that it can't be read
// at all, and names source. What is there and of the wrong form is a rule that is not understood.
func ReadPermissions(data []byte, source string) (Permissions, error) {
	var file struct {
		Permissions map[string]json.RawMessage `json:"permissions"`
	}
	var out Permissions
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &file); err != nil {
		return out, fmt.Errorf("read permissions of %s: %w", source, err)
	}
	for _, action := range []tool.Action{tool.Deny, tool.Ask, tool.Allow} {
		raw, has := file.Permissions[string(action)]
		delete(file.Permissions, string(action))
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); has && err != nil {
			out.Rules = append(out.Rules, Translated{Action: action, Text: brief(string(raw)), Why: "it is not a list"})
		}
		for _, one := range list {
			var rule string
			if json.Unmarshal(one, &rule) != nil {
				out.Rules = append(out.Rules, Translated{Action: action, Text: brief(string(one)), Why: "it is not a text"})
				continue
			}
			t := Translated{Action: action, Text: rule}
			t.Rules, t.Why = OwnRules(action, rule)
			out.Rules = append(out.Rules, t)
		}
	}
	_ = json.Unmarshal(file.Permissions["defaultMode"], &out.Mode)
	_ = json.Unmarshal(file.Permissions["additionalDirectories"], &out.Folders)
	delete(file.Permissions, "defaultMode")
	delete(file.Permissions, "additionalDirectories")
	out.Other = slices.Sorted(maps.Keys(file.Permissions))
	return out, nil
}

// OwnRules writes a permission rule of Claude Code, such as "Bash(git diff:*)", as rules of ours.
// What they deny or ask about is at least what it does, and what they allow at most. Why says why
// there are none.
func OwnRules(action tool.Action, text string) (rules []string, why string) {
	name, pattern, some := strings.Cut(strings.TrimSpace(text), "(")
	name = strings.TrimSpace(name)
	if some {
		inner, closed := strings.CutSuffix(strings.TrimSpace(pattern), ")")
		if !closed {
			return nil, "its bracket is not closed"
		}
		pattern = strings.TrimSpace(inner)
		some = pattern != "" && pattern != "*"
	}
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }):
		return nil, "it contains control characters"
	case strings.HasPrefix(name, "mcp__"):
		return serverRules(name, some)
	case !some:
		return bareRules(action, name)
	}
	switch name {
	case "Bash":
		return commandRules(pattern)
	case "Read":
		return pathRules(action, tool.Read, pattern)
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return pathRules(action, tool.Write, pattern)
	case "WebFetch":
		host, ok := strings.CutPrefix(pattern, "domain:")
		switch {
		case !ok || strings.ContainsAny(host, " /()"):
			return nil, "only domain: and a name are understood"
		case action == tool.Allow: // for this tool, and not for what commands reach
			return []string{"web_fetch(" + host + ")"}, ""
		}
		return []string{"network(" + host + ")"}, ""
	}
	if _, why := bareRules(action, name); why != "" {
		return nil, why
	}
	return nil, "inspan has no patterns for " + name
}

// serverRules are for the tools of an MCP server.
func serverRules(name string, pattern bool) ([]string, string) {
	switch {
	case pattern:
		return nil, "inspan has no patterns for tools of MCP servers"
	case !regexp.MustCompile(`^mcp__[\w*-]+$`).MatchString(name):
		return nil, "it is not the name of a tool"
	case !strings.Contains(strings.TrimPrefix(name, "mcp__"), "__"):
		name += "__*"
	}
	return []string{name}, ""
}

// bareRules are for all that a tool does. What asks or denies is for all our tools that do the same
// kind of thing: there, a rule for Edit is for every tool that edits, one for Read for every tool that reads.
func bareRules(action tool.Action, name string) ([]string, string) {
	if !slices.Contains(append(foreignNames(), "NotebookEdit", "Skill", "AskUserQuestion"), name) {
		return nil, "inspan has no such tool"
	}
	rules := OwnTools(name)
	switch {
	case action == tool.Allow && name == "Edit":
		return append(rules, "write_file"), ""
	case action == tool.Allow:
		return rules, ""
	}
	switch name {
	case "Read":
		return []string{string(tool.Read)}, ""
	case "Edit", "MultiEdit", "Write":
		return []string{string(tool.Write)}, ""
	case "Glob", "LS":
		return []string{"find_files", "list_files"}, ""
	case "WebFetch":
		return append(rules, "http_request"), ""
	}
	return rules, ""
}

// DeniedTools lists our tools that go where a file takes a tool of Claude Code away from an agent. They
// are those of a rule that denies it: Edit is every tool that edits files. One that it does not
// have keeps its name.
func DeniedTools(name string) []string {
	rules, why := bareRules(tool.Deny, name)
	switch {
	case why != "" || slices.Contains(rules, string(tool.Read)): // an agent may search what it may not read whole
		return OwnTools(name)
	case slices.Contains(rules, string(tool.Write)):
		return []string{"write_file", "edit_file", "edit_lines", "delete_file", "notebook_edit"}
	}
	return rules
}

// commandRules are for commands. Each looks at one simple command.
func commandRules(pattern string) ([]string, string) {
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = prefix + " *"
	}
	if strings.ContainsAny(pattern, "|;&<>$`()\"\\") || strings.Count(pattern, "'")%2 != 0 {
		return nil, "it is about more than one simple command"
	}
	return []string{"bash(" + pattern + ")"}, ""
}

// pathRules are for files. Patterns there are those of .gitignore: a name is meant in any folder,
// and a folder with all that it holds. What allows means no more than it says.
func pathRules(action tool.Action, kind tool.EffectKind, pattern string) ([]string, string) {
	if strings.HasPrefix(pattern, "!") || strings.ContainsAny(pattern, "{}\\") {
		return nil, "exceptions, braces and backslashes in patterns are not understood"
	}
	glob := strings.TrimSuffix(pattern, "/")
	name := !strings.Contains(glob, "/")
	switch {
	case strings.HasPrefix(glob, "//"):
		glob = glob[1:]
	case glob == "~":
		glob = "~/**"
	case strings.HasPrefix(glob, "~/"):
	default:
		glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	}
	if glob == "" || glob == "." {
		glob = "**"
	}
	if action != tool.Allow && name && glob != "**" && glob != "~/**" {
		glob = "**/" + glob
	}
	rules := []string{string(kind) + "(" + glob + ")"}
	if action != tool.Allow && !strings.HasSuffix(glob, "**") {
		rules = append(rules, string(kind)+"("+glob+"/**)")
	}
	return rules, ""
}
