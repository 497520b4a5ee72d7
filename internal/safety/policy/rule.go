package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// TrustedContent is the scope of rules that inspan makes to protect trusted content from changes.
const TrustedContent = "trusted content"

// The rules for all edits, and for fetching from package registries.
const (
	edit       = "edits"
	registries = "registries"
)

// Rule is one line that a person writes to allow, ask about or deny calls:
//
//	TOOL              every call of the tool; * stands for any part of the name
//	TOOL(PATTERN)     only those that match
//	spawn_agent(KIND) only agents of the kind; skill(NAME) only that skill. * stands for any text
//	EFFECT            every effect of the kind, of any tool: read, write,
//	                  execute, network, external, keep
//	EFFECT(PATTERN)   only those that match
//	edits             changes of workspace files by tools other than shells. An allow
//	                  rule does not include guarded places
//
//	registries        fetches of commands from package registries; only to allow.
//	                  With a pattern, only from that host, as one more registry
//
// For paths, PATTERN is a glob with **, relative to the workspace unless it starts with / or ~/. A rule that denies or
// asks about a folder by its name is also about everything in it. For hosts, see [netguard.Hosts]; network(!HOST HOST)
// denies or asks about all other hosts. For execute and keep, see [command].
//
// Rules apply to one effect at a time, and in command lines to one simple command at a time. A call is denied if any
// part is denied, and allowed if all parts are allowed.
type Rule struct {
	Action  tool.Action // Allow, Ask or Deny
	Text    string      // in the grammar above
	Written string      // as a person wrote it, if that was in the syntax of another agent; see [Read]
	Scope   string      // its origin, for people: "organisation", "user", "project", "session"
	Reason  string      // for people and models, shown if it asks or denies; may be empty
	tool    string
	pattern string // empty means any
	command command
}

// Read parses a rule as a person writes it: in the grammar of [Rule], or in the syntax of Claude Code, Codex, opencode
// or Gemini, which may yield several rules. A rule with one of the names in tools is always in our grammar. A rule that
// denies or asks about bash(npm run test:*) covers both meanings of the :* at its end.
func Read(action tool.Action, text, scope string, tools ...string) ([]Rule, error) {
	name, _, _ := strings.Cut(text, "(")
	if !foreign.Is(text) || slices.Contains(tools, strings.TrimSpace(name)) {
		r, err := ParseRule(action, text, scope)
		if err != nil {
			return nil, err
		}
		out := []Rule{r}
		if also := r.looseForm(); also != "" {
			if l, err := ParseRule(action, also, scope); err == nil {
				l.Written = r.Text
				out = append(out, l)
			}
		}
		return out, nil
	}
	translated, why := foreign.Translate(action, text)
	if why != "" {
		return nil, fmt.Errorf("rule %q: %s", text, why)
	}
	var out []Rule
	for _, own := range translated {
		r, err := ParseRule(action, own, scope)
		if err != nil {
			return nil, fmt.Errorf("rule %q means %w", text, err)
		}
		r.Written = strings.TrimSpace(text)
		out = append(out, r)
	}
	return out, nil
}

// ParseRule parses a rule in the grammar of [Rule]. A pattern that can never match is an error. If possible, the error
// suggests one that can.
func ParseRule(action tool.Action, text, scope string) (Rule, error) {
	fail := func(why string) (Rule, error) {
		return Rule{}, fmt.Errorf("rule %q: %s", text, why)
	}
	name, pattern, has := strings.Cut(strings.TrimSpace(text), "(")
	r := Rule{Action: action, Text: strings.TrimSpace(text), Scope: scope, tool: strings.TrimSpace(name)}
	if has {
		inner, closed := strings.CutSuffix(strings.TrimSpace(pattern), ")")
		if !closed || strings.TrimSpace(inner) == "" {
			return fail("want TOOL or TOOL(PATTERN)")
		}
		r.pattern = strings.TrimSpace(inner)
	}
	if r.tool == edit && r.pattern != "" {
		return fail("it takes no pattern; use write(PATTERN)")
	}
	if r.tool == registries && action != tool.Allow {
		return fail("it only allows; use network(HOST)")
	}
	if r.tool == "" || strings.ContainsAny(r.tool, " \t)") {
		return fail("want TOOL or TOOL(PATTERN)")
	}
	if _, err := filepath.Match(r.tool, ""); err != nil {
		return fail("bad pattern for the tool's name")
	}
	if err := r.checkPattern(); err != nil {
		return fail(err.Error())
	}
	var err error
	if r.command, err = parseCommand(r.pattern); err != nil && r.isForCommands() {
		return fail(err.Error())
	}
	return r, nil
}

