// Package permission determines what a session may do and reach: the rules of all scopes, the sandbox that its
// programs run in, the judges in addition to the policy, and the secrets that are kept from sessions.
package permission

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Set is the permissions of an installation.
type Set struct {
	*config.Installation
	Consent *consent.Store
	Shown   func(root string) []string                                // folders outside of a workspace that its sandboxes show to programs
	Keys    func() []string                                           // environment variables that hold provider keys
	Model   func(ctx context.Context, name string) (llm.Model, error) // for the reviewer, within the daily budget
	Closed  []string                                                  // further folders and files that no tool reads or changes, without links
	frozen  []string                                                  // those that tools may read
	Foreign []string                                                  // folders where others work too, as in places.Map
	Nice    int                                                       // as in [sandbox.Options]
	// Guests says that sessions belong to other people: tools never get this machine's secrets back, and can't
	// see its processes.
	Guests bool

	noted sync.Map // secrets seen so far, by description
	pool  sandbox.Pool
}

// Line holds the permissions that a command line sets.
type Line struct {
	Allow, Ask, Deny []string // rules
	Trust            string   // as in [consent.Store.ReviewRunning]
	KeepJobs         bool     // jobs that bash is asked to keep outlive the session without approval
	Unapproved       bool     // ignores approvals that a person gave for a project or always
	Given            []string // names of the session's tools from outside
}

// Check returns the first invalid rule, in the order of the lists. Name returns the caller's name of a list, for
// the error. Tools are those that rules may name; nil means any.
func (l Line) Check(name func(tool.Action) string, tools []string) error {
	for _, rules := range []struct {
		action tool.Action
		texts  []string
	}{{tool.Allow, l.Allow}, {tool.Ask, l.Ask}, {tool.Deny, l.Deny}} {
		for _, text := range rules.texts {
			read, err := policy.Read(rules.action, text, "", l.Given...)
			for _, rule := range read {
				if err == nil && tools != nil {
					err = rule.Names(tools)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name(rules.action), err)
			}
		}
	}
	return nil
}

// Close hides a file from all tools, wherever it is.
func (s *Set) Close(file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("%s can't be closed to tools: %w", file, err)
	}
	s.Closed = append(s.Closed, keep.Real(abs))
	return nil
}

// Freeze keeps all tools from changing a file, wherever it is. They may read it.
func (s *Set) Freeze(file string) error {
	if err := s.Close(file); err != nil {
		return err
	}
	s.frozen = append(s.frozen, s.Closed[len(s.Closed)-1])
	return nil
}

// Wire sets which places an agent that works in root may touch, and which secrets it must not show.
func (s *Set) Wire(agent *inspan.Agent, root string) {
	agent.Places.Private, agent.Places.Readable, agent.Places.Public = s.private(), s.shared(), s.public(root)
	if s.Guests {
		agent.Secrets.Hidden = s.secrets
	} else {
		agent.Secrets.Values = s.secrets
	}
	agent.Places.Foreign, agent.Places.Git = s.Foreign, worktree.Named(root)
	agent.Approvals.Remember = func(ctx context.Context, scope event.Scope, rules []string) error {
		return s.Remember(ctx, root, scope, rules)
	}
}

// parsed parses rules.
func parsed(rules []inspan.Rule) ([]policy.Rule, error) {
	var out []policy.Rule
	for _, r := range rules {
		read, err := policy.Read(r.Action, r.Text, r.Scope)
		if err != nil {
			return nil, config.Error{Err: fmt.Errorf("%s %w", r.Action, err)}
		}
		for _, rule := range read {
			rule.Reason, rule.Written = r.Reason, cmp.Or(r.Original, rule.Written)
			out = append(out, rule)
		}
	}
	return out, nil
}

// Rules lists all rules that apply in a workspace, by scope.
func (s *Set) Rules(root string) ([]inspan.Rule, error) { return s.RulesFor(root, Line{}) }

