// Package foreign translates the names of tools and the permission rules of other agents into ours.
package foreign

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// NoSuchTool is the reason for not understanding a rule about a tool that inspan does not have.
const NoSuchTool = "inspan has no such tool"

// Is reports whether a rule is in the format of another agent: it names one of its tools.
func Is(text string) bool {
	name := toolOf(text)
	server, ours := strings.CutPrefix(name, "mcp__")
	return slices.Contains(claudeTools(), name) || claudeName(name) != "" || name == prefixRule ||
		ours && server != "" && !strings.ContainsAny(server, "*?[") && !strings.Contains(server, "__")
}

// Translate translates a permission rule of Claude Code, Codex, opencode or Gemini to rules of inspan. Why is
// the reason if there are none.
func Translate(action tool.Action, text string) (rules []string, why string) {
	text = strings.TrimSpace(text)
	name, written := toolOf(text), ""
	if name == prefixRule {
		return prefixRules(action, text)
	}
	if claude := claudeName(name); claude != "" {
		begins := name == "run_shell_command" || name == "ShellTool" || name == "shell" && action != tool.Allow
		if written = strings.TrimPrefix(text, name); begins && strings.HasSuffix(written, ")") {
			if inner := strings.TrimSuffix(written, ")"); !strings.HasSuffix(inner, "*") {
				written = inner + ":*)" // patterns of Gemini are command prefixes, and so are denials of Copilot
			}
		}
		text = claude + written
	}
	return Rules(action, text)
}

func toolOf(text string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(text), "(")
	return strings.TrimSpace(name)
}

// claudeTools returns the tools that Claude Code's rules name.
func claudeTools() []string { return append(Names(), "NotebookEdit", "Skill", "AskUserQuestion") }

// claudeName returns Claude Code's name for a tool of Codex, opencode or Gemini; empty means there is none, or
// inspan has a tool or an effect of that name.
func claudeName(name string) string {
	switch name {
	case "run_shell_command", "ShellTool", "shell", "local_shell", "exec_command":
		return "Bash"
	case "ReadFileTool", "ReadManyFilesTool", "read_many_files":
		return "Read"
	case "WriteFileTool":
		return "Write"
	case "edit", "replace", "EditTool", "apply_patch", "patch":
		return "Edit"
	case "webfetch", "WebFetchTool":
		return "WebFetch"
	case "websearch", "google_web_search":
		return "WebSearch"
	case "task":
		return "Task"
	case "grep", "search_file_content", "grep_search":
		return "Grep"
	case "glob":
		return "Glob"
	case "list", "list_directory":
		return "LS"
	case "todowrite", "write_todos":
		return "TodoWrite"
	}
	return ""
}

// prefixRule begins a rule of Codex: prefix_rule(pattern = ["git", "push"], decision = "forbidden").
const prefixRule = "prefix_rule"

// PrefixRule is one call in a Codex rules file.
type PrefixRule struct {
	Action tool.Action
	Text   string
}

// PrefixRules splits a Codex rules file into the calls of prefix_rule and the rest.
func PrefixRules(file string) (list []PrefixRule, rest string) {
	var code strings.Builder
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			code.WriteString(strings.TrimSpace(line) + " ")
		}
	}
	left := strings.TrimSpace(code.String())
	for left != "" {
		call, after, ok := oneCall(left)
		if !ok {
			return list, left
		}
		r := PrefixRule{Action: tool.Allow, Text: call}
		if m := decisionForm.FindStringSubmatch(call); m != nil {
			r.Action = prefixDecisions()[m[1]]
		}
		list, left = append(list, r), strings.TrimSpace(after)
	}
	return list, ""
}

// oneCall splits off a call of prefix_rule at its closing bracket.
func oneCall(text string) (call, after string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefixRule)
	if !ok || !strings.HasPrefix(strings.TrimSpace(rest), "(") {
		return "", "", false
	}
	depth, quoted := 0, rune(0)
	for at, r := range text {
		switch {
		case quoted != 0:
			if r == quoted && text[at-1] != '\\' {
				quoted = 0
			}
		case r == '"' || r == '\'':
			quoted = r
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth == 0 {
				return text[:at+1], text[at+1:], true
			}
		}
	}
	return "", "", false
}

var decisionForm = regexp.MustCompile(`decision\s*=\s*"(\w+)"`)

// prefixDecisions maps Codex's decisions to actions.
func prefixDecisions() map[string]tool.Action {
	return map[string]tool.Action{"allow": tool.Allow, "prompt": tool.Ask, "forbidden": tool.Deny}
}