// checkPattern returns an error for an invalid pattern, or one that can never match.
func (r Rule) checkPattern() error {
	switch {
	case r.pattern == "":
		return nil
	case r.isForCommands():
		return r.checkCommand()
	case variantArgument(r.tool) != "":
		_, err := path.Match(r.pattern, "")
		return err
	case r.tool == string(tool.External), strings.HasPrefix(r.tool, "mcp__"), slices.Contains(toolsWithoutPattern(), r.tool):
		return fmt.Errorf("it takes no pattern; use %s", r.tool)
	case r.tool == string(tool.Network), r.tool == registries, r.tool == "web_fetch", r.tool == "http_request":
		hosts, others := r.hosts()
		if others && (r.Action == tool.Allow || r.tool != string(tool.Network) || len(hosts) == 0) {
			return errors.New("only network(!HOST) that denies or asks is for all other hosts")
		}
		for _, host := range hosts {
			if err := netguard.CheckHost(host); err != nil {
				if host := hostIn(host); host != "" {
					return fmt.Errorf("%w; did you mean %s(%s)?", err, r.tool, host)
				}
				return err
			}
		}
		return nil
	case !doublestar.ValidatePattern(r.pattern):
		return errors.New("bad pattern")
	}
	return r.checkPath()
}

// toolsWithoutPattern returns the built-in tools whose calls have no command, path or host for a pattern to match.
func toolsWithoutPattern() []string {
	return []string{
		"ask_user", "call_tool", "finish_task", "history", "manage_agents", "mcp_resource", "mcp_server_list", "oauth_flow", "plan_workflow", "return_result",
		"team", "todo", "tool_search", "tool_types",
	}
}

// checkCommand rejects quotes around a program, a bracket too many, lists of patterns, and Claude Code's PROGRAM:*
// after our name of the tool, because in our grammar the colon would be part of the program's name.
func (r Rule) checkCommand() error {
	if less, ok := strings.CutSuffix(r.pattern, ")"); ok && strings.Count(r.pattern, ")") > strings.Count(r.pattern, "(") {
		return fmt.Errorf("it has a bracket too many; did you mean %s(%s)?", r.tool, strings.TrimRight(less, ")"))
	}
	if first, _, list := strings.Cut(r.pattern, ":*,"); list && !strings.Contains(first, "'") {
		return fmt.Errorf("it lists several patterns; write a rule for each, such as %s(%s *)", r.tool, first)
	}
	program, _, _ := strings.Cut(r.pattern, " ")
	name := strings.TrimSuffix(strings.Trim(program, `"`), ":*")
	if name == program || name == "" || strings.Contains(name, "'") {
		return nil
	}
	meant := strings.TrimSuffix(strings.ReplaceAll(strings.Replace(r.pattern, program, name, 1), `"`, ""), " *") + " *"
	return fmt.Errorf("no program is called %q; did you mean %s(%s)?", program, r.tool, meant)
}

// looseForm returns the rule with Claude Code's meaning of a pattern that ends with :*, the command with any arguments;
// empty if there is none.
func (r Rule) looseForm() string {
	prefix, ok := strings.CutSuffix(r.pattern, ":*")
	if !r.isForCommands() || !ok || strings.HasSuffix(prefix, "'") || r.Action == tool.Allow {
		return ""
	}
	return r.tool + "(" + prefix + " *)"
}

// checkPath rejects a pattern that no path matches, because rules match clean, absolute paths.
func (r Rule) checkPath() error {
	home, user := strings.CutPrefix(r.pattern, "~")
	below, variable := strings.CutPrefix(strings.NewReplacer("${HOME}/", "$HOME/").Replace(r.pattern), "$HOME/")
	clean := r.pattern
	switch list := strings.Split(r.pattern, ", "); {
	case strings.HasPrefix(r.pattern, "!"):
		return errors.New("exceptions are not understood; write a rule for what it is about")
	case len(list) > 1 && !strings.ContainsAny(strings.Join(list, ""), " {") && !slices.Contains(list, ""):
		return fmt.Errorf("it lists several paths; write a rule for each, such as %s(%s)", r.tool, list[0])
	case variable:
		clean = "~/" + below
	case user && home == "":
		clean = "~/**"
	case user && !strings.HasPrefix(home, "/") && strings.Contains(home, "/"):
		return errors.New("~NAME is not understood; write the home folder in full, or ./~NAME for a folder of the workspace")
	case path.IsAbs(r.pattern):
		clean = path.Clean(r.pattern)
	}
	if clean != r.pattern {
		return fmt.Errorf("no path looks like that; did you mean %s(%s)?", r.tool, clean)
	}
	return nil
}

