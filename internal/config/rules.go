package config

import (
	"fmt"
	"slices"

	"github.com/inspan/inspan/internal/policy"
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
		return fmt.Errorf("rule %q: action: %q is none of allow, ask, deny", r.Text, r.Action)
	}
	rule, err := policy.ParseRule(r.Action, r.Text, "")
	if err != nil {
		return fmt.Errorf("%s: %w", r.Action, err)
	}
	for _, text := range r.Match {
		if !rule.SpeaksOf(text) {
			return fmt.Errorf("%s: rule %q does not match its example %q", r.Action, r.Text, text)
		}
	}
	for _, text := range r.NotMatch {
		if rule.SpeaksOf(text) {
			return fmt.Errorf("%s: rule %q matches %q, which it must not", r.Action, r.Text, text)
		}
	}
	return nil
}
