package setup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// codex reads the files of Codex.
func (i *Import) codex() {
	dir := i.at(".codex")
	i.codexSettings(filepath.Join(dir, "config.toml"))
	i.used(filepath.Join(dir, "AGENTS.md"), "instructions of every session")
	i.unused(filepath.Join(dir, "AGENTS.override.md"), "move its text to AGENTS.md")
	prompts, _ := filepath.Glob(filepath.Join(dir, "prompts", "*.md"))
	for _, path := range prompts {
		data, ok := i.text(path)
		if !ok {
			continue
		}
		if written, why := codexPrompt(data); why != "" {
			i.ignored(path, "", why)
		} else {
			i.command(path, strings.TrimSuffix(filepath.Base(path), ".md"), written)
		}
	}
	i.skills(filepath.Join(dir, "skills"))
	rules, _ := filepath.Glob(filepath.Join(dir, "rules", "*.rules"))
	for _, path := range rules {
		i.codexRules(path)
	}
	i.login(filepath.Join(dir, "auth.json"))
	i.sessions(filepath.Join(dir, "sessions"), ".jsonl")
	i.unused(filepath.Join(dir, "hooks.json"), codexHooks)
	i.codexProject(filepath.Join(i.root, ".codex", "config.toml"))
	i.used(filepath.Join(i.root, "AGENTS.md"), "instructions of this folder")
}

// codexRules imports command rules. They are calls in a program. Only plain ones are understood.
func (i *Import) codexRules(path string) {
	data, ok := i.text(path)
	if !ok {
		return
	}
	list, rest := foreign.PrefixRules(data)
	for _, rule := range list {
		rules, why := foreign.Translate(rule.Action, rule.Text)
		i.rules(path, words.OneLine(rule.Text, 80), rule.Action, rules, why)
	}
	if rest != "" {
		i.ignored(path, words.OneLine(rest, 80), "only plain calls of prefix_rule are understood; write the others as allow, ask and deny rules: inspan config set --add")
	}
}

// codexHooks is the reason why Codex hooks are not imported.
const codexHooks = "inspan doesn't read hooks of Codex; write them as [[hook]] in your settings, see docs/HOOKS.md"

// codexProject lists the settings of a folder, and where to set them in inspan.
func (i *Import) codexProject(path string) {
	if !exists(path) {
		return
	}
	var all map[string]any
	data, err := config.ReadFile(path)
	if err == nil {
		err = config.Decode(path, data, &all)
	}
	if err != nil {
		i.unread(path, err)
		return
	}
	theirs := map[string]string{
		"hooks":       "write them as hooks of .claude/settings.json, which run once this folder is trusted; see docs/HOOKS.md",
		"agents":      "write kinds of subagents as files in .inspan/agents, see docs/SUBAGENTS.md; only your own settings set limits",
		"web_search":  "only your own settings choose how the web is searched (web.search)",
		"mcp_servers": ".mcp.json takes the servers of a folder",
	}
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if why := theirs[key]; why != "" {
			i.ignored(path, key, why)
		} else {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 || len(all) == 0 {
		i.ignored(path, strings.Join(rest, ", "), "a folder can't choose model, mode or servers; copy them to your settings")
	}
}

// codexAgents imports the limits of subagents, and lists the roles.
func (i *Import) codexAgents(path string, agents map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		what := "agents." + words.OneLine(name, 60)
		number, is := agents[name].(int64)
		key := map[string]string{"max_threads": "open", "max_concurrent_threads_per_session": "open", "max_depth": "depth"}[name]
		switch _, kind := agents[name].(map[string]any); {
		case key != "" && is && number > 0:
			i.becomes(path, what, "agents."+key, strconv.FormatInt(number, 10))
		case key != "":
			i.ignored(path, what, "it is not a number above 0")
		case kind:
			i.ignored(path, what, "write it as a kind of subagent: a file in ~/.config/inspan/agents, see docs/SUBAGENTS.md")
		default:
			i.ignored(path, what, "inspan has no such limit of subagents")
		}
	}
}