// RulesFor returns the rules of all scopes for a workspace and a command line.
func (s *Set) RulesFor(root string, l Line) ([]inspan.Rule, error) {
	theirs, err := project(root)
	if err != nil {
		return nil, config.Error{Err: err}
	}
	var out []inspan.Rule
	org, user, allowed := s.Organisation, s.Config, l.Allow
	if l.KeepJobs {
		allowed = append(slices.Clone(allowed), string(tool.Keep)+"(*)")
	}
	for _, scope := range []struct {
		name  string
		rules []config.Rule
	}{
		{"organisation", config.AllRules(org.Allow, org.Ask, org.Deny, org.Rules)},
		{"user", config.AllRules(user.Allow, user.Ask, user.Deny, user.Rules)},
		{"project", config.AllRules(nil, theirs.Ask, theirs.Deny, theirs.Rules)},
		{"command line", config.AllRules(allowed, l.Ask, l.Deny, nil)},
	} {
		for _, r := range scope.rules {
			read, err := policy.Read(r.Action, r.Text, scope.name, l.Given...)
			if err != nil {
				return nil, config.Error{Err: fmt.Errorf("%s: %s %w", scope.name, r.Action, err)}
			}
			for _, own := range read {
				out = append(out, inspan.Rule{Action: r.Action, Text: own.Text, Original: own.Written, Scope: scope.name, Reason: r.Reason})
			}
		}
	}
	var approved []inspan.Rule
	if !l.Unapproved {
		approved, err = s.approved(root)
	}
	if config.ClaudeLimit(config.Claudes(root), func(l foreign.Limit) bool { return l.NoAllow }) != "" {
		approved = nil
		out = slices.DeleteFunc(out, func(r inspan.Rule) bool { return r.Action == tool.Allow && r.Scope != "organisation" })
	}
	return slices.Concat(out, claudeRules(root), s.kept(root, l.Trust), approved), err
}

// kept returns rules that keep tools from changing content that may run because the person trusts it as it is.
func (s *Set) kept(root, sum string) []inspan.Rule {
	review, err := s.Consent.ReviewRunning(root, sum)
	if err != nil {
		return nil // on an error nothing is trusted
	}
	var out []inspan.Rule
	for _, i := range review.Trusted {
		path := filepath.Join(root, filepath.FromSlash(i.Path))
		if strings.ContainsAny(path, `*?[]{}()\`) {
			continue // not usable as a pattern; content is checked again before it runs
		}
		for _, text := range []string{path, path + "/**"} {
			out = append(out, inspan.Rule{
				Action: tool.Deny, Text: "write(" + text + ")", Scope: policy.TrustedContent,
				Reason: "it may run here because you trust it as it is; change it yourself, and look at it with 'inspan trust'",
			})
		}
	}
	return out
}

// Checks compiles the checks of the settings.
func (s *Set) Checks() (guard.Checks, error) {
	checks, err := guard.Compile(s.Config.Checks)
	if err != nil {
		return checks, config.Error{Err: err}
	}
	return checks, nil
}

// Judges returns the judges, in addition to the policy, for a session in root, cheap ones first.
func (s *Set) Judges(ctx context.Context, root string, checks guard.Checks, unattended bool) ([]tool.Judge, error) {
	list := append(s.barring(root), asking(root)...)
	if modes := s.Organisation.Modes; len(modes) > 0 { // everything is denied in the others
		list = append(list, tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
			if slices.Contains(modes, c.Mode) {
				return tool.Verdict{}, nil
			}
			var may []string
			for _, m := range modes {
				may = append(may, string(m))
			}
			reason := fmt.Sprintf("mode %s is not allowed here; use %s", c.Mode, strings.Join(may, ", "))
			return tool.Verdict{Action: tool.Deny, By: "organisation", Reason: reason}, nil
		}))
	}
	if len(s.Config.Checks) > 0 {
		list = append(list, checks)
	}
	reviewer, err := s.Reviewer(ctx)
	if err != nil || reviewer == nil {
		return list, err
	}
	if s.Config.Reviewer.Allow && unattended {
		reviewer.Allows = tool.ModeAuto
	}
	return append(list, reviewer), nil
}

// Reviewer returns the second model of the settings; nil means none.
func (s *Set) Reviewer(ctx context.Context) (*guard.Reviewer, error) {
	r := s.Config.Reviewer
	if r == nil {
		return nil, nil
	}
	model, err := s.Model(ctx, r.Model)
	if err != nil {
		return nil, fmt.Errorf("reviewer: %w", err)
	}
	return &guard.Reviewer{Model: model, MaxCost: r.MaxCost, Timeout: r.Timeout}, nil
}
