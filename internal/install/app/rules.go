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

// RuleNote is a rule in force, and what a person should know of it.
type RuleNote struct {
	inspan.Rule
	Unmatched error        // why it matches nothing; nil: it can match
	By        *inspan.Rule // the rule that decides all that it matches, so that it changes nothing
}

// Rules lists the rules that hold in the folder root, and which of them change nothing.
func (a *App) Rules(ctx context.Context, root string) ([]RuleNote, error) {
	rules, err := a.Permission.Rules(root)
	if err != nil {
		return nil, err
	}
	return a.noteRules(ctx, root, rules, nil)
}

// noteRules looks which rules can't match, as they name no tool of a session in root, and which are
// swallowed by others. Given are the names of further tools that the session has.
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
	if slices.ContainsFunc(read, unknown) { // to list what is installed takes a while
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

// rulesMatch tells of rules that match nothing. Those of the command line are an error. Others may be
// for the tools of another folder; if they deny or ask, they stop work that nobody attends.
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
		case n.Scope == "command line" && !b.o.Patient:
			return misused("--%s: %w", n.Action, n.Unmatched)
		case n.Action == tool.Allow:
		case b.o.Unattended, b.o.Patient:
			return config.Error{Err: fmt.Errorf("%s: %s %w; correct or remove it: a rule that matches nothing stops unattended work", n.Scope, n.Action, n.Unmatched)}
		default:
			b.warn(fmt.Sprintf("%s: %s %v; it matches nothing here", n.Scope, n.Action, n.Unmatched))
		}
	}
	return nil
}
