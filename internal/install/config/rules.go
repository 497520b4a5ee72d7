package config

import (
	"errors"
	"fmt"

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
	var out []error
	for i, r := range rules {
		key := fmt.Sprintf("rule[%d].action", i)
		if r.Action == "" {
			out = append(out, fmt.Errorf("%s: it is missing; use allow, ask or deny", key))
		}
		out = append(out, oneOf(key, string(r.Action), string(tool.Allow), string(tool.Ask), string(tool.Deny)))
	}
	return errors.Join(out...)
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
