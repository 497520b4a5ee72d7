package setup

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// gemini reads the files of Gemini CLI.
func (i *Import) gemini() {
	dir := i.at(".gemini")
	i.geminiSettings(filepath.Join(dir, "settings.json"))
	i.used(filepath.Join(dir, "GEMINI.md"), "instructions of every session")
	i.geminiCommands(filepath.Join(dir, "commands"))
	i.skills(filepath.Join(dir, "skills"))
	i.folder(Ignored, filepath.Join(dir, "agents"), ".md", "file", "its form differs; write kinds of subagents as docs/SUBAGENTS.md says")
	i.folder(Ignored, filepath.Join(dir, "policies"), ".toml", "file", "write them as allow, ask and deny rules: inspan config set --add")
	i.folder(Ignored, filepath.Join(dir, "extensions"), "gemini-extension.json", "extension", "install plugins with 'inspan plugin install'")
	i.login(filepath.Join(dir, "oauth_creds.json"))
	i.sessions(filepath.Join(dir, "tmp"), ".json")
	i.unused(filepath.Join(i.root, "GEMINI.md"), "import it in AGENTS.md with the line @GEMINI.md")
	i.unused(filepath.Join(i.root, ".gemini", "settings.json"),
		"a folder can't choose model, mode or tools; .inspan/config.toml takes deny and ask rules, .mcp.json servers")
	i.folder(Ignored, filepath.Join(i.root, ".gemini", "commands"), ".toml", "file", "write them as markdown in .inspan/commands; see docs/COMMANDS.md")
}

// geminiFile is the part of a settings.json that is read, in its present and its older form.
type geminiFile struct {
	General struct {
		Mode string `json:"defaultApprovalMode"`
	} `json:"general"`
	Model json.RawMessage `json:"model"`
	Tools struct {
		Allowed []string `json:"allowed"`
		Exclude []string `json:"exclude"`
		Confirm []string `json:"confirmationRequired"`
	} `json:"tools"`
	Allowed []string `json:"allowedTools"`
	Exclude []string `json:"excludeTools"`
}

func (i *Import) geminiSettings(path string) {
	var all map[string]json.RawMessage
	var file geminiFile
	if !i.read(path, &all) || !i.read(path, &file) {
		return
	}
	var model string
	var table struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(file.Model, &model) != nil && json.Unmarshal(file.Model, &table) == nil {
		model = table.Name
	}
	if model != "" {
		i.becomes(path, "model "+words.OneLine(model, 60), "model", "gemini/"+model)
	}
	mode := map[string]string{"default": "ask", "auto_edit": "edit", "plan": "plan"}[file.General.Mode]
	switch {
	case mode != "":
		i.becomes(path, "general.defaultApprovalMode "+file.General.Mode, "mode", mode)
	case file.General.Mode != "":
		i.ignored(path, "general.defaultApprovalMode "+words.OneLine(file.General.Mode, 40),
			"this mode is never imported; choose a mode, see 'inspan run --help'")
	}
	i.geminiTools(path, tool.Deny, slices.Concat(file.Tools.Exclude, file.Exclude))
	i.geminiTools(path, tool.Ask, file.Tools.Confirm)
	i.geminiTools(path, tool.Allow, slices.Concat(file.Tools.Allowed, file.Allowed))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch key {
		case "$schema", "mcpServers", "allowedTools", "excludeTools":
		case "general", "model", "tools", "ui": // they are imported in part
			var keys map[string]json.RawMessage
			_ = json.Unmarshal(all[key], &keys) // it was parsed before; a model may be a text
			for _, of := range slices.Sorted(maps.Keys(keys)) {
				taken := slices.Contains([]string{"name", "defaultApprovalMode", "allowed", "exclude", "confirmationRequired"}, of)
				if !taken && !i.looks(path, key+"."+of, keys[of]) {
					i.unknown(path, key+"."+words.OneLine(of, 60), nil)
				}
			}
		default:
			const files = "inspan reads AGENTS.md and CLAUDE.md; import other files there with lines such as @GEMINI.md"
			if !i.looks(path, key, all[key]) {
				i.unknown(path, words.OneLine(key, 60), map[string]string{
					"hooks": "write hooks as docs/HOOKS.md says", "context": files, "contextFileName": files,
				})
			}
		}
	}
}

// geminiTools imports allowed, asked or denied tools, such as "run_shell_command(git)".
func (i *Import) geminiTools(path string, action tool.Action, list []string) {
	theirs := map[string]string{
		"run_shell_command": "Bash", "ShellTool": "Bash", "read_file": "Read", "ReadFileTool": "Read", "write_file": "Write",
		"WriteFileTool": "Write", "replace": "Edit", "EditTool": "Edit", "web_fetch": "WebFetch", "WebFetchTool": "WebFetch",
		"google_web_search": "WebSearch", "glob": "Glob", "search_file_content": "Grep", "grep_search": "Grep", "list_directory": "LS",
		"write_todos": "TodoWrite",
	}
	for _, written := range list {
		what := string(action) + " " + words.OneLine(written, 100)
		name, pattern, some := strings.Cut(strings.TrimSuffix(written, ")"), "(")
		if theirs[name] == "" {
			i.ignored(path, what, "inspan has no such tool")
			continue
		}
		rule := theirs[name]
		if some && rule == "Bash" { // the argument is the beginning of a command
			rule += "(" + pattern + ":*)"
		} else if some {
			i.ignored(path, what, "inspan has no patterns for it")
			continue
		}
		rules, why := foreign.OwnTools(rule), "" // the tool alone, as each tool is named there
		if some {
			rules, why = foreign.Rules(action, rule)
		}
		i.rules(path, what, action, rules, why)
	}
}

// mostCommands bounds how many command files are read.
const mostCommands = 200

// geminiCommands imports commands, which are TOML there.
func (i *Import) geminiCommands(dir string) {
	left := mostCommands
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 {
			return fs.SkipAll // an unreadable folder counts as missing
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(path, ".toml") {
			return nil
		}
		name, _ := filepath.Rel(dir, strings.TrimSuffix(path, ".toml"))
		i.geminiCommand(path, filepath.ToSlash(name))
		return nil
	})
}

func (i *Import) geminiCommand(path, name string) {
	var file struct {
		Description string `toml:"description"`
		Prompt      string `toml:"prompt"`
	}
	data, ok := i.text(path)
	if !ok {
		return
	}
	err := config.Decode(path, []byte(data), &file)
	switch {
	case err != nil:
		i.unread(path, err)
	case file.Prompt == "":
		i.ignored(path, "", "it has no prompt")
	case strings.Contains(file.Prompt, "!{"), strings.Contains(file.Prompt, "@{"):
		i.ignored(path, "", "it runs shell commands or reads files before it asks the model; say in the text what the agent should do")
	default:
		prompt := strings.ReplaceAll(file.Prompt, "{{args}}", "$ARGUMENTS")
		if prompt == file.Prompt {
			prompt = strings.TrimRight(prompt, "\n") + "\n\n$ARGUMENTS"
		}
		header := ""
		if file.Description != "" {
			header = "---\ndescription: " + strconv.Quote(words.OneLine(file.Description, 200)) + "\n---\n"
		}
		i.command(path, name, header+strings.TrimSpace(prompt)+"\n")
	}
}