// hostIn returns the host in an address, or after Claude Code's domain: prefix; empty if there is none.
func hostIn(text string) string {
	text = strings.TrimPrefix(text, "domain:")
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Host
	}
	if host, _, _ := strings.Cut(text, "/"); netguard.CheckHost(host) == nil {
		return host
	}
	return ""
}

// Names returns an error if the rule names no kind of effect and matches none of the tools. Names like those of MCP
// tools always count as known, because these tools are dynamic.
func (r Rule) Names(tools []string) error {
	known := append(append(kinds(), edit, registries), tools...)
	if strings.HasPrefix(r.tool, "mcp__") || strings.HasPrefix(r.tool, "*") || slices.ContainsFunc(known, func(name string) bool {
		ok, _ := filepath.Match(r.tool, name) // validated when the rule was parsed
		return ok
	}) {
		return nil
	}
	hint := ""
	if near := text.Nearest(r.tool, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("rule %q: no tool or kind of effect is called %q%s", r.Text, r.tool, hint)
}

// kinds returns the kinds of effects that rules can name.
func kinds() (out []string) {
	for _, k := range []tool.EffectKind{tool.Read, tool.Write, tool.Execute, tool.Network, tool.External, tool.Keep} {
		out = append(out, string(k))
	}
	return out
}

// isForCommands reports whether the pattern is for commands.
func (r Rule) isForCommands() bool {
	return r.tool == "bash" || r.tool == "execute" || r.tool == string(tool.Keep)
}

func (r Rule) author() string {
	if r.Scope == "" {
		return "rule " + r.Text
	}
	return fmt.Sprintf("rule %s (%s)", r.Text, r.Scope)
}

// match says whether a rule matches.
type match int

const (
	no match = iota
	perhaps
	yes
)

// mayMatch reports whether a rule that denies or asks matches an effect. It errs on the side of matching: a change of a
// folder matches if the rule is for files in it.
func (r Rule) mayMatch(m places.Map, c *tool.Call, s subject) match {
	if !r.isFor(c, s) {
		return no
	}
	if r.pattern == "" {
		return yes
	}
	if r.isForCommands() && s.Kind != tool.Execute && (s.Kind != tool.Keep || r.tool != string(tool.Keep)) {
		return no
	}
	if variantArgument(r.tool) != "" {
		return r.matchVariant(c)
	}
	switch s.Kind {
	case tool.Read, tool.Write:
		glob := r.glob(m)
		base, _ := doublestar.SplitPattern(filepath.ToSlash(glob))
		if matchPath(glob, s.Path) || s.Kind == tool.Write && text.Inside(s.Path, filepath.FromSlash(base)) ||
			!strings.ContainsAny(filepath.Base(glob), `*?[{\`) && matchPath(filepath.Join(glob, "**"), s.Path) {
			return yes
		}
	case tool.Execute, tool.Keep:
		return max(r.command.mayMatch(s.Effect), r.mayRunFile(m, c, s))
	case tool.Network:
		return r.matchHost(s.Text)
	}
	return no
}

// mayRunFile reports whether a command runs the file that the rule names by a path: by any path, or as the script of a
// shell. Paths in rules are relative to the workspace. Links are not followed.
func (r Rule) mayRunFile(m places.Map, c *tool.Call, s subject) match {
	if s.Words == nil || len(s.Words.Argv) == 0 || len(r.command.words) == 0 || !strings.Contains(r.command.words[0].text, "/") {
		return no
	}
	var runs [][]string // each a file and its arguments
	if strings.Contains(s.Words.Argv[0], "/") {
		runs = append(runs, s.Words.Argv)
	}
	if script := scriptOf(s.Words.Argv); len(script) > 0 {
		runs = append(runs, script)
	}
	named, result := r.command.words[0], no
	for _, argv := range runs {
		spelled := append([]string{named.text}, argv[1:]...)
		if r.command.beginsWith(spelled) || text.Wild(r.command.text, strings.Join(spelled, " ")) {
			result = max(result, named.isFile(m, argv[0], cmp.Or(c.Cwd, m.Root), s.moved))
		}
	}
	return result
}

// isFile reports whether the word of a rule is the path of a file that a command names. If the command's folder may
// have changed, only names can be compared.
func (w word) isFile(m places.Map, file, folder string, moved bool) match {
	is := func(pattern, file string) bool {
		return word{filepath.Clean(pattern), w.glob}.matches(filepath.Clean(file))
	}
	switch {
	case is(w.text, file):
		return yes
	case filepath.IsAbs(file):
	case moved && is(filepath.Base(w.text), filepath.Base(file)):
		return perhaps
	case moved:
		return no
	default:
		file = filepath.Join(folder, file)
	}
	if is(absolute(m, w.text), file) {
		return yes
	}
	return no
}

// variantArgument returns the name of the argument that a rule's pattern matches, for tools such as spawn_agent; empty
// for other tools.
func variantArgument(name string) string {
	return map[string]string{"spawn_agent": "agent", "skill": "name"}[name]
}

// matchVariant reports whether the call's variant, such as the kind of agent, matches the pattern.
func (r Rule) matchVariant(c *tool.Call) match {
	args := map[string]any{}
	if json.Unmarshal(c.Args, &args) != nil {
		return perhaps
	}
	name, _ := args[variantArgument(r.tool)].(string)
	if name == "" && r.tool == "spawn_agent" {
		name = "worker" // the default
	}
	if ok, err := path.Match(strings.ToLower(r.pattern), strings.ToLower(name)); ok && err == nil {
		return yes
	}
	return no
}

// covers reports whether an allow rule covers an effect completely. A rule for a command also covers the command's
// network effects and its proven changes in the workspace. Only a network rule covers hosts that the call requests in
// addition.
func (r Rule) covers(m places.Map, c *tool.Call, s subject) bool {
	if !r.isFor(c, s) {
		return false
	}
	switch {
	case r.tool == registries:
		return reaches(r.registries(), s.Text) == yes
	case s.FromArgument && r.tool != string(tool.Network):
		return false
	case r.tool == edit:
		return s.place.Guard == places.Plain
	case r.isForCommands() && s.belongsToCommand():
		return r.pattern == "" || r.command.covers(*s.command)
	case r.pattern == "":
		return true
	case variantArgument(r.tool) != "":
		return r.matchVariant(c) == yes
	case s.Kind == tool.Read || s.Kind == tool.Write:
		return !r.isForCommands() && matchPath(r.glob(m), s.Path)
	case s.Kind == tool.Execute, s.Kind == tool.Keep && r.tool == string(tool.Keep):
		return r.command.covers(s.Effect)
	case s.Kind == tool.Network:
		return !r.isForCommands() && r.matchHost(s.Text) == yes
	}
	return false
}

// namesExactly reports whether the rule is for exactly this path and this kind of access.
func (r Rule) namesExactly(m places.Map, s subject) bool {
	return r.tool == string(s.Kind) && (r.pattern == relative(m, s.Path) || r.glob(m) == s.Path)
}

// singlePath returns the path of a rule that is for exactly one path; otherwise empty.
func (r Rule) singlePath(m places.Map) string {
	if r.pattern == "" || r.isForCommands() || strings.ContainsAny(r.pattern, `*?[]{}\`) {
		return ""
	}
	return r.glob(m)
}

// isFor reports whether the rule is for this tool or this kind of effect. It ignores the pattern.
func (r Rule) isFor(c *tool.Call, s subject) bool {
	if r.tool == edit {
		return s.Kind == tool.Write && s.command == nil && s.place.Zone == places.Workspace && !s.root
	}
	if r.tool == registries {
		return s.Kind == tool.Network && s.command != nil
	}
	if kinds := []tool.EffectKind{
		tool.Read, tool.Write, tool.Execute, tool.Network,
		tool.External, tool.Keep,
	}; slices.Contains(kinds, tool.EffectKind(r.tool)) {
		return r.tool == string(s.Kind)
	}
	if ok, err := filepath.Match(r.tool, c.Name); ok && err == nil {
		return true
	}
	// If a tool was called through another, a rule for that other name can deny or ask, but not allow.
	ok, err := filepath.Match(r.tool, c.CalledAs)
	return ok && err == nil && c.CalledAs != "" && r.Action != tool.Allow
}

// glob returns the pattern as an absolute glob.
func (r Rule) glob(m places.Map) string { return absolute(m, r.pattern) }

// absolute returns a path of a rule, or a glob, as an absolute one.
func absolute(m places.Map, path string) string {
	switch {
	case strings.HasPrefix(path, "~/") && m.Home != "":
		return filepath.Join(m.Home, path[2:])
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(m.Root, path)
}

// matchPath reports whether a glob matches a path, or all of a folder.
func matchPath(glob, path string) bool {
	ok, err := doublestar.PathMatch(glob, path)
	return ok && err == nil
}

// hosts returns the hosts of the pattern. Others means that the rule is for all hosts except these.
func (r Rule) hosts() (hosts netguard.Hosts, others bool) {
	if rest, is := strings.CutPrefix(r.pattern, "!"); is {
		return strings.Fields(rest), true
	}
	return netguard.Hosts{r.pattern}, false
}

// matchHost reports whether the rule matches a host, "name" or "name:port".
func (r Rule) matchHost(text string) match {
	hosts, others := r.hosts()
	matched := reaches(hosts, text)
	if others {
		switch matched {
		case yes:
			return no
		case no:
			return yes
		}
		return matched
	}
	if _, port := hostPort(text); matched == no && port == 0 && r.forPort() {
		return perhaps
	}
	return matched
}

// registries returns the hosts of a registries rule.
func (r Rule) registries() netguard.Hosts {
	if r.pattern != "" {
		return netguard.Hosts{r.pattern}
	}
	return netguard.Registries()
}

// Registries returns the hosts that registries rules open to commands: all of them, the ones that are open only for
// fetching, and the ones that a pattern names.
func Registries(rules []Rule) (open, only, named netguard.Hosts) {
	for _, r := range rules {
		if r.tool != registries {
			continue
		}
		for _, host := range r.registries() {
			closed := slices.ContainsFunc(rules, func(o Rule) bool {
				return o.Action != tool.Allow && o.tool == string(tool.Network) && (o.pattern == "" || o.matchHost(host) != no)
			})
			free := slices.ContainsFunc(rules, func(o Rule) bool {
				return o.Action == tool.Allow && o.tool == string(tool.Network) && (o.pattern == "" || o.matchHost(host) == yes)
			})
			if closed || slices.Contains(open, host) {
				continue
			}
			if open = append(open, host); !free && !slices.Contains(netguard.Unseen(), host) {
				only = append(only, host)
			}
			if r.pattern != "" {
				named = append(named, host)
			}
		}
	}
	return open, only, named
}

// IsRegistry reports whether a host, with or without a port, is a well-known package registry.
func IsRegistry(text string) bool { return reaches(netguard.Registries(), text) == yes }

// hostPort splits a host and its port; 0 means no port.
func hostPort(text string) (name string, port int) {
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		if n, err := strconv.Atoi(text[i+1:]); err == nil {
			return text[:i], n
		}
	}
	return text, 0
}

// reaches reports whether hosts include a host, "name" or "name:port".
func reaches(hosts netguard.Hosts, text string) match {
	name, port := hostPort(text)
	switch {
	case name == "" || name == "*":
		return perhaps
	case hosts.Match(name, port):
		return yes
	case netguard.CheckHost(name) != nil: // the name is invalid
		return perhaps
	}
	return no
}

// forPort reports whether the rule is for hosts at one port.
func (r Rule) forPort() bool {
	i := strings.LastIndexByte(r.pattern, ':')
	return i >= 0 && !strings.HasSuffix(r.pattern, "]")
}

// Matches reports whether the rule matches a call, so that a person can try it. An allow rule must cover all effects
// except reads; an ask or deny rule must match any effect.
func (r Rule) Matches(m places.Map, c *tool.Call, effects []tool.Effect) bool {
	covered := false
	for _, s := range subjects(m, effects) {
		switch {
		case r.Action != tool.Allow:
			if r.mayMatch(m, c, s) == yes {
				return true
			}
		case r.covers(m, c, s):
			covered = true
		case !tool.ReadOnly([]tool.Effect{s.Effect}):
			return false
		}
	}
	return covered
}

// Reaches reports whether a network effect includes a host. An effect without a host includes all.
func Reaches(e tool.Effect, host string, port int) bool {
	return e.Kind == tool.Network && netguard.Hosts{cmp.Or(e.Text, "*")}.Match(host, port)
}
