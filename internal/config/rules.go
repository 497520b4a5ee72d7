package config

import (
	"fmt"
	"slices"

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

// checkActions returns an error for the first rule that does nothing.
func checkActions(rules []Rule) error {
	for _, r := range rules {
		if !slices.Contains([]tool.Action{tool.Allow, tool.Ask, tool.Deny}, r.Action) {
			return fmt.Errorf("rule %q: action: unknown value %q; use allow, ask or deny", r.Text, r.Action)
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
	return checkActions(p.Rules)
}
