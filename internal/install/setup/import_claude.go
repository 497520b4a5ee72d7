package setup

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// claude reads the files of Claude Code.
func (i *Import) claude() {
	i.claudeSettings(i.at(".claude", "settings.json"), true)
	i.used(i.at(".claude", "CLAUDE.md"), "instructions of every session")
	dirs := []string{i.at(".claude")}
	if i.root != i.home {
		dirs = append(dirs, filepath.Join(i.root, ".claude"))
		i.used(filepath.Join(i.root, ".claude", "CLAUDE.md"), "instructions of this folder")
	}
	i.used(filepath.Join(i.root, "CLAUDE.md"), "instructions of this folder")
	i.used(filepath.Join(i.root, "CLAUDE.local.md"), "instructions of this folder")
	for _, dir := range dirs {
		i.folder(Used, filepath.Join(dir, "rules"), ".md", "file", "instructions; those for some files say so")
		i.folder(Used, filepath.Join(dir, "commands"), ".md", "file", "slash commands")
		i.folder(Used, filepath.Join(dir, "agents"), ".md", "file", "kinds of subagents")
		i.folder(Used, filepath.Join(dir, "skills"), "SKILL.md", "skill", "skills")
	}
	i.folder(Used, i.at(".claude", "output-styles"), ".md", "file", "output styles")
	for _, path := range []string{filepath.Join(i.root, ".claude", "settings.json"), filepath.Join(i.root, ".claude", "settings.local.json")} {
		if path != i.at(".claude", "settings.json") { // the workspace can be the home
			i.claudeSettings(path, false)
		}
	}
	i.used(filepath.Join(i.root, ".mcp.json"), "MCP servers, once you trust this folder: inspan trust")
	i.login(i.at(".claude", ".credentials.json"))
	i.folder(Ignored, i.at(".claude", "plugins"), "plugin.json", "plugin", "install each with 'inspan plugin install'")
	i.sessions(i.at(".claude", "projects"), ".jsonl")
	i.claudeState(i.at(".claude.json"))
}

// claudeSettings reads a settings.json, of the person or of the workspace.
func (i *Import) claudeSettings(path string, person bool) {
	var file map[string]json.RawMessage
	if !i.read(path, &file) {
		return
	}
	data, _ := config.ReadFile(path) // it was just read
	p, err := foreign.ReadPermissions(data, i.shown(path))
	if err != nil {
		i.ignored(path, "permissions", err.Error())
	}
	i.permissions(path, p, person)
	i.claudeHooks(path, data, person)
	i.claudeLimits(path, p.Limits, person)
	limited := func(key string) bool {
		return slices.ContainsFunc(p.Limits, func(l foreign.Limit) bool { return strings.HasPrefix(l.Text, key+" ") })
	}
	const servers, plugins = "servers of a folder are used once you trust it: inspan trust", "install plugins with 'inspan plugin install'"
	theirs := map[string]string{
		"enabledMcpjsonServers":      servers,
		"enableAllProjectMcpServers": servers,
		"env":                        "set variables in your shell; sandbox.environment passes those that look like secrets to commands",
		"enabledPlugins":             plugins,
		"extraKnownMarketplaces":     plugins,
		"sandbox":                    "commands run in inspan's own sandbox; allow hosts with rules such as network(example.com)",
		"apiKeyHelper":               "set providers.anthropic.key_command to a command that prints the key",
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if limited(key) {
			continue
		}
		switch key {
		case "permissions", "hooks", "$schema", "disableAllHooks":
		case "model":
			i.claudeModel(path, file[key], person)
		case "theme", "statusLine", "effortLevel", "editorMode", "outputStyle":
			if !person {
				i.ignored(path, key, "a folder can't choose it")
			} else {
				i.looks(path, key, file[key])
			}
		default:
			i.unknown(path, key, theirs)
		}
	}
}

// claudeState reads the file that contains settings and history of Claude Code. The import of servers reports
// an unreadable one, and the servers of the person and of this folder.
func (i *Import) claudeState(path string) {
	var file map[string]json.RawMessage
	data, err := connect.ReadForeign(path)
	if err != nil || foreign.Unmarshal(data, &file) != nil {
		return
	}
	for _, key := range []string{"editorMode", "theme"} {
		if raw, has := file[key]; has {
			i.looks(path, key, raw)
		}
	}
	var projects map[string]struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
		Allowed []string                   `json:"allowedTools"`
	}
	_ = json.Unmarshal(file["projects"], &projects) // of another form it has nothing to report
	elsewhere := 0
	for root, p := range projects {
		switch {
		case root != i.root && len(p.Servers) > 0:
			elsewhere++
		case root == i.root && len(p.Allowed) > 0:
			i.ignored(path, "allowedTools of this folder", "a folder can't allow anything; 'inspan config set --add allow' does for all folders")
		}
	}
	if elsewhere > 0 {
		i.ignored(path, "MCP servers of "+text.Count(elsewhere, "other folder"), "they belong to their folders; 'inspan import' there lists them")
	}
	others := len(file)
	for _, key := range []string{"editorMode", "theme", "mcpServers", "projects"} {
		if _, has := file[key]; has {
			others--
		}
	}
	if others > 0 {
		i.ignored(path, text.Counted(others, "other entry", "other entries"),
			text.Plural(others, "it is", "they are")+" Claude Code's own state, such as its login and its counters")
	}
}

