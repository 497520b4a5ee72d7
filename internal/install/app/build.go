package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/install/knowledge"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// build is an agent under construction.
type build struct {
	*App
	o    Options
	at   inspan.SessionSpec
	warn func(string)

	model  llm.Model
	rules  []inspan.Rule
	env    tool.Env
	wrap   func([]tool.Tool) []tool.Tool // checks tool results
	prompt knowledge.Prompt
	// knowledge is that of the application plus the changes that the session tries
	knowledge *knowledge.Base
	servers   []mcp.Server
	visit     equipment.Session                 // that dynamic tools are listed for
	come      func(context.Context) []tool.Tool // lists the dynamic tools
	agent     *inspan.Agent
	letGo     func() error   // ends everything that runs in env
	ends      []func() error // closes resources, in reverse order of opening
}

// build builds the agent of a session with all its tools except the dynamic ones.
func (a *App) build(ctx context.Context, o Options, at inspan.SessionSpec, warn func(string)) (*build, error) {
	b := &build{App: a, o: o, at: at, warn: warn, agent: &inspan.Agent{
		Mode: o.Mode, Limits: o.Limits, Effort: cmp.Or(o.Effort, a.Config.Effort), Workspace: inspan.Workspace{Folders: o.Folders}, Unattended: o.Unattended,
		Approvals: inspan.Approvals{Timeout: a.Config.Timeout}, Opening: inspan.Opening{Levers: a.Config.Levers.Stated()},
	}}
	b.agent.Limits.Retry = cmp.Or(o.Limits.Retry, a.Config.RetryFor)
	if at.Parent == "" {
		b.agent.Opening.Labels, b.agent.Opening.Traceparent = o.Labels, o.Traceparent
	}
	b.export()
	b.agent.Lifecycle.Close = b.close
	for _, step := range []func(context.Context) error{b.arm, b.choose, b.permit, b.judge, b.trust, b.equip, b.rulesMatch, b.brief} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

// export sends the events of the session to an OpenTelemetry receiver, if one is configured.
func (b *build) export() {
	exporter, err := b.exporter()
	switch {
	case err != nil && b.at.Parent == "":
		b.warn(err.Error())
	case exporter != nil:
		b.agent.Lifecycle.Stored = func(_ *inspan.Session, e event.Event) { exporter.OnEvent(e) }
		b.ends = append(b.ends, func() error { // a failed export doesn't fail the session
			if err := exporter.Over(b.at.ID); err != nil {
				b.warn(err.Error())
			}
			return nil
		})
	}
}

// close closes all resources of the build. It first cancels the preparation of sandboxes, which it would
// otherwise wait for.
func (b *build) close() error {
	if procs, ok := b.env.Procs.(ability.Readier); ok {
		procs.Ready()
	}
	var errs []error
	for _, end := range slices.Backward(b.ends) {
		errs = append(errs, end())
	}
	b.ends = nil
	return errors.Join(errs...)
}

// choose picks the model of the session.
func (b *build) choose(ctx context.Context) (err error) {
	b.model, err = b.Providers.Choose(ctx, b.o.Replay, b.o.Model, b.at.Route, b.warn)
	if err != nil {
		return err
	}
	bounded := b.at.Limits.Cost > 0 || b.at.New && b.Config.MaxCost > 0
	if b.o.Limits.Cost > 0 || b.o.Limits.Cost == 0 && bounded || b.Config.DayCost > 0 ||
		b.Config.MinuteCost != nil && *b.Config.MinuteCost > 0 {
		return b.Providers.Priced(b.model)
	}
	return nil
}

// permit sets the permissions of the session, and creates the environment for its tools.
func (b *build) permit(context.Context) (err error) {
	if b.rules, err = b.Permission.RulesFor(b.at.Root, b.o.line()); err != nil {
		return err
	}
	if (b.o.Unattended || b.o.Limits.RetryLong) && !b.o.shown {
		if err := b.Permission.Unread(b.at.Root); err != nil {
			return err
		}
	}
	if !b.o.shown && b.at.Parent == "" {
		if err := b.Permission.Barred(b.at.Root, b.mode()); err != nil {
			return err
		}
	}
	b.agent.Rules = b.rules
	// a subagent uses the placeholders of its parent
	if b.agent.Secrets.Key, err = b.Permission.PlaceholderKey(); err != nil && b.at.Parent == "" {
		b.warn("placeholders for secrets will be lost after this run: " + err.Error())
	}
	if b.o.Env != nil {
		b.env, b.letGo = *b.o.Env, func() error { return nil }
		if b.env.Blobs == nil {
			b.env.Blobs = running.Readable(b.at.Blobs)
		}
		b.agent.Env = b.env
		b.Permission.Wire(b.agent, b.env.Root)
		b.withhold()
		return nil
	}
	out, err := permission.NewOutlet(b.o.Variables, b.rules)
	if err != nil {
		return err
	}
	b.ends = append(b.ends, out.Close)
	if b.env, err = b.Permission.EnvOf(b.at.Root, b.o.Folders, running.Readable(b.at.Blobs), b.rules, b.o.Container, out); err != nil {
		return err
	}
	b.letGo = b.env.Close
	b.ends = append(b.ends, func() error { return b.letGo() })
	b.env.Throwaway = b.o.order != nil && b.o.order.Role.Throwaway
	b.agent.Env = b.env
	b.Permission.Wire(b.agent, b.env.Root)
	b.withhold()
	return nil
}

// withhold keeps header values of the client's MCP servers and values of variables out of the session, since a
// server may echo them. They get no placeholder: the session may use them, but not read them.
func (b *build) withhold() {
	values := map[string]string{}
	for _, v := range b.o.Variables {
		values["the variable "+v.Name] = v.Value
	}
	for _, s := range b.o.Servers {
		for name, value := range s.Headers {
			values["the header "+name+" of the MCP server "+s.Name] = value[strings.LastIndex(value, " ")+1:]
		}
	}
	others := b.agent.Secrets.Hidden // nil means no others
	switch {
	case len(values) == 0:
	case others == nil:
		b.agent.Secrets.Hidden = func() map[string]string { return values }
	default:
		b.agent.Secrets.Hidden = func() map[string]string {
			all := others()
			maps.Copy(all, values)
			return all
		}
	}
}

// judge adds the judges, and wraps the model with the limits and checks of the settings.
func (b *build) judge(ctx context.Context) error {
	checks, err := b.Permission.Checks()
	if err != nil {
		return err
	}
	b.wrap = checks.WrapAll
	if b.agent.Judges, err = b.Permission.Judges(ctx, b.at.Root, checks, b.o.Unattended); err != nil {
		return err
	}
	b.model = b.Providers.Scheduled(b.model, b.agent.Opening.Levers.Effort.Active(b.o.Unattended))
	model, end, err := providers.Recorded(checks.Model(b.Providers.Budgeted(b.model)), b.o.Record)
	if err != nil {
		return err
	}
	b.agent.Model, b.ends = model, append(b.ends, end)
	return nil
}

// trust adds the hooks of the workspace and of plugins, as far as the person trusts them.
func (b *build) trust(ctx context.Context) error {
	if b.o.Env != nil { // no folder of this machine has programs for it
		b.agent.Hooks = b.o.Hooks
		return nil
	}
	b.cautions()
	if !b.o.shown {
		if err := b.Permission.Inert(b.env.Root, b.o.Trust, b.warn); err != nil {
			return err
		}
	}
	hooks, end, err := b.Extensions.Hooks(b.env.Root, b.o.Trust, b.env, b.warn)
	if err != nil {
		return err
	}
	b.agent.Hooks = slices.Concat(hooks, b.o.Hooks)
	b.ends = append(b.ends, func() error { end(); return nil })
	if b.o.order != nil {
		guard, end, err := b.Extensions.KindHooks(b.o.order.Role, b.env, b.warn)
		if err != nil {
			return err
		}
		b.agent.Hooks = append(b.agent.Hooks, guard...)
		b.ends = append(b.ends, func() error { end(); return nil })
	}
	if b.o.Elsewhere {
		return nil // checkpoints cover only files on this machine
	}
	if b.agent.Workspace.Checkpoint, err = b.Rewind.Checkpointing(ctx, b.env.Root, b.warn); err == nil && b.o.Carry != nil {
		b.o.Carry.Wire(b.agent, b.at, b.o.order == nil)
	}
	return err
}

// mode returns the initial mode of the session.
func (b *build) mode() tool.Mode {
	if ord := b.o.order; ord != nil {
		return cmp.Or(b.at.Mode, ord.Mode)
	}
	return cmp.Or(b.o.Mode, b.at.Mode, b.Config.Mode)
}

// cautions warns about settings that don't take effect and about a missing sandbox.
func (b *build) cautions() {
	if b.at.Parent == "" {
		for _, p := range append(b.Extensions.Problems(), b.Permission.Unheeded(b.env.Root)...) {
			b.warn(p)
		}
	}
	if b.env.Walls.Why != "" && b.mode() != tool.ModeYolo { // yolo asks nothing and has no sandbox
		b.warn("no full sandbox: " + b.env.Walls.Why + "; more commands will ask, and hooks run without it, see 'inspan doctor sandbox'")
	}
	if b.at.Parent == "" && text.Inside(b.env.Root, keep.Home()) {
		b.warn("the workspace " + b.env.Root + " contains your home folder, so it includes all your files and has no checkpoints; " +
			"start inspan in the folder of a project")
	}
}

// equip gives the agent its tools.
func (b *build) equip(ctx context.Context) error {
	root, noKeep := b.env.Root, b.Running.NoKeep(b.o.Container)
	skills := b.Extensions.Skills(root)
	if b.at.New && !b.o.Elsewhere { // brief lists the skills
		wait := skills.Prefetch()
		b.ends = append(b.ends, func() error { wait(); return nil })
	}
	shell := b.Running.NewShell(b.at.ID, noKeep, b.Permission.Explained)
	shell.NoJobs = b.o.alone
	b.letGo = func() error { return b.Running.Drop(b.at.ID, shell, b.env.Close) }
	b.agent.Jobs.Keep = noKeep == "" && b.Config.Keeps(b.mode())
	b.agent.Jobs.KeepNone = noKeep != "" || b.o.Unattended && !running.MayKeep(b.rules)
	b.agent.Lifecycle.Shutdown = func(normal bool, mode tool.Mode) inspan.Leftovers {
		left := b.Running.Leave(b.at.ID, shell, normal, mode)
		if b.at.Parent == "" && !b.o.Elsewhere {
			for _, dir := range append([]string{root}, b.agent.Workspace.Folders...) {
				written, err := b.Knowledge.Wrote(context.WithoutCancel(ctx), b.at.ID, dir)
				if err != nil {
					b.warn(err.Error())
				}
				left.Instructions = append(left.Instructions, written...)
			}
			copies, err := b.Running.Unmerged(context.WithoutCancel(ctx), b.at.ID)
			if err != nil {
				b.warn(err.Error())
			}
			for _, c := range copies {
				left.Unmerged = append(left.Unmerged, c.Agent)
			}
			b.fares(ctx)
		}
		return left
	}

	needs, style := b.Providers.Needs(b.model), ""
	if b.at.New && b.at.Parent == "" { // subagents answer their parent
		var err error
		if style, err = b.Extensions.Style(cmp.Or(b.o.Style, b.Config.Style), b.warn); err != nil {
			b.warn(err.Error())
		}
	}
	b.prompt = knowledge.Prompt{
		Replace: b.o.System, Append: strings.TrimSpace(needs.Prompt + "\n\n" + knowledge.Beside(b.o.Folders) + "\n\n" + b.o.AppendSystem),
		Style: style, Root: b.at.Root,
		Skills: skills, Memory: b.Knowledge.SessionMemory(ctx, b.at.ID, root),
	}
	list, end := equipment.Tools(b.Config, shell, needs.Edit, b.env)
	b.ends = append(b.ends, func() error { end(); return nil })
	if b.o.Elsewhere {
		list, b.prompt.Elsewhere = equipment.OffMachine(list, b.o.Env), true
	} else {
		list = b.Knowledge.Remembering(b.prompt.Memory, equipment.Skilled(b.Config, b.prompt.Skills, list))
	}
	if b.at.Parent == "" && b.at.Workflow == "" && !b.o.Elsewhere && !b.o.alone {
		list = append(list, b.Extensions.Maker(b.env, list, b.scripts())...)
		b.agent.Dynamic.Proposed = b.Extensions.Written(b.at.Blobs, b.wrap, b.scripts())
	}
	b.agent.Tools = b.wrap(list)
	b.agent.Hooks = append(b.agent.Hooks, b.Extensions.Grants(b.prompt.Skills, b.Permission.Places(root))...)
	b.visit = b.visiting()
	b.come = b.Extensions.Tools(b.visit)
	return nil
}

// visiting connects to the MCP servers, and returns the session that dynamic tools are listed for.
func (b *build) visiting() equipment.Session {
	var hub *connect.Hub
	if root := b.env.Root; !b.o.NoServers {
		servers := b.o.Servers
		if b.o.Env == nil {
			servers = b.Hubs.Servers(root, b.o.Trust, servers, b.warn)
		}
		if b.o.Elsewhere {
			servers = slices.DeleteFunc(servers, func(s mcp.Server) bool { return s.Source != mcp.Client })
		}
		b.servers = servers
		hub = b.Hubs.Open(root, servers, b.env, b.warn)
	}
	b.ends = append(b.ends, func() error { hub.Close(); return nil })
	if b.at.Parent == "" { // a subagent uses the servers of its parent
		b.agent.Dynamic.Servers = hub.Served()
	}
	return equipment.Session{
		Root: b.env.Root, Sum: b.o.Trust, Env: b.env, Own: b.agent.Tools, Servers: hub.Own(), Offered: hub.Offered, Wrap: b.wrap, Warn: b.warn,
		Elsewhere: b.o.Elsewhere, Scripts: b.scripts(),
	}
}

// scripts reports whether agents can save scripts as tools.
func (b *build) scripts() bool { return b.Scripts(b.agent.Opening.Levers, b.o.Unattended) }

// brief builds the system prompt, and sets the source of instructions for files that the agent touches later.
func (b *build) brief(ctx context.Context) error {
	if !b.o.Elsewhere {
		b.agent.Dynamic.Instructions = b.knowledge.Instructions(b.env.Root)
	}
	if !b.at.New {
		return nil
	}
	// The settings fill in what the command left empty.
	c, l := b.Config, &b.agent.Limits
	b.agent.Mode = cmp.Or(b.agent.Mode, c.Mode)
	l.Cost, l.Tokens, l.Time = cmp.Or(l.Cost, c.MaxCost), cmp.Or(l.Tokens, c.MaxTokens), cmp.Or(l.Time, c.MaxTime)
	if l.Turns == 0 && c.MaxTurns != nil {
		l.Turns = cmp.Or(*c.MaxTurns, -1)
	}
	b.prompt.Mode, b.prompt.Limits = b.agent.Mode, b.agent.Limits
	if ord := b.o.order; ord != nil { // limits of a subagent are set when it is created
		b.prompt.Mode, b.prompt.Limits = ord.Mode, ord.Limits
	}
	if !b.gets("skill") {
		b.prompt.Skills = nil
	}
	b.prompt.Remembers = b.gets("memory") && !b.o.Elsewhere && !b.o.alone
	b.agent.System = b.knowledge.System(ctx, b.agent, b.prompt, b.warn)
	return nil
}

// gets reports whether the agent will have the named tool, if it exists.
func (b *build) gets(name string) bool {
	role, named := b.o.role, []string(nil)
	if ord := b.o.order; ord != nil {
		role, named = ord.Role, ord.Tools
	}
	return len(equipment.Pick(role)([]tool.Tool{{Name: name}})) > 0 && (named == nil || slices.Contains(named, name))
}
