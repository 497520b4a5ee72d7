package sandbox

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/tool"
)

// dull reports whether a value can't be a secret whatever its name, such as that of TOKENIZERS_PARALLELISM or
// MAX_TOKENS: a switch, a small number or a round one.
func dull(value string) bool {
	if slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off"}, strings.ToLower(value)) {
		return true
	}
	if strings.Trim(value, "0123456789") != "" {
		return false
	}
	return len(value) <= 4 || value[0] != '0' && strings.HasSuffix(value, "000")
}

// settings keep programs from prompting, paging and drawing. In a terminal the editor is the person's, or that
// of the image, as a person may use it.
func settings(terminal bool) []string {
	var editors []string
	if !terminal {
		editors = []string{"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true"}
	}
	return append(
		editors,
		"TERM=dumb", "NO_COLOR=1",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never",
		"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1", "PYTHONUNBUFFERED=1",
	)
}

// Withheld is a variable of this process that commands don't get.
type Withheld struct {
	Name string
	Why  string // text after "held back as it "
}

// Withhold lists the variables of an environment that commands don't get, by name. Whole is for mode yolo, in
// which only inspan's own keys are withheld. Variables in [Options.Environ] are never listed.
func Withhold(environment []string, o Options, whole bool) []Withheld {
	var out []Withheld
	finder := &secret.Finder{}
	for _, kv := range environment {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || slices.Contains(o.Environ, name) || ofShells(name) {
			continue
		}
		if why := withheld(finder, o.Keys, name, value, whole); why != "" {
			out = append(out, Withheld{name, why})
		}
	}
	slices.SortStableFunc(out, func(a, b Withheld) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// withheld returns the reason why a variable is withheld; empty means it is not.
func withheld(finder *secret.Finder, keys []string, name, value string, whole bool) string {
	if slices.Contains(keys, name) || name == "INSPAN_API_KEY" {
		return "is a key of inspan itself"
	}
	if whole {
		return ""
	}
	if _, found := finder.First(name + "=" + value); found || secret.Named(name) && !dull(value) || processes.UserInfo.MatchString(value) {
		return "looks like a secret"
	}
	if shell.Steers(name) {
		return "steers what shells, git or the loader run"
	}
	return ""
}

// ofShells reports whether a variable belongs to one shell, which sets it itself.
func ofShells(name string) bool {
	return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_", "INSPAN_CALL"}, name)
}

// environ returns the environment for a process of a workspace: ours without withheld variables, plus our
// settings. A process that was proven to only read, or git that writes its repository, gets no variable that
// could make it do more.
func environ(ours []string, o Options, root string, c tool.Command) []string {
	held := Withhold(ours, o, c.Pass.All)
	drop := func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return ofShells(name) || slices.ContainsFunc(held, func(w Withheld) bool { return w.Name == name })
	}
	if c.Env != nil {
		return processes.SetVars(c.Env, c.Vars...)
	}
	env := slices.DeleteFunc(slices.Clone(ours), drop)
	switch {
	case o.Container != nil:
		env = slices.DeleteFunc(env, func(kv string) bool { return !onboard(kv, o.Environ) })
	case c.Box.Level == tool.BoxRead || c.Box.Git && !c.Box.Mixed:
		named := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return !isOne(kv, o.Environ) })
		env = processes.SetVars(shell.ReadEnvironment(env, root), named...)
	}
	env = processes.SetVars(processes.SetVars(processes.SetVars(env, settings(c.TTY != (tool.TTY{}))...), o.Vars...), c.Vars...)
	if o.Container != nil { // variables to remove may be in the image
		env = append(env, slices.DeleteFunc(slices.Clone(c.Vars), func(kv string) bool { return strings.Contains(kv, "=") })...)
	}
	slices.Sort(env)
	return env
}

// onboard reports whether containers get a variable: the image defines where files are.
func onboard(kv string, more []string) bool {
	return strings.HasPrefix(kv, "LC_") || isOne(kv, more) || isOne(kv, []string{"LANG", "LANGUAGE", "TZ", "CI"})
}

func isOne(kv string, names []string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.Contains(names, name)
}