// permissions imports permission rules and the mode. A workspace's own rules apply as they are if they
// restrict, and have no effect if they allow.
func (i *Import) permissions(path string, p foreign.Permissions, person bool) {
	for _, t := range p.Rules {
		what := string(t.Action) + " " + words.OneLine(t.Text, 100)
		switch {
		case person || t.Why != "" || i.wrong(t.Action, t.Rules) != "":
			i.rules(path, what, t.Action, t.Rules, t.Why)
		case t.Action == tool.Allow:
			i.ignored(path, what, "a folder can't allow anything; 'inspan config set --add allow' does for all folders")
		default:
			i.add(Used, path, what, "holds in this folder as "+strings.Join(t.Rules, ", "))
		}
	}
	mode := map[string]string{"default": "ask", "acceptEdits": "edit", "plan": "plan", "auto": "auto"}[p.Mode]
	switch {
	case p.Mode == "":
	case !person:
		i.ignored(path, "defaultMode", "a folder can't choose the mode")
	case mode != "":
		i.becomes(path, "defaultMode "+p.Mode, "mode", mode)
	default:
		i.ignored(path, "defaultMode "+words.OneLine(p.Mode, 60), "this mode is never imported; choose a mode, see 'inspan run --help'")
	}
	for _, dir := range p.Folders {
		what := "additionalDirectories " + words.OneLine(dir, 100)
		switch {
		case !person:
			i.ignored(path, what, "a folder can't open another; start inspan with --add-dir "+words.OneLine(dir, 100))
		case filepath.IsAbs(dir), strings.HasPrefix(dir, "~/"):
			i.joins(path, what, "folders", dir)
		default:
			i.ignored(path, what, "it is another folder for each workspace; start inspan with --add-dir "+words.OneLine(dir, 100))
		}
	}
	for _, key := range p.Other {
		if slices.ContainsFunc(p.Limits, func(l foreign.Limit) bool { return strings.HasPrefix(l.Text, "permissions."+key+" ") }) {
			continue
		}
		i.unknown(path, "permissions."+words.OneLine(key, 60), nil)
	}
}

// claudeLimits imports restrictions that are not rules.
func (i *Import) claudeLimits(path string, limits []foreign.Limit, person bool) {
	for _, l := range limits {
		what := words.OneLine(l.Text, 100)
		switch {
		case l.How == "":
			i.unknown(path, what, nil)
		case person:
			i.ignored(path, what, "inspan has this for single folders only: in their .claude/settings.json")
		default:
			i.add(Used, path, what, "holds in this folder: "+l.How)
		}
	}
}

// claudeHooks imports hooks.
func (i *Import) claudeHooks(path string, data []byte, person bool) {
	hooks, notes, err := hook.ReadClaude(data, "")
	if err != nil {
		i.ignored(path, "hooks", err.Error())
		return
	}
	count := 0
	for n, h := range hooks {
		i.runs = append(i.runs, h.Command)
		if n == 0 || h.On != tool.AfterCompact || hooks[n-1].On != tool.SessionStart { // else one of Claude Code is two here
			count++
		}
	}
	if count > 0 {
		what := text.Count(count, "hook")
		switch {
		case !person:
			i.add(Used, path, what, "inert until you trust this folder: inspan trust")
		case i.app.Config.ClaudeHooks:
			i.add(Used, path, what, "your settings have claude_hooks = true")
		default:
			i.becomes(path, what, "claude_hooks", "true")
		}
	}
	for _, note := range notes {
		what, why, _ := strings.Cut(strings.TrimPrefix(note, ": "), ": ")
		i.ignored(path, what, why)
	}
}

// claudeShort imports a short name, such as "opus" or "opus[1m]". It means what it means after --model.
func (i *Import) claudeShort(path, name string) {
	what := "model " + words.OneLine(name, 60)
	short, variant, _ := strings.Cut(name, "[")
	route, err := i.app.Providers.Route(short)
	switch {
	case err != nil:
		i.ignored(path, what, err.Error())
	case !strings.Contains(route, "/"):
		i.ignored(path, what, "inspan knows no model of this name; choose one with 'inspan setup'")
	default:
		i.becomes(path, what, "model", short)
		if variant != "" {
			i.ignored(path, "["+words.OneLine(variant, 20)+" of the model", "inspan has no variants of a model; 'inspan models prices' shows its window")
		}
	}
}

// claudeModel imports a model name.
func (i *Import) claudeModel(path string, raw json.RawMessage, person bool) {
	var name string
	_ = json.Unmarshal(raw, &name) // a value that is not a string is ignored
	switch {
	case !person:
		i.ignored(path, "model", "a folder can't choose the model")
	case strings.HasPrefix(name, "claude-") && !strings.ContainsAny(name, " []"):
		i.becomes(path, "model "+name, "model", "anthropic/"+name)
	default:
		i.claudeShort(path, name)
	}
}