// prefixRules translates rules for commands, which Codex decides by their first words.
func prefixRules(action tool.Action, text string) ([]string, string) {
	_, list, found := strings.Cut(text, "[")
	list, rest, closed := strings.Cut(list, "]")
	var words []string
	list = strings.TrimSuffix(strings.TrimSpace(list), ",")
	if !found || !closed || json.Unmarshal([]byte("["+list+"]"), &words) != nil || len(words) == 0 {
		return nil, "only a pattern with a list of words is understood"
	}
	if m := decisionForm.FindStringSubmatch(rest); m != nil {
		if said := prefixDecisions()[m[1]]; said == "" {
			return nil, "its decision is " + m[1] + ", which is none that is known"
		} else if said != action {
			return nil, "its decision is " + m[1] + ", and it is in a list of rules that " + string(action)
		}
	}
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " *'\t") {
			if words[i] = "'" + word + "'"; word == "" || strings.Contains(word, "'") {
				return nil, "its words can't be written as a pattern"
			}
		}
	}
	return []string{"bash(" + strings.Join(words, " ") + " *)"}, ""
}

// Rules translates a permission rule of Claude Code, such as "Bash(git diff:*)", to rules of inspan. They deny
// or ask about at least what it does, and allow at most that. Why is the reason if there are none.
func Rules(action tool.Action, text string) (rules []string, why string) {
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
	case "Grep", "Glob", "LS":
		if action != tool.Allow { // unreadable files must not be searched, and vice versa
			return pathRules(action, tool.Read, pattern)
		}
	case "Task", "Agent":
		return kindRules(pattern)
	case "Skill":
		if named := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), ":")); plainName(named) {
			return []string{"skill(" + named + ")"}, ""
		}
	case "WebFetch":
		host, ok := strings.CutPrefix(pattern, "domain:")
		switch {
		case !ok || strings.ContainsAny(host, " /()"):
			return nil, "only domain: and a name are understood"
		case action == tool.Allow: // for this tool, and not for the network access of commands
			return []string{"web_fetch(" + host + ")"}, ""
		}
		return []string{"network(" + host + ")"}, ""
	}
	if _, why := bareRules(action, name); why != "" {
		return nil, why
	}
	return nil, "inspan has no patterns for " + name
}

// wider returns rules for the whole tool, if a deny or ask rule names a part that our rules can't name; none:
// they can.
func wider(action tool.Action, text string) []string {
	name := toolOf(text)
	parts := []string{"Bash", "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Grep", "Glob", "LS"}
	if action == tool.Allow || slices.Contains(parts, name) || !strings.HasSuffix(strings.TrimSpace(text), ")") {
		return nil
	}
	rules, _ := Rules(action, name)
	return rules
}

// kindRules translates rules for subagent roles.
func kindRules(pattern string) ([]string, string) {
	key, value, other := strings.Cut(pattern, ":")
	if key = strings.TrimSpace(key); other && key == "subagent_type" {
		pattern, other = strings.TrimSpace(value), false
	}
	switch beside := []string{"model", "isolation", "run_in_background", "prompt", "description", "name"}; {
	case other && slices.Contains(beside, key), !plainName(pattern):
		return nil, "only the name of a kind of agent is understood"
	case strings.EqualFold(pattern, "general-purpose"):
		return []string{"spawn_agent(general-purpose)", "spawn_agent(worker)"}, ""
	}
	return []string{"spawn_agent(" + pattern + ")"}, ""
}

// plainName reports whether a text can be the name of a role or of a skill.
func plainName(name string) bool { return regexp.MustCompile(`^[\w.:*-]+$`).MatchString(name) }

// serverRules translates rules for the tools of an MCP server.
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

// bareRules translates rules for a whole tool. Ask and deny rules cover all our tools with the same purpose: in
// Claude Code, a rule for Edit covers every editing tool, one for Read every reading tool.
func bareRules(action tool.Action, name string) ([]string, string) {
	if !slices.Contains(claudeTools(), name) {
		if near := text.Nearest(name, claudeTools()); near != "" && text.Distance(name, near) <= max(1, len(name)/3) {
			return nil, NoSuchTool + "; did you mean " + near + "?"
		}
		return nil, NoSuchTool
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

// DeniedTools lists our tools to remove if a file removes a tool of Claude Code from an agent. They are those
// of a deny rule: Edit is every tool that edits files. An unknown name is returned unchanged.
func DeniedTools(name string) []string {
	rules, why := bareRules(tool.Deny, name)
	switch {
	case why != "" || slices.Contains(rules, string(tool.Read)): // an agent may search files that it may not read completely
		return OwnTools(name)
	case slices.Contains(rules, string(tool.Write)):
		return []string{"write_file", "edit_file", "edit_lines", "delete_file", "notebook_edit"}
	}
	return rules
}

// commandRules translates rules for commands. Each applies to one simple command.
func commandRules(pattern string) ([]string, string) {
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		pattern = strings.TrimSpace(prefix) + " *"
	}
	if strings.ContainsAny(pattern, "|;&<>$`()\"\\") || strings.Count(pattern, "'")%2 != 0 {
		return nil, "it is about more than one simple command"
	}
	return []string{"bash(" + pattern + ")"}, ""
}

// pathRules translates rules for files. Patterns are those of .gitignore: a name matches in any folder, and a
// folder includes its content. Allow rules cover no more than the original.
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
