package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// leastTeam is the context window from which a model is told of agents, in tokens:
// one with less has enough to do.
const leastTeam = 50_000

func roomy(window int) bool { return window == 0 || window >= leastTeam }

// team lets a session have others work for it.
func (a *App) team(o Options, root string, hooks []tool.Hook) *subagent.Team {
	quiet := func(string) {} // whoever opened the session has been warned
	return &subagent.Team{
		Sessions: a.Running.Sessions, Hooks: hooks, Trees: subagent.Copies(), MaxDepth: a.Config.Agents.Depth, MaxOpen: a.Config.Agents.Open,
		MinuteCost: a.Config.MinuteCost, MinuteTokens: a.Config.MinuteTokens,
		Roles: func() []skill.Role { return a.Extensions.Roles(root, quiet) },
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
	o.AppendSystem = strings.TrimSpace(ord.Role.Prompt + "\n\n" + o.AppendSystem + "\n\n" +
		equipment.Loaded(a.Extensions.Skills(at.Root), ord.Role.Skills))
	o.Record, o.Program = "", nil // a file has one session, and so has a workflow
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
	if ord.Copy != nil && ord.Mode == tool.ModeYolo { // there is no box that is the copy, so what is known to write beside it is denied
		of := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(ord.Copy.Of)
		o.Deny = append(o.Deny[:len(o.Deny):len(o.Deny)], "write("+of+"/[^.]*)", "write("+of+"/[^.]*/**)")
	}
	b, err := a.build(ctx, o, at, warn)
	if err != nil {
		return nil, err
	}
	agent := b.agent
	if ord.Copy != nil && at.New && a.Config.Agents.Setup != "" {
		if err := a.Extensions.SetUp(ctx, b.env, b.mode(), ord.Copy.Closed); err != nil {
			ord.Copy.Setup = err.Error()
		}
		ord.Copy.Ready = true
	}
	agent.Effort = cmp.Or(ord.Role.Effort, agent.Effort)
	if ord.Team != nil && roomy(agent.Model.Info().Window) {
		ord.Team.Hooks = agent.Hooks
		ord.Team.Wire(agent)
	}
	some := equipment.Pick(ord.Role)
	agent.Tools = some(agent.Tools)
	equipment.Furnish(agent, a.Installation, b.mode(), func(ctx context.Context) []tool.Tool { return some(b.come(ctx)) }, o.AllTools)
	agent.Tools = slices.Concat(agent.Tools, some(b.wrap(equipment.Ordered(o.Tools, ord.Wants))))
	b.corpus(ord.Role, cmp.Or(a.Config.Agents.Small, ord.Route), nil, ord.Held)
	if err := b.configured(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return agent, nil
}

// corpus gives an agent the tools of its kind for a corpus. Pieces are read by the model with the
// name small, which is held to the limits of the session. Only is as for [corpus.Set].
func (b *build) corpus(role skill.Role, small string, only []event.Source, held func(llm.Model) llm.Model) equipment.Corpus {
	if b.o.Elsewhere {
		return nil
	}
	return b.Extensions.Corpus(b.agent, role, only, b.Running.Sessions, func(ctx context.Context) (llm.Model, error) {
		if b.o.Replay != "" {
			return nil, errors.New("pieces can't be asked about in a run that is replayed")
		}
		m, err := b.Providers.Held(ctx, small)
		if err != nil {
			return nil, err
		}
		return held(m), nil
	}, b.wrap)
}

// leadOn is what a session for a person gets that an agent of the kind for a corpus works in: its
// instructions, and no tools but those of the kind. An old session is one as it was begun.
func (o Options) leadOn(at inspan.Place) (Options, skill.Role, func([]tool.Tool) []tool.Tool) {
	if at.New && len(o.Sources) == 0 || !at.New && !at.Corpus.Asked() {
		return o, skill.Role{}, func(list []tool.Tool) []tool.Tool { return list }
	}
	role := equipment.CorpusRole()
	o.AppendSystem = strings.TrimSpace(role.Prompt + "\n\n" + o.AppendSystem)
	o.Mode, o.role = cmp.Or(o.Mode, role.Mode), role
	return o, role, equipment.Pick(role)
}

// answers gives the agent of a session that answers questions from a corpus its sources and its tools.
// What can't be had of them fails here, before a model costs anything.
func (b *build) answers(ctx context.Context, role skill.Role, held func(llm.Model) llm.Model) (err error) {
	if role.Name == "" {
		return nil
	}
	of := b.at.Corpus
	if b.at.New {
		env := b.env
		env.Clean, of.Small = b.Permission.Clean, b.o.Small
		of.Sources, err = equipment.Sources(ctx, env, b.o.Sources, func(effects []tool.Effect) error {
			return b.Permission.Refused(b.env, b.rules, effects)
		})
		if err != nil {
			return err
		}
	}
	b.agent.Opening.Corpus = of
	small := cmp.Or(of.Small, b.Config.Agents.Small, b.agent.Model.Info().Route())
	if _, err := b.Providers.Held(ctx, small); err != nil && b.o.Replay == "" {
		return fmt.Errorf("the model that reads pieces: %w", err)
	}
	set := b.corpus(role, small, of.Sources, held)
	if set == nil || b.at.New {
		return nil
	}
	changed, err := set.Changed(ctx, b.env, b.at.ID, store.Events(ctx, b.Running.Sessions, b.at.ID))
	switch {
	case err != nil:
		b.warn("whether its sources have changed can't be told: " + err.Error())
	case len(changed) > 0:
		b.warn("changed since the session read them: " + words.OneLine(strings.Join(changed, ", "), 300))
	}
	return nil
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
