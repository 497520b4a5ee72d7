package app

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/hook"
	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/internal/subagent"
	"github.com/inspan/inspan/tool"
)

// Roles lists the kinds of agents that a session in a workspace can spawn: those of
// the workspace, the user's, and those that are built in. Warn is told of files
// that are none.
func (a *App) Roles(root string, warn func(string)) []skill.Role {
	dir, _ := config.Dir()
	list, warnings := skill.Roles([]skill.Folder{
		{Path: filepath.Join(root, ".inspan", "agents"), Source: skill.FromProject},
		{Path: filepath.Join(root, ".agents", "agents"), Source: skill.FromProject},
		{Path: filepath.Join(root, ".claude", "agents"), Source: skill.FromProject},
		{Path: filepath.Join(dir, "agents"), Source: "user"},
		{Path: atHome(".claude", "agents"), Source: "user"},
	})
	for _, w := range warnings {
		warn(w)
	}
	plugins, _ := a.enabledPlugins()
	for _, p := range plugins {
		list = append(list, p.Agents...)
	}
	return list
}

// leastTeam is the context window from which a model is told of agents, in tokens:
// one with less has enough to do.
const leastTeam = 50_000

func roomy(window int) bool { return window == 0 || window >= leastTeam }

// team lets a session have others work for it.
func (a *App) team(o Options, root string, hooks []tool.Hook) *subagent.Team {
	quiet := func(string) {} // whoever opened the session has been warned
	return &subagent.Team{
		Dir: a.Store().Dir, Hooks: hooks, Trees: a.trees(), MaxDepth: a.Config.Agents.Depth, MaxOpen: a.Config.Agents.Open,
		Roles: func() []skill.Role { return a.Roles(root, quiet) },
		Make: func(ctx context.Context, ord subagent.Order, at inspan.Place) (*inspan.Agent, error) {
			return a.child(ctx, o, ord, at, quiet)
		},
	}
}

// child is the agent of a session that works for another. It is made like any, and
// gets less.
func (a *App) child(ctx context.Context, o Options, ord subagent.Order, at inspan.Place, warn func(string)) (*inspan.Agent, error) {
	o.Model = a.childModel(ord)
	o.System, o.Mode, o.MaxTurns, o.MaxCost, o.MaxTokens, o.MaxTime = "", "", 0, 0, 0, 0
	o.AppendSystem = strings.TrimSpace(ord.Role.Prompt + "\n\n" + o.AppendSystem + "\n\n" + loaded(a.Skills(at.Root), ord.Role.Skills))
	o.Record = "" // a file has one session
	o.order = &ord
	if ord.Limited {
		o.MaxCost = 1 // so that the model must have a price; what holds is set by the team
	}
	for _, rule := range ord.Rules {
		o.Allow = append(o.Allow[:len(o.Allow):len(o.Allow)], rule)
	}
	if ord.Copy != nil && ord.Copy.Closed {
		o.Deny = append(o.Deny[:len(o.Deny):len(o.Deny)], "network")
	}
	agent, come, err := a.agent(ctx, o, at, warn)
	if err != nil {
		return nil, err
	}
	agent.Effort = cmp.Or(ord.Role.Effort, agent.Effort)
	if ord.Team != nil && roomy(agent.Model.Info().Window) {
		ord.Team.Hooks = agent.Hooks
		ord.Team.Wire(agent)
	}
	some := chosenTools(ord)
	agent.Tools = some(agent.Tools)
	a.furnish(agent, func(ctx context.Context) []tool.Tool { return some(come(ctx)) }, o)
	return agent, nil
}

// childModel is the model that a child works with: what was asked for, what its
// kind of agent has, or that of its parent. A file that came with a repository
// can't choose to whom its content is sent.
func (a *App) childModel(ord subagent.Order) string {
	name := ord.Model
	if name == "" {
		name = ord.Role.Model
		if ord.Role.Source == skill.FromProject && !slices.Contains([]string{"small", "haiku"}, name) {
			name = ""
		}
	}
	switch name {
	case "small", "haiku":
		return cmp.Or(a.Config.Agents.Small, ord.Route)
	case "", "inherit", "sonnet", "opus":
		return ord.Route
	}
	return name
}

// chosenTools picks those of a list that a kind of agent gets.
func chosenTools(ord subagent.Order) func([]tool.Tool) []tool.Tool {
	without, kind := own(ord.Role.Without), own(slices.DeleteFunc(slices.Clone(ord.Role.Tools), patterned))
	return func(list []tool.Tool) []tool.Tool {
		return slices.DeleteFunc(slices.Clone(list), func(t tool.Tool) bool {
			return slices.Contains(without, t.Name) || ord.Role.Tools != nil && !slices.Contains(kind, t.Name)
		})
	}
}

// patterned reports whether a file wants a tool for some uses only, as
// "Bash(git log:*)". The whole tool would be more than that, so it is none.
func patterned(written string) bool { return strings.Contains(written, "(") }

// own are our names of tools as Claude Code's or ours are written in files.
func own(written []string) []string {
	var out []string
	for _, name := range written {
		name, _, _ = strings.Cut(name, "(")
		out = append(out, hook.OwnTools(strings.TrimSpace(name))...)
	}
	return out
}