// codexSearch imports that web search is disabled. Otherwise the person chooses a search engine.
func (i *Import) codexSearch(path, key string, value any) {
	what := fmt.Sprintf("%s %v", key, value)
	if value == "disabled" || value == false {
		i.joins(path, what, string(tool.Deny), "web_search")
		return
	}
	i.ignored(path, what, "inspan searches the web through an engine that you choose: inspan config set web.search ENGINE")
}

// codexPrompt converts a Codex prompt to a command. There, $$ is a dollar sign, and $FILES the value of the
// argument FILES=..., which the model finds in the arguments here. Why is the reason if it can't be converted.
func codexPrompt(data string) (written, why string) {
	_, body, err := skill.SplitMatter([]byte(data))
	if err != nil || !strings.HasSuffix(data, body) {
		body = data
	}
	var names []string
	text := regexp.MustCompile(`\$(\$|[A-Z][A-Z0-9_]*)`).ReplaceAllStringFunc(body, func(found string) string {
		name := "{" + found[1:] + "}"
		switch {
		case found == "$$":
			return "$"
		case found == "$ARGUMENTS":
			return found
		case !slices.Contains(names, name):
			names = append(names, name)
		}
		return name
	})
	if regexp.MustCompile(`\$\$([1-9]|ARGUMENTS|\{)`).MatchString(body) {
		return "", "it has $$ before a placeholder for arguments; rewrite the command in .inspan/commands"
	}
	if len(names) > 0 {
		text = strings.TrimRight(text, "\n") + "\n\nFor " + strings.Join(names, ", ") + " above put what these arguments give: $ARGUMENTS\n"
	}
	return strings.TrimSuffix(data, body) + text, ""
}

// codexFile is the part of a config.toml that is read.
type codexFile struct {
	Model     string                    `toml:"model"`
	Provider  string                    `toml:"model_provider"`
	Effort    string                    `toml:"model_reasoning_effort"`
	Approval  any                       `toml:"approval_policy"`
	Sandbox   string                    `toml:"sandbox_mode"`
	Providers map[string]map[string]any `toml:"model_providers"`
	Agents    map[string]any            `toml:"agents"`
}

func (i *Import) codexSettings(path string) {
	if !exists(path) {
		return
	}
	var file codexFile
	var all map[string]any
	data, err := config.ReadFile(path)
	if err == nil {
		err = cmp.Or(config.Decode(path, data, &all), config.Decode(path, data, &file))
	}
	if err != nil {
		i.unread(path, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(file.Providers)) {
		i.codexProvider(path, name, file.Providers[name])
	}
	i.codexModel(path, file)
	if file.Effort != "" {
		raw, _ := json.Marshal(file.Effort) // a string always marshals
		i.looks(path, "model_reasoning_effort", raw)
	}
	i.codexMode(path, file)
	const agentsFile, rules = "move the text to AGENTS.md next to your settings", "choose a mode and rules yourself; see 'inspan run --help'"
	theirs := map[string]string{
		"projects":                       "inspan trusts the content of a folder, not the folder: inspan trust",
		"profiles":                       "INSPAN_CONFIG_DIR names another folder of settings",
		"profile":                        "INSPAN_CONFIG_DIR names another folder of settings",
		"sandbox_workspace_write":        "allow folders and hosts with rules such as write(/path/**) and network(example.com)",
		"shell_environment_policy":       "commands get no variables that look like secrets, except those in sandbox.environment",
		"hooks":                          codexHooks,
		"notify":                         "write a [[hook]] with on = \"stop\" in your settings, see docs/HOOKS.md",
		"default_permissions":            rules,
		"permissions":                    rules,
		"instructions":                   agentsFile,
		"developer_instructions":         agentsFile,
		"model_instructions_file":        agentsFile,
		"experimental_instructions_file": agentsFile,
		"project_doc_fallback_filenames": "import the files in AGENTS.md with lines such as @docs/style.md",
		"tui":                            "set tui.theme, tui.status_line or tui.vim yourself: inspan config set",
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch key {
		case "model", "model_provider", "model_providers", "model_reasoning_effort", "approval_policy", "sandbox_mode", "mcp_servers":
		case "agents":
			i.codexAgents(path, file.Agents)
		case "web_search":
			i.codexSearch(path, key, all[key])
		case "tools": // it enables web search in older versions
			tools, _ := all[key].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(tools)) {
				if what := "tools." + words.OneLine(name, 60); name == "web_search" {
					i.codexSearch(path, what, tools[name])
				} else {
					i.ignored(path, what, "deny tools with rules: inspan config set --add deny TOOL")
				}
			}
		default:
			i.unknown(path, key, theirs)
		}
	}
}

