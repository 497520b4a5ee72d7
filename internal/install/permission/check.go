package permission

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/tool"
)

// CheckRules returns an error for each rule of settings that is invalid or contradicts its examples; the error
// begins with the key. Code that loads settings calls it.
func CheckRules(allow, ask, deny []string, more []config.Rule) error {
	var out []error
	for _, r := range config.AllRules(allow, ask, deny, nil) {
		if err := checkRule(r); err != nil {
			out = append(out, fmt.Errorf("%s: %w", r.Action, err))
		}
	}
	for i, r := range more {
		if err := checkRule(r); err != nil {
			out = append(out, fmt.Errorf("rule[%d]: %w", i, err))
		}
	}
	return errors.Join(out...)
}

// project reads a workspace's settings file, and checks its rules.
func project(root string) (config.Project, error) {
	return projectAt(filepath.Join(root, config.ProjectFile))
}

// CheckProject returns an error if a project's settings file or a rule in it is invalid.
func CheckProject(path string) error {
	_, err := projectAt(path)
	return err
}

// Broken returns the errors in a workspace's settings file. With such errors no session can start.
func (s *Set) Broken(root string) error {
	_, err := project(root)
	return err
}

// Settings lists the settings of a workspace, as [config.Installation.Settings] does. For settings of the
// workspace that have no effect it adds the reason.
func (s *Set) Settings(root string) ([]config.Setting, error) {
	list, err := s.Installation.Settings(root)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, config.ProjectFile)
	faults := config.Faults(CheckProject(path))
	review, _ := s.Consent.ReviewRunning(root, "") // on an error nothing is trusted
	for i := range list {
		one := &list[i]
		if one.File != path {
			continue
		}
		if strings.HasPrefix(one.Key, "hook[") && !review.Runs(config.ProjectFile) {
			one.Ignored = "hooks of a folder run once you trust it: inspan trust"
		}
		for _, fault := range faults {
			if fault.About(one.Key) {
				one.Ignored = fault.Err.Error()
			}
		}
	}
	return list, nil
}

func projectAt(path string) (config.Project, error) {
	p, err := config.LoadProject(path)
	return p, config.Faulty(path, err, CheckRules(nil, p.Ask, p.Deny, p.Rules))
}

// checkRule returns an error if a rule is invalid or contradicts its examples.
func checkRule(r config.Rule) error {
	rules, err := policy.Read(r.Action, r.Text, "")
	if err != nil {
		return err
	}
	speak := func(text string) bool {
		return slices.ContainsFunc(rules, func(rule policy.Rule) bool { return speaksOf(rule, text) })
	}
	for _, text := range r.Match {
		if !speak(text) {
			return fmt.Errorf("rule %q does not match its example %q", r.Text, text)
		}
	}
	for _, text := range r.NotMatch {
		if speak(text) {
			return fmt.Errorf("rule %q matches %q, but should not", r.Text, text)
		}
	}
	return nil
}

// speaksOf reports whether a rule matches an example.
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
	// Other rules name a tool, and may match any of its effects.
	for _, e := range []tool.Effect{{Kind: tool.Write, Path: path}, {Kind: tool.Network, Text: example}} {
		if rule.Matches(at, c, []tool.Effect{e}) {
			return true
		}
	}
	return false
}
