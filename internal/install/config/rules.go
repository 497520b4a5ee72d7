package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// Rule is a rule with a reason for people, and examples that verify its meaning.
type Rule struct {
	Action tool.Action `toml:"action"` // allow, ask or deny
	Text   string      `toml:"rule"`   // as in the lists
	Reason string      `toml:"reason"` // shown where it asks or denies
	// Match lists examples that the rule matches and NotMatch examples that it doesn't: command lines, hosts or
	// paths, depending on the rule. Settings with a wrong example are rejected.
	Match    []string `toml:"match"`
	NotMatch []string `toml:"not_match"`
}

// AllRules returns the rules of the lists and those with examples, in order.
func AllRules(allow, ask, deny []string, more []Rule) []Rule {
	var out []Rule
	for _, list := range []struct {
		action tool.Action
		texts  []string
	}{{tool.Deny, deny}, {tool.Ask, ask}, {tool.Allow, allow}} {
		for _, text := range list.texts {
			out = append(out, Rule{Action: list.action, Text: text})
		}
	}
	return append(out, more...)
}

// checkActions returns an error for each rule without an action.
func checkActions(rules []Rule) error {
	return noErrors(rules, func(i int, r Rule) error {
		key := fmt.Sprintf("rule[%d].action", i)
		if r.Action == "" {
			return fmt.Errorf("%s: it is missing; use allow, ask or deny", key)
		}
		return oneOf(key, string(r.Action), string(tool.Allow), string(tool.Ask), string(tool.Deny))
	})
}

func (p Project) check() error {
	out := []error{checkActions(p.Rules), checkHooks(p.Hooks)}
	for i, r := range p.Rules {
		if r.Action == tool.Allow {
			out = append(out, fmt.Errorf("rule[%d]: rule %q: a project can't allow anything", i, r.Text))
		}
	}
	return errors.Join(out...)
}

// ClaudeFiles returns the settings files of Claude Code in a workspace.
func ClaudeFiles() []string { return []string{".claude/settings.json", ".claude/settings.local.json"} }

// Claude is the permissions part of a Claude Code settings file.
type Claude struct {
	File string // of [ClaudeFiles]
	foreign.Permissions
	Err error // why it can't be read
}

// Says quotes a rule or limit of the file, for a reason.
func (c Claude) Says(what string) string { return c.File + " says " + text.Line(text.Short(what, 200)) }

// ClaudeLimit quotes the first limit in Claude Code settings that fits; empty means none.
func ClaudeLimit(files []Claude, fits func(foreign.Limit) bool) string {
	for _, f := range files {
		for _, l := range f.Limits {
			if fits(l) {
				return f.Says(l.Text)
			}
		}
	}
	return ""
}

// Claudes reads the Claude Code settings files of a workspace that exist.
func Claudes(root string) (out []Claude) {
	for _, file := range ClaudeFiles() {
		data, err := ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := Claude{File: file, Err: err}
		if err == nil {
			c.Permissions, c.Err = foreign.ReadPermissions(data, file)
		}
		out = append(out, c)
	}
	return out
}