// codexProvider imports a provider, and lists its unsupported settings.
func (i *Import) codexProvider(path, name string, p map[string]any) {
	what := "model_providers." + words.OneLine(name, 60)
	address, _ := p["base_url"].(string)
	switch {
	case strings.ContainsAny(name, "/\"\n"):
		i.ignored(path, what, "its name can't be that of a provider")
		return
	case address == "":
		i.ignored(path, what, "it has no base_url")
		return
	}
	key := "providers." + config.Key(name)
	kind := "openai"
	if p["wire_api"] == "responses" {
		kind = "openai-responses"
	}
	i.becomes(path, what+" base_url", key+".base_url", address)
	if _, taken := i.set[key+".base_url"]; !taken {
		return
	}
	i.becomes(path, what+" wire_api", key+".kind", kind)
	for _, field := range slices.Sorted(maps.Keys(p)) {
		named := what + " " + words.OneLine(field, 60)
		switch value, _ := p[field].(string); field {
		case "base_url", "wire_api":
		case "env_key":
			i.becomes(path, named, key+".key_env", value)
		default:
			i.unknown(path, named, map[string]string{
				"name":                      "inspan shows the name of the table",
				"experimental_bearer_token": "settings hold no secrets; put it into a variable, and name the variable: inspan config set " + key + ".key_env NAME",
				"http_headers":              "inspan sends a provider no headers of yours but the key",
				"env_http_headers":          "inspan sends a provider no headers of yours but the key",
				"query_params":              "inspan adds no parameters to the addresses of a provider",
			})
		}
	}
}

// codexModel imports a model, if its provider is known or imported.
func (i *Import) codexModel(path string, file codexFile) {
	name, what := cmp.Or(file.Provider, "openai"), "model "+words.OneLine(file.Model, 60)
	_, own := i.set["providers."+config.Key(name)+".base_url"]
	switch {
	case file.Model == "" && file.Provider != "":
		i.ignored(path, "model_provider "+words.OneLine(name, 60),
			"the file names no model; choose one: inspan config set model PROVIDER/MODEL")
	case file.Model == "":
	case own || slices.Contains([]string{"openai", "ollama", "lmstudio"}, name):
		i.becomes(path, what, "model", name+"/"+file.Model)
	case file.Providers[name] != nil:
		i.ignored(path, what, "its provider "+words.OneLine(name, 60)+" was not imported either")
	default:
		i.ignored(path, what, "its provider "+words.OneLine(name, 60)+" is unknown to inspan")
	}
}

// codexMode imports how much runs without asking.
func (i *Import) codexMode(path string, file codexFile) {
	policy, _ := file.Approval.(string)
	what := strings.TrimSpace("sandbox_mode " + words.OneLine(file.Sandbox, 40))
	if policy != "" {
		what += ", approval_policy " + words.OneLine(policy, 40)
	}
	switch {
	case file.Sandbox == "" && policy == "":
	case file.Sandbox == "read-only":
		i.becomes(path, what, "mode", "plan")
	case file.Sandbox == "danger-full-access":
		i.ignored(path, what, "mode yolo is never imported; to use it: inspan config set mode yolo")
	case policy == "untrusted" || policy == "":
		i.becomes(path, what, "mode", "ask")
	case file.Sandbox == "workspace-write" || policy == "on-request" || policy == "on-failure":
		i.becomes(path, what, "mode", "auto")
	default:
		i.ignored(path, what, "choose a mode yourself; see 'inspan run --help'")
	}
}
