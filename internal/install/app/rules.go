package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// RuleNote is a rule in force, with notes for a person.
type RuleNote struct {
	inspan.Rule
	Unmatched error        // why it can't match anything; nil means it can
	By        *inspan.Rule // the rule that already decides everything it matches, so it has no effect
}

// Rules lists the rules in force in the folder root, with notes on those that have no effect.
func (a *App) Rules(ctx context.Context, root string) ([]RuleNote, error) {
	rules, err := a.Permission.Rules(root)
	if err != nil {
		return nil, err
	}
	return a.noteRules(ctx, root, rules, nil)
}

// noteRules finds rules that can't match, because they name no tool of a session in root, and rules that others
// make redundant. Given are the names of further tools of the session.
func (a *App) noteRules(ctx context.Context, root string, rules []inspan.Rule, given []string) ([]RuleNote, error) {
	var read []policy.Rule
	var out []RuleNote
	for _, r := range rules {
		one, err := policy.ParseRule(r.Action, r.Text, r.Scope)
		if err != nil {
			return nil, config.Error{Err: fmt.Errorf("%s: %s %w", r.Scope, r.Action, err)}
		}
		one.Written = r.Original
		read, out = append(read, one), append(out, RuleNote{Rule: r})
	}
	known := slices.Concat(equipment.Names(), given)
	unknown := func(r policy.Rule) bool { return r.Names(known) != nil }
	if slices.ContainsFunc(read, unknown) { // listing installed tools is slow
		known = append(known, a.Extensions.ToolNames(ctx, root)...)
	}
	for i, r := range read {
		out[i].Unmatched = r.Names(known)
	}
	for i, by := range policy.Swallowed(read) {
		out[i].By = &rules[by]
	}
	return out, nil
}

// rulesMatch warns about rules that match nothing. On the command line they are an error. Other rules may be
// for the tools of another folder. If they deny or ask, they are an error in unattended work.
func (b *build) rulesMatch(ctx context.Context) error {
	if b.o.shown || b.at.Parent != "" {
		return nil
	}
	var given []string
	for _, t := range slices.Concat(b.agent.Tools, b.o.Tools) {
		given = append(given, t.Name)
	}
	notes, err := b.noteRules(ctx, b.at.Root, b.rules, given)
	if err != nil {
		return err
	}
	for _, n := range notes {
		switch {
		case n.Unmatched == nil:
		case n.Scope == "command line" && !b.o.Limits.RetryLong:
			return misused("--%s: %w", n.Action, n.Unmatched)
		case n.Action == tool.Allow:
		case b.o.Unattended, b.o.Limits.RetryLong:
			return config.Error{Err: fmt.Errorf("%s: %s %w; correct or remove it: a rule that matches nothing stops unattended work", n.Scope, n.Action, n.Unmatched)}
		default:
			b.warn(fmt.Sprintf("%s: %s %v; it matches nothing here", n.Scope, n.Action, n.Unmatched))
		}
	}
	return nil
}
