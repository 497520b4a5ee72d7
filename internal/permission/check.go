package permission

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/shell"
	"github.com/inspan/inspan/tool"
)

// CheckRules returns an error for the first rule of settings that can't be read, or is not what
// its examples say. Who loads settings calls it.
func CheckRules(rules []config.Rule) error {
	for _, r := range rules {
		if err := checkRule(r); err != nil {
			return err
		}
	}
	return nil
}

// project reads what the workspace sets, and checks its rules.
func project(root string) (config.Project, error) {
	return projectAt(filepath.Join(root, config.ProjectFile))
}

// CheckProject returns an error for a project's settings file with a rule that can't be read.
func CheckProject(path string) error {
	_, err := projectAt(path)
	return err
}

func projectAt(path string) (config.Project, error) {
	p, err := config.LoadProject(path)
	if err != nil {
		return p, err
	}
	if err := CheckRules(config.AllRules(nil, p.Ask, p.Deny, p.Rules)); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// checkRule returns an error for a rule that can't be read, or is not what its examples say.
func checkRule(r config.Rule) error {
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
