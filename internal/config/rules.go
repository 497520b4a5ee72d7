package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/shell"
	"github.com/inspan/inspan/tool"
)

// Rule is a rule with what a person wants to know of it, and examples that show
// that it means what they think.
type Rule struct {
	Action tool.Action `toml:"action"` // allow, ask or deny
	Text   string      `toml:"rule"`   // as in the lists
	Reason string      `toml:"reason"` // shown where it asks or denies
	// Match lists what the rule speaks of and NotMatch what it doesn't: command
	// lines, hosts or paths, as the rule has it. Settings with an example that is
	// wrong are not taken.
	Match    []string `toml:"match"`
	NotMatch []string `toml:"not_match"`
}

// AllRules are the rules of the lists and those with examples, in their order.
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

// checkRules returns an error for the first rule that can't be read, or is not
// what its examples say.
func checkRules(allow, ask, deny []string, more []Rule) error {
	for _, r := range AllRules(allow, ask, deny, more) {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Project) check() error {
	for _, r := range p.Rules {
		if r.Action == tool.Allow {
			return fmt.Errorf("rule %q: a project can't allow anything", r.Text)
		}
	}
	if err := checkHooks(p.Hooks); err != nil {
		return err
	}
	return checkRules(nil, p.Ask, p.Deny, p.Rules)
}

func (r Rule) check() error {
	if !slices.Contains([]tool.Action{tool.Allow, tool.Ask, tool.Deny}, r.Action) {
		return fmt.Errorf("rule %q: action: unknown value %q; use allow, ask or deny", r.Text, r.Action)
	}
	rule, err := policy.ParseRule(r.Action, r.Text, "")
	if err != nil {
		return fmt.Errorf("%s: %w", r.Action, err)
	}
	for _, text := range r.Match {
		if !speaksOf(rule, text) {
			return fmt.Errorf("%s: rule %q does not match its example %q", r.Action, r.Text, text)
		}
	}
	for _, text := range r.NotMatch {
		if speaksOf(rule, text) {
			return fmt.Errorf("%s: rule %q matches %q, which it must not", r.Action, r.Text, text)
		}
	}
	return nil
}

// speaksOf tries a rule with an example.
func speaksOf(rule policy.Rule, example string) bool {
	at := places.Map{Root: "/workspace", Home: "/home/user"}
	name, _, _ := strings.Cut(rule.Text, "(")
	c := &tool.Call{Name: strings.TrimSpace(name), Cwd: at.Root, Env: tool.Env{Root: at.Root}}
	path := example
	switch {
	case strings.HasPrefix(path, "~/"):
		path = at.Home + path[1:]
	case !strings.HasPrefix(path, "/"):
		path = at.Root + "/" + path
	}
	switch c.Name {
	case "bash", "execute":
		return rule.Matches(at, c, shell.Explain(example, shell.Place{Root: at.Root, Cwd: at.Root, Home: at.Home}).Calls())
	case "network":
		return rule.Matches(at, c, []tool.Effect{{Kind: tool.Network, Text: example}})
	case "read":
		return rule.Matches(at, c, []tool.Effect{{Kind: tool.Read, Path: path}})
	}
	// The others are named by a tool, and may mean any of what it does.
	for _, e := range []tool.Effect{{Kind: tool.Write, Path: path}, {Kind: tool.Network, Text: example}} {
		if rule.Matches(at, c, []tool.Effect{e}) {
			return true
		}
	}
	return false
}
