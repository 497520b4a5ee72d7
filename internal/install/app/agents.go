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

// leastTeam is the smallest context window, in tokens, with which a model gets agents. A smaller window is
// needed for the work itself.
const leastTeam = 50_000

func roomy(window int) bool { return window == 0 || window >= leastTeam }

// team returns the team that lets a session delegate work to subagents.
func (a *App) team(o Options, root string, hooks []tool.Hook) *subagent.Team {
	quiet := func(string) {} // the person was warned when the session opened
	return &subagent.Team{
		Sessions: a.Running.Sessions, Hooks: hooks, Trees: subagent.Copies(), MaxDepth: a.Config.Agents.Depth, MaxOpen: a.Config.Agents.Open,
		Redact: a.Permission.Redacted, MinuteCost: a.Config.MinuteCost, MinuteTokens: a.Config.MinuteTokens,
		Roles: func() []skill.Role { return skill.Over(o.Kinds, a.Extensions.Roles(root, quiet)) },
		Make: func(ctx context.Context, ord subagent.Order, at inspan.SessionSpec) (*inspan.Agent, error) {
			return a.child(ctx, o, ord, at, quiet)
		},
	}
}

// child builds the agent of a subagent's session. It is built like any other, with fewer means.
func (a *App) child(ctx context.Context, o Options, ord subagent.Order, at inspan.SessionSpec, warn func(string)) (*inspan.Agent, error) {
	o.Model = a.childModel(ord)
	o.System, o.Mode = "", ""
	o.Limits.Turns, o.Limits.Cost, o.Limits.Tokens, o.Limits.Time = 0, 0, 0, 0
	o.AppendSystem = strings.TrimSpace(ord.Role.Prompt + "\n\n" + o.AppendSystem + "\n\n" +
		equipment.Loaded(a.Extensions.Skills(at.Root), ord.Role.Skills))
	o.Record, o.Program = "", nil // a recording and a workflow belong to one session
	o.order = &ord
	if ord.Limited {
		o.Limits.Cost = 1 // requires that the model has a price; the team sets the real limit
	}
	for _, rule := range ord.Rules {
		o.Allow = append(o.Allow[:len(o.Allow):len(o.Allow)], rule)
	}
	if ord.Copy != nil && ord.Copy.Closed {
		o.Deny = append(o.Deny[:len(o.Deny):len(o.Deny)], "network")
	}
	if ord.Copy != nil && ord.Mode == tool.ModeYolo { // yolo has no sandbox that confines writes to the copy, so known writes to the original are denied
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
	b.corpus(ord.Role, cmp.Or(a.Config.Agents.Small, ord.Route), nil, ord.WithLimits)
	if err := b.configured(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return agent, nil
}

// corpus gives an agent the corpus tools of its role. The model named small reads pieces, within the limits of
// the session. Only is as for [corpus.Set].
func (b *build) corpus(role skill.Role, small string, only []event.Source, held func(llm.Model) llm.Model) equipment.Corpus {
	if b.o.Elsewhere {
		return nil
	}
	return b.Extensions.Corpus(b.agent, role, only, b.Running.Sessions, b.asked(small, held), b.wrap)
}

// asked returns a function that returns the model with a name, for requests within the limits of the session.
func (b *build) asked(name string, held func(llm.Model) llm.Model) func(context.Context) (llm.Model, error) {
	return func(ctx context.Context) (llm.Model, error) {
		if b.o.Replay != "" {
			return nil, errors.New("a replayed run can't ask about pieces")
		}
		m, err := b.Providers.WithinBudget(ctx, name)
		if err != nil {
			return nil, err
		}
		return held(m), nil
	}
}

// leadOn adds the corpus role to a session for a person: its instructions, its mode and only its tools. A
// resumed session keeps the role that it was opened with.
func (o Options) leadOn(at inspan.SessionSpec) (Options, skill.Role, func([]tool.Tool) []tool.Tool) {
	if at.New && len(o.Sources) == 0 || !at.New && !at.Corpus.Asked() {
		return o, skill.Role{}, func(list []tool.Tool) []tool.Tool { return list }
	}
	of := at.Corpus
	if at.New {
		of.Programs = o.Programs
	}
	role := equipment.RoleFor(of)
	o.AppendSystem = strings.TrimSpace(role.Prompt + "\n\n" + o.AppendSystem)
	o.Mode, o.role = cmp.Or(o.Mode, role.Mode), role
	return o, role, equipment.Pick(role)
}

// answers gives the agent of a session that answers questions from a corpus its sources and tools. Missing
// sources or a missing model fail here, before a model costs anything.
func (b *build) answers(ctx context.Context, role skill.Role, held func(llm.Model) llm.Model) (err error) {
	if role.Name == "" {
		return nil
	}
	of := b.at.Corpus
	if b.at.New {
		env := b.env
		env.Clean, of.Small, of.Programs = b.Permission.Clean, b.o.Small, b.o.Programs
		of.Sources, err = equipment.Sources(ctx, env, b.o.Sources, b.o.Input, func(effects []tool.Effect) error {
			return b.Permission.Refused(b.env, b.rules, effects)
		})
		if err != nil {
			return err
		}
	}
	b.agent.Opening.Corpus = of
	small := cmp.Or(of.Small, b.Config.Agents.Small, b.agent.Model.Info().Route())
	if _, err := b.Providers.WithinBudget(ctx, small); err != nil && b.o.Replay == "" {
		return fmt.Errorf("the model that reads pieces: %w", err)
	}
	if of.Programs != nil {
		b.Extensions.ProgramsOver(b.agent, of, b.Running.Sessions, b.asked(small, held), b.asked(b.agent.Model.Info().Route(), held), b.wrap)
		return nil
	}
	set := b.corpus(role, small, of.Sources, held)
	if set == nil || b.at.New {
		return nil
	}
	changed, err := set.Changed(ctx, b.env, b.at.ID, store.Events(ctx, b.Running.Sessions, b.at.ID))
	switch {
	case err != nil:
		b.warn("can't check whether its sources have changed: " + err.Error())
	case len(changed) > 0:
		b.warn("changed since the session read them: " + words.OneLine(strings.Join(changed, ", "), 300))
	}
	return nil
}

// childModel returns the model of a subagent: the requested one, the one of its role, or that of its parent. A
// role file from a repository can't choose the provider that receives its content.
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
