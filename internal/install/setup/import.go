package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Fate says whether and how a setting of another agent is taken over.
type Fate string

// Fates.
const (
	Used       Fate = "used"       // inspan reads it where it is
	Translated Fate = "translated" // becomes settings, servers or commands of the person
	Ignored    Fate = "ignored"
)

// Item is a file or setting of another agent, and its fate.
type Item struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`           // for people: relative to the home folder or the workspace
	What  string `json:"what,omitempty"` // part of the file; empty: all of it
	Fate  Fate   `json:"fate"`
	How   string `json:"how"` // the result, or why it is ignored

	change *config.Change
	server *connect.Foreign
	file   *command
}

// command is the file of a slash command to write.
type command struct{ path, text string }

// Import is the collected settings of other agents in a home folder and a workspace.
type Import struct {
	Items []Item

	app    *app.App
	root   string
	home   string
	by     string              // the agent being read
	mask   func(string) string // removes secrets from output
	set    map[string]setting  // by key
	broken []string            // unreadable files
	told   []string            // paths that have items
	runs   []string            // commands of hooks and status lines
	have   map[string][]string // values of list settings, by key
}

// setting is the value of a setting, and its origin.
type setting struct{ value, by string }

// Agents returns the names of agents to import from.
func Agents() []string { return []string{"claude", "codex", "opencode", "gemini", "cursor", "copilot"} }

// Look reads the settings of other agents, in the person's home and in the workspace root. It changes nothing.
// Broken files, files that are too large and paths that are not files become items that say so.
func Look(a *app.App, root string, agents []string) (*Import, error) {
	i := newImport(a, root)
	if i.home == "" {
		return nil, errors.New("no home folder; set HOME")
	}
	list, err := config.Settings(a.ConfigPath)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		i.set[s.Key] = setting{s.Plain(), "your settings have"}
	}
	c := a.Config
	i.have["allow"], i.have["ask"], i.have["deny"], i.have["folders"], i.have["skills.folders"] = c.Allow, c.Ask, c.Deny, c.Folders, c.Skills.Folders
	var warnings []string
	servers, err := a.Hubs.Foreign(nil, root, func(w string) { warnings = append(warnings, w) })
	if err != nil {
		return nil, err
	}
	code, _ := os.UserConfigDir() // without one, VS Code has no settings there
	code = filepath.Join(code, "Code", "User")
	for _, agent := range []struct {
		name, title string
		look        func()
		homes       []string // paths with servers
		folders     []string // folders to report completely
	}{
		{"claude", "Claude Code", i.claude, []string{i.at(".claude.json")}, []string{i.at(".claude"), filepath.Join(root, ".claude")}},
		{"codex", "Codex", i.codex, []string{i.at(".codex")}, []string{i.at(".codex"), filepath.Join(root, ".codex")}},
		{"opencode", "opencode", i.opencode, []string{i.at(".config", "opencode")}, []string{i.at(".config", "opencode")}},
		{"gemini", "Gemini CLI", i.gemini, []string{i.at(".gemini")}, []string{i.at(".gemini"), filepath.Join(root, ".gemini")}},
		{"cursor", "Cursor", func() {
			i.folder(Used, filepath.Join(root, ".cursor", "rules"), ".mdc", "file", "instructions of this folder, but for those that a person picks")
			i.used(filepath.Join(root, ".cursorrules"), "instructions of this folder")
		}, []string{i.at(".cursor"), filepath.Join(root, ".cursor")}, []string{i.at(".cursor")}},
		{"copilot", "GitHub Copilot", func() {
			i.used(filepath.Join(root, ".github", "copilot-instructions.md"), "instructions of this folder")
			i.folder(Used, filepath.Join(root, ".github", "instructions"), ".instructions.md", "file", "instructions of this folder, if they have applyTo")
		}, []string{i.at(".copilot"), code, filepath.Join(root, ".vscode")}, []string{i.at(".copilot")}},
	} {
		if len(agents) > 0 && !slices.Contains(agents, agent.name) {
			continue
		}
		i.by = agent.title
		agent.look()
		i.servers(servers, warnings, agent.homes)
		slices.Sort(agent.folders)
		for _, dir := range slices.Compact(agent.folders) { // the workspace can be the home
			i.rest(dir)
		}
	}
	return i, nil
}

// LookServers reads only the MCP servers of other programs: those of the person in all existing files, or all in
// the named files. Warn is called for servers that were left out.
func LookServers(a *app.App, root string, files []string, warn func(string)) (*Import, error) {
	i := newImport(a, root)
	list, err := a.Hubs.Foreign(files, root, warn)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Had {
			warn(s.Path + ": your settings have the MCP server " + s.Name + " already")
			continue
		}
		if s.Project {
			warn(fmt.Sprintf("%[1]s: the MCP server %[2]s belongs to this folder; to have it in every folder: inspan mcp import %[1]s", s.Path, s.Name))
			continue
		}
		i.server(s)
	}
	for _, item := range i.Items {
		if item.Fate == Ignored {
			warn(item.Path + ", " + item.What + ": " + item.How)
		}
	}
	return i, nil
}

func newImport(a *app.App, root string) *Import {
	return &Import{app: a, root: root, home: keep.Home(), mask: config.Masks(), set: map[string]setting{}, have: map[string][]string{}}
}

// Servers returns the MCP servers to write.
func (i *Import) Servers() (out []connect.Foreign) {
	for _, item := range i.Items {
		if item.server != nil {
			out = append(out, *item.server)
		}
	}
	return out
}

// mostNamed bounds how many unused files of a folder are listed.
const mostNamed = 200

// rest lists the files and folders in an agent's folder that have no item and that no command names.
func (i *Import) rest(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return // missing, or already reported
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostNamed)
	names = slices.DeleteFunc(names, func(name string) bool {
		path := filepath.Join(dir, name)
		return slices.ContainsFunc(i.told, func(told string) bool { return text.Inside(path, told) }) ||
			slices.ContainsFunc(i.runs, func(command string) bool { return strings.Contains(command, "/"+name) })
	})
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	for n := range names {
		names[n] = words.OneLine(names[n], 60)
	}
	if n := len(names) - 12; n > 0 {
		names = append(names[:12], fmt.Sprintf("and %d more", n))
	}
	i.ignored(dir, "", "inspan does not read "+strings.Join(names, ", "))
}

// at returns a path below the home folder.
func (i *Import) at(parts ...string) string { return filepath.Join(i.home, filepath.Join(parts...)) }

// shown returns a path for people: relative to the home folder or the workspace.
func (i *Import) shown(path string) string {
	if rel, err := filepath.Rel(i.root, path); err == nil && filepath.IsLocal(rel) {
		return words.OneLine(filepath.ToSlash(rel), 200)
	}
	if rel, err := filepath.Rel(i.home, path); err == nil && filepath.IsLocal(rel) {
		return words.OneLine("~/"+filepath.ToSlash(rel), 200)
	}
	return words.OneLine(path, 200)
}

func (i *Import) add(fate Fate, path, what, how string) {
	i.told = append(i.told, path)
	i.Items = append(i.Items, Item{Agent: i.by, Path: i.shown(path), What: words.OneLine(i.mask(what), 300), Fate: fate, How: words.OneLine(i.mask(how), 400)})
}

// used reports a file that inspan reads where it is, if it exists.
func (i *Import) used(path, how string) {
	info, err := os.Stat(path)
	switch {
	case !exists(path):
	case err != nil || !info.Mode().IsRegular():
		i.ignored(path, "", "it is not a regular file")
	default:
		i.add(Used, path, "", how)
	}
}

func (i *Import) ignored(path, what, why string) {
	i.add(Ignored, path, what, why)
}

// unused reports a file that inspan does not read, if it exists.
func (i *Import) unused(path, why string) {
	if exists(path) {
		i.ignored(path, "", why)
	}
}

// login reports a login of another agent.
func (i *Import) login(path string) {
	i.unused(path, "a login belongs to the program that made it; 'inspan setup' stores a key")
}

// unknown reports a setting that inspan does not translate, and where to set the same here, if anywhere. Theirs are
// the reasons for settings of one agent.
func (i *Import) unknown(path, key string, theirs map[string]string) {
	last := key[strings.LastIndexByte(key, ' ')+1:] // of a table, such as "model_providers.x request_max_retries"
	here := map[string]string{
		"cleanupPeriodDays":       "set retention.days yourself; 'inspan sessions prune' goes by it",
		"history":                 "inspan keeps every session; 'inspan sessions prune' removes those that [retention] names",
		"fallbackModel":           "set the fallback yourself: inspan config set --add fallback PROVIDER/MODEL",
		"alwaysThinkingEnabled":   "set the effort yourself: inspan config set effort high",
		"model_context_window":    "set providers.NAME.models.MODEL.window yourself",
		"model_max_output_tokens": "set providers.NAME.models.MODEL.max_output yourself",
		"request_max_retries":     "inspan repeats requests for the time that retry_for sets",
		"stream_idle_timeout_ms":  "set providers.NAME.deadlines.idle yourself",
		"keybinds":                "set keys yourself: the table [keys], see docs/TERMINAL.md",
		"lsp":                     "inspan starts the language servers that are installed; 'inspan doctor' lists them",
		"formatter":               "write a hook that formats, see docs/HOOKS.md",
		"plugin":                  "plugins of opencode are its own; write hooks or tools",
		"model.maxSessionTurns":   "set max_turns yourself: inspan config set max_turns N",
		"tools.sandbox":           "commands run in inspan's own sandbox",
		"tools.core":              "deny tools with rules: inspan config set --add deny TOOL",
		"general.checkpointing":   "inspan keeps checkpoints without being told; see 'inspan rewind --help'",
		"general.preferredEditor": "inspan opens the editor that VISUAL or EDITOR names",
		"mcp":                     "deny the tools of a server with a rule such as mcp__NAME__*",
		"enabled_providers":       "inspan uses the providers that have a key; see 'inspan models'",
		"disabled_providers":      "inspan uses the providers that have a key; see 'inspan models'",
	}
	i.ignored(path, key, cmp.Or(theirs[key], theirs[last], here[key], here[last], "inspan has no such setting"))
}

// exists reports whether a path exists, without following a link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// becomes turns a value into a setting, unless the person or another agent has set it.
func (i *Import) becomes(path, what, key, value string) {
	now, taken := i.set[key]
	switch {
	case taken && now.value == value:
		i.add(Used, path, what, now.by+" "+key+" already")
	case taken:
		i.ignored(path, what, now.by+" another "+key+" already")
	default:
		if i.change(path, what, config.Change{Key: key, Values: []string{value}}) {
			i.set[key] = setting{value, i.by + " has"}
		}
	}
}

// rules imports a rule of another agent in its translated form. Why is the reason if it has none.
func (i *Import) rules(path, what string, action tool.Action, rules []string, why string) {
	if why == "" {
		why = i.wrong(action, rules)
	}
	if why != "" {
		i.ignored(path, what, why)
		return
	}
	i.joins(path, what, string(action), rules...)
}

// wrong returns the reason why translated rules are invalid; empty means they are valid.
func (i *Import) wrong(action tool.Action, rules []string) string {
	for _, rule := range rules {
		if _, err := policy.ParseRule(action, rule, ""); err != nil {
			return err.Error()
		}
	}
	return ""
}

// joins adds values to a list setting.
func (i *Import) joins(path, what, key string, values ...string) {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(i.have[key], v) })
	if len(values) == 0 {
		i.add(Used, path, what, "your settings have it already")
		return
	}
	i.have[key] = append(slices.Clone(i.have[key]), values...)
	i.change(path, what, config.Change{Key: key, Values: values, Add: true})
}

// change adds a change of the settings, unless it would expose a secret.
func (i *Import) change(path, what string, c config.Change) bool {
	if i.exposes(path, what, c.Values...) {
		return false
	}
	how := c.Key + " = " + c.Values[0]
	if c.Add {
		how = fmt.Sprintf("%s: %s", c.Key, strings.Join(c.Values, ", "))
	}
	i.add(Translated, path, what, how)
	i.Items[len(i.Items)-1].change = &c
	return true
}

// exposes reports whether texts contain a secret, and adds an item about that: settings hold none.
func (i *Import) exposes(path, what string, texts ...string) bool {
	if !slices.ContainsFunc(texts, i.secret) {
		return false
	}
	i.ignored(path, what, "it holds a secret, and inspan writes none into settings")
	return true
}

// secret reports whether a text contains a secret.
func (i *Import) secret(text string) bool { return i.mask(text) != text }

// referring returns a server whose environment and headers name a variable in place of each secret.
func (i *Import) referring(s connect.Foreign) connect.Foreign {
	s.Server.Env, s.Server.Headers = maps.Clone(s.Server.Env), maps.Clone(s.Server.Headers)
	for name, value := range s.Server.Env {
		if i.secret(name + "=" + value) {
			s.Server.Env[name] = "${" + name + "}"
		}
	}
	for name, value := range s.Server.Headers {
		if scheme, _, some := strings.Cut(value, " "); i.secret(name + ": " + value) {
			s.Server.Headers[name] = "${" + strings.ToUpper(strings.ReplaceAll(s.Name+"_"+name, "-", "_")) + "}"
			if some {
				s.Server.Headers[name] = scheme + " " + s.Server.Headers[name]
			}
		}
	}
	return s
}

// servers adds the MCP servers from some places. Those of a workspace stay its own: their programs would run in
// every folder.
func (i *Import) servers(list []connect.Foreign, warnings, places []string) {
	of := func(path string) bool {
		return slices.ContainsFunc(places, func(place string) bool {
			return path == place || strings.HasPrefix(path, place+string(filepath.Separator))
		})
	}
	for _, s := range list {
		switch {
		case !of(s.Path):
		case s.Had:
			i.add(Used, s.Path, "MCP server "+s.Name, "your settings have it already")
		case s.Project:
			i.ignored(s.Path, "MCP server "+s.Name, "it belongs to this folder: add it to .mcp.json here, and then run: inspan trust")
		default:
			i.server(s)
		}
	}
	for _, w := range warnings {
		unread := slices.ContainsFunc(i.broken, func(path string) bool { return strings.HasPrefix(w, path+":") })
		if path, why, ok := strings.Cut(w, ": "); ok && of(path) && !unread {
			i.ignored(path, "MCP servers", why)
		}
	}
}

// server adds a server to the person's.
func (i *Import) server(s connect.Foreign) {
	s = i.referring(s)
	texts := append([]string{s.Server.URL, strings.Join(s.Server.Command, " ")}, s.Server.Command...)
	if i.exposes(s.Path, "MCP server "+s.Name, texts...) {
		return
	}
	how := "[mcp.servers." + s.Name + "]"
	if missing := s.Missing(); len(missing) > 0 {
		how += ", which needs " + strings.Join(missing, " and ")
	}
	i.add(Translated, s.Path, "MCP server "+s.Name, how)
	i.Items[len(i.Items)-1].server = &s
}

// read reads a settings file. A missing file leaves nil. An unreadable one becomes an item.
func (i *Import) read(path string, into any) bool {
	if !exists(path) {
		return false
	}
	data, err := connect.ReadForeign(path)
	if err == nil {
		err = foreign.Unmarshal(data, into)
	}
	if err != nil {
		i.unread(path, err)
	}
	return err == nil
}

// unread reports an unreadable file.
func (i *Import) unread(path string, err error) {
	i.broken = append(i.broken, path)
	why := strings.TrimPrefix(err.Error(), path+": ")
	if fault, ok := errors.AsType[config.Fault](err); ok {
		why = fmt.Sprintf("line %d: %v", fault.Line, fault.Err)
	}
	i.ignored(path, "", "it can't be read: "+why)
}

// text reads a file to copy, and reports one that can't be copied. A link must not lead out of the home folder.
func (i *Import) text(path string) (data string, ok bool) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil && !text.Inside(i.home, real) {
		err = errors.New("it is a link that leads out of your home folder")
	}
	if err == nil {
		var raw []byte
		raw, err = config.ReadFile(real)
		data = string(raw)
	}
	if err != nil {
		i.unread(path, keep.Bare(err))
	}
	return data, err == nil
}

// mostCounted bounds how many entries of a folder are examined.
const mostCounted = 5000

// count returns the number of files below a folder with an extension.
func count(dir, ending string) (n int) {
	left := mostCounted
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 {
			return fs.SkipAll // unreadable entries don't count
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ending) {
			n++
		}
		return nil
	})
	return n
}

// folder reports a folder with files, if there are any.
func (i *Import) folder(fate Fate, path, ending, what, how string) {
	if n := count(path, ending); n > 0 {
		i.add(fate, path, text.Count(n, what), how)
	}
}

// sessions reports past conversations.
func (i *Import) sessions(path, ending string) {
	i.folder(Ignored, path, ending, "session", "their calls were judged and run by another agent, so inspan can't continue or rewind them")
}

// skills adds a folder of skills to the settings, unless inspan knows it.
func (i *Import) skills(path string) {
	if n := count(path, "SKILL.md"); n > 0 {
		i.joins(path, text.Count(n, "skill"), "skills.folders", path)
	}
}

// command turns a text into a slash command of the person, unless they have one of that name.
func (i *Import) command(from, name, written string) {
	path := filepath.Join(filepath.Dir(i.app.ConfigPath), "commands", filepath.FromSlash(name)+".md")
	notTyped := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./", r)
	}
	switch {
	case !filepath.IsLocal(filepath.FromSlash(name)+".md") || strings.ContainsFunc(name, notTyped):
		i.ignored(from, "", "its name can't be that of a command")
	case exists(path):
		i.add(Used, from, "", "you have a command /"+strings.ReplaceAll(name, "/", ":")+" already")
	default:
		i.add(Translated, from, "", "the command /"+strings.ReplaceAll(name, "/", ":")+" in "+i.shown(path))
		i.Items[len(i.Items)-1].file = &command{path, written}
	}
}

// Pending returns the number of items to write.
func (i *Import) Pending() (n int) {
	for _, item := range i.Items {
		if item.Fate == Translated {
			n++
		}
	}
	return n
}

// looser returns the mode to write if it asks less than the default, and its effect; empty means there is none.
func (i *Import) looser() (mode, effect string) {
	effects := map[string]string{
		string(tool.ModeEdit): "file changes in the workspace no longer ask",
		string(tool.ModeAuto): "file changes in the workspace and commands in the sandbox no longer ask",
	}
	for _, item := range i.Items {
		if c := item.change; c != nil && c.Key == "mode" && effects[c.Values[0]] != "" {
			return c.Values[0], effects[c.Values[0]]
		}
	}
	return "", ""
}

// agents returns the agents with items that inspan does not read where they are.
func (i *Import) agents() (out []string) {
	for _, item := range i.Items {
		if item.Fate != Used && !slices.Contains(out, item.Agent) {
			out = append(out, item.Agent)
		}
	}
	return out
}

// Told returns the closing text: the items that were written, or how to write them.
func (i *Import) Told(wrote bool) string {
	n := i.Pending()
	switch {
	case len(i.Items) == 0:
		return "Found nothing of another agent here."
	case n == 0:
		return "There is nothing to write."
	case wrote:
		return "Wrote " + text.Count(n, "item") + "; your settings are in " + i.app.ConfigPath + "."
	}
	return "Nothing was written. 'inspan import --write' writes the " + text.Count(n, "item") + " marked as translated."
}

// Print prints the items, by agent and by file. If a file has several items, each gets a line.
func (i *Import) Print(out io.Writer) {
	at := func(n int) (agent, path string) {
		if n < 0 || n >= len(i.Items) {
			return "", ""
		}
		return i.Items[n].Agent, i.Items[n].Path
	}
	for n, item := range i.Items {
		agent, before := at(n - 1)
		_, after := at(n + 1)
		if item.Agent != agent {
			fmt.Fprintln(out, item.Agent)
		}
		becomes := ": "
		if item.Fate == Translated {
			becomes = " → "
		}
		if item.Path != before && item.Path != after {
			fmt.Fprintf(out, "  %-10s  %s%s%s\n", item.Fate, strings.TrimSuffix(item.Path+", "+item.What, ", "), becomes, item.How)
			continue
		}
		if item.Path != before {
			fmt.Fprintf(out, "  %s\n", item.Path)
		}
		fmt.Fprintf(out, "    %-10s  %s%s%s\n", item.Fate, cmp.Or(item.What, "all"), becomes, item.How)
	}
}

// Write writes the translated items: settings in one step, then servers, then commands.
func (i *Import) Write() error {
	var changes []config.Change
	for _, item := range i.Items {
		if item.change != nil {
			changes = append(changes, *item.change)
		}
	}
	if len(changes) > 0 {
		if err := app.SettingsFile(i.app.Installation, i.root, false).Set(changes...); err != nil {
			return err
		}
	}
	for _, item := range i.Items {
		var err error
		switch {
		case item.server != nil:
			err = i.app.Hubs.Add(item.server.Name, item.server.Server)
		case item.file != nil:
			err = cmp.Or(os.MkdirAll(filepath.Dir(item.file.path), 0o700), keep.Write(item.file.path, []byte(item.file.text)))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", item.Path, err)
		}
	}
	return nil
}
