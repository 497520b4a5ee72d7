package setup

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// opencode reads the files of opencode.
func (i *Import) opencode() {
	dir := i.at(".config", "opencode")
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		i.opencodeSettings(filepath.Join(dir, name))
	}
	i.used(filepath.Join(dir, "AGENTS.md"), "instructions of every session")
	for _, folder := range []string{"command", "commands"} {
		i.commands(filepath.Join(dir, folder))
	}
	for _, folder := range []string{"agent", "agents"} {
		i.folder(Ignored, filepath.Join(dir, folder), ".md", "file", "its form differs; write kinds of subagents as docs/SUBAGENTS.md says")
	}
	for _, folder := range []string{"skill", "skills"} {
		i.skills(filepath.Join(dir, folder))
	}
	for _, folder := range []string{"plugin", "plugins"} {
		i.folder(Ignored, filepath.Join(dir, folder), "", "file", "plugins of opencode are its own; write hooks or tools")
	}
	for _, dir := range []string{i.root, filepath.Join(i.root, ".opencode")} {
		for _, name := range []string{"opencode.json", "opencode.jsonc"} {
			path := filepath.Join(dir, name)
			var file struct {
				Instructions json.RawMessage `json:"instructions"`
			}
			if i.read(path, &file) && file.Instructions != nil {
				i.opencodeInstructions(path, file.Instructions)
			}
		}
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc", ".opencode"} {
		if path := filepath.Join(i.root, name); exists(path) && !slices.Contains(i.broken, path) {
			what := ""
			if slices.Contains(i.told, path) {
				what = "all else"
			}
			i.ignored(path, what, "a folder can't choose model, permissions or commands this way; .inspan/config.toml takes deny and ask rules, .mcp.json servers")
		}
	}
	share := i.at(".local", "share", "opencode")
	i.login(filepath.Join(share, "auth.json"))
	i.sessions(filepath.Join(share, "storage", "session"), ".json")
}

// opencodeInstructions lists instruction files, which may be patterns and addresses there.
func (i *Import) opencodeInstructions(path string, raw json.RawMessage) {
	var list []string
	_ = json.Unmarshal(raw, &list) // a value that is not a list names no files
	i.ignored(path, strings.TrimSpace("instructions "+strings.Join(list, ", ")),
		"inspan doesn't read them; import each file in AGENTS.md with a line such as @docs/style.md")
}

// commands imports command files, whose form is the same.
func (i *Import) commands(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.md"))
	for _, path := range files {
		data, ok := i.text(path)
		switch {
		case !ok:
		case strings.Contains(data, "!`"):
			i.ignored(path, "", "it runs shell commands before it asks the model; say in the text what the agent should run")
		default:
			i.command(path, strings.TrimSuffix(filepath.Base(path), ".md"), data)
		}
	}
}

func (i *Import) opencodeSettings(path string) {
	var file map[string]json.RawMessage
	if !i.read(path, &file) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		var value string
		_ = json.Unmarshal(file[key], &value)
		switch key {
		case "$schema":
		case "mcp":
			if filepath.Base(path) == "config.json" {
				i.ignored(path, key, "inspan reads servers from opencode.json; move them there, or run: inspan mcp add")
			}
		case "model":
			i.opencodeModel(path, key, value, "model")
		case "small_model":
			i.opencodeModel(path, key, value, "agents.small")
		case "permission":
			i.opencodePermission(path, file[key])
		case "instructions":
			i.opencodeInstructions(path, file[key])
		case "theme":
			i.looks(path, key, file[key])
		default:
			const files = "write a markdown file for each; see docs/SUBAGENTS.md and docs/COMMANDS.md"
			i.unknown(path, key, map[string]string{
				"provider": "add providers as docs/config.sample.toml shows, or with 'inspan setup'", "agent": files, "command": files,
				"tools": "deny tools with rules: inspan config set --add deny TOOL",
			})
		}
	}
}

// opencodeModel imports a model of a known provider.
func (i *Import) opencodeModel(path, key, name, setting string) {
	provider, model, _ := strings.Cut(name, "/")
	provider = cmp.Or(map[string]string{"google": "gemini", "llama.cpp": "llamacpp", "moonshotai": "moonshot"}[provider], provider)
	known := slices.ContainsFunc(i.app.Providers.List(), func(p providers.Provider) bool { return p.Name == provider })
	if !known || model == "" {
		i.ignored(path, key+" "+words.OneLine(name, 80), "its provider is unknown to inspan; choose a model with 'inspan setup'")
		return
	}
	i.becomes(path, key+" "+words.OneLine(name, 80), setting, provider+"/"+model)
}

// opencodePermission imports permissions: one word for all, for a tool, or for patterns of a tool. The last
// match decides there, the strictest one here.
func (i *Import) opencodePermission(path string, raw json.RawMessage) {
	var tools map[string]json.RawMessage
	if json.Unmarshal(raw, &tools) != nil {
		i.ignored(path, "permission", "choose a mode instead; see 'inspan run --help'")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		var action tool.Action
		patterns := map[string]tool.Action{}
		switch {
		case json.Unmarshal(tools[name], &action) == nil:
			patterns["*"] = action
		case json.Unmarshal(tools[name], &patterns) != nil:
			i.ignored(path, "permission."+words.OneLine(name, 60), "it is neither a word nor a table of words")
		}
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			action := patterns[pattern]
			if pattern != "*" && patterns["*"] == tool.Deny && action != tool.Deny {
				i.ignored(path, ruleOf(name, pattern, action), "a rule that denies has no exceptions here")
				continue
			}
			i.opencodeRule(path, name, pattern, action)
		}
	}
}

// ruleOf returns the rule for a permission.
func ruleOf(name, pattern string, action tool.Action) string {
	return "permission." + words.OneLine(name, 60) + " " + words.OneLine(pattern, 80) + " " + words.OneLine(string(action), 20)
}

func (i *Import) opencodeRule(path, name, pattern string, action tool.Action) {
	what := ruleOf(name, pattern, action)
	if !slices.Contains([]tool.Action{tool.Allow, tool.Ask, tool.Deny}, action) {
		i.ignored(path, what, "it is not allow, ask or deny")
		return
	}
	theirs := map[string]string{
		"bash": "Bash", "edit": "Edit", "read": "Read", "webfetch": "WebFetch", "websearch": "WebSearch", "task": "Task", "grep": "Grep",
		"glob": "Glob", "list": "LS", "todowrite": "TodoWrite", "skill": "Skill",
	}[name]
	if theirs == "" {
		i.ignored(path, what, "inspan has no such tool")
		return
	}
	if pattern == "*" && action != tool.Deny {
		i.ignored(path, what, "the mode decides this; see 'inspan run --help'")
		return
	}
	written := theirs + "(" + pattern + ")"
	if pattern != "*" && (theirs == "Read" || theirs == "Edit") {
		glob, ok := crossing(pattern)
		if !ok {
			i.ignored(path, what, "its pattern can't be written as a glob")
			return
		}
		written = theirs + "(" + glob + ")"
	}
	rules, why := foreign.Rules(action, written)
	i.rules(path, what, action, rules, why)
}

// crossing converts a pattern whose * also matches slashes to a glob.
func crossing(pattern string) (string, bool) {
	rest, leads := strings.CutPrefix(pattern, "*")
	body, ends := strings.CutSuffix(rest, "/*")
	switch {
	case strings.Contains(body, "*"), strings.Contains(pattern, "?"):
		return "", false
	case leads && !strings.HasPrefix(body, "/"):
		body = "**/*" + body
	case leads:
		body = "**" + body
	}
	if ends {
		body += "/**"
	}
	return body, true
}
