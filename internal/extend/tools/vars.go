package tools

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// reach is how far a command can reach. Environment changes of a command go to commands with the same or a
// smaller reach, never a larger one: a variable set in the sandbox must not affect what runs outside of it.
type reach int

const (
	sandboxed reach = iota
	networked       // in the sandbox, with hosts
	unwalled
)

func reachOf(b tool.Box) reach {
	switch {
	case b.Level == tool.BoxNone || b.Level == tool.BoxDefault:
		return unwalled
	case len(b.Hosts) > 0:
		return networked
	}
	return sandboxed
}

// vars are changes of an environment, as [tool.Command] takes them, each name once.
type vars []string

// inside returns the changes that a command in a sandbox gets: a command that is proven to read, and git that
// writes its repository, get none that could mislead them.
func (v vars) inside(b tool.Box, root string) vars {
	if b.Level == tool.BoxRead || b.Git && !b.Mixed {
		return shell.Inherited(v, root)
	}
	return v
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// value returns the value that the changes give a variable, "" if they remove it, and whether they change it.
func (v vars) value(name string) (value string, changed bool) {
	for _, kv := range v {
		if nameOf(kv) == name {
			_, value, _ = strings.Cut(kv, "=")
			return value, true
		}
	}
	return "", false
}

// with returns the changes with more applied on top.
func (v vars) with(more vars) vars {
	out := slices.Clone(v)
	for _, kv := range more {
		out = append(slices.DeleteFunc(out, func(old string) bool { return nameOf(old) == nameOf(kv) }), kv)
	}
	return out
}

// beyond returns the names of those changes that others lack.
func (v vars) beyond(others vars) []string {
	var out []string
	for _, kv := range v {
		if !slices.Contains(others, kv) && nameOf(kv) != "OLDPWD" {
			out = append(out, nameOf(kv))
		}
	}
	slices.Sort(out)
	return out
}

// changes returns the changes that a command has made to its environment.
func changes(before, after []string) vars {
	var out vars
	old := map[string]bool{}
	for _, kv := range before {
		old[kv] = true
	}
	left := map[string]bool{}
	for _, kv := range after {
		left[nameOf(kv)] = true
		if !old[kv] && shared(nameOf(kv)) {
			out = append(out, kv)
		}
	}
	for _, kv := range before {
		if name := nameOf(kv); !left[name] && shared(name) {
			out = append(out, name)
		}
	}
	return out
}

// shared reports whether commands pass a variable on to each other: not a function, and not specific to one
// shell.
func shared(name string) bool {
	switch name {
	case "_", "PWD", "SHLVL", "INSPAN_CALL", "GIT_OPTIONAL_LOCKS", "GIT_CONFIG_COUNT":
		return false
	}
	return !strings.HasPrefix(name, "__inspan") && !strings.HasPrefix(name, "GIT_CONFIG_KEY_") &&
		!strings.HasPrefix(name, "GIT_CONFIG_VALUE_") &&
		variable.FindString(name) == name
}
