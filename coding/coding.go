// Package coding is the agent that the command inspan runs, for programs that embed it: its
// tools, sandbox, checkpoints, skills, memory, subagents, permissions and sessions.
//
//	func main() {
//		sandbox := coding.Init() // first of all
//		host, err := coding.Agent(coding.Options{Sandbox: sandbox, Root: dir, Mode: tool.ModeEdit})
//		if err != nil {
//			log.Fatal(err)
//		}
//		s, err := host.New(ctx, dir)
//		...
//	}
//
// [Agent] returns a host. Its sessions lie on disk: create, open, fork, list, watch and remove
// them. Its field Agent makes the agent of one session, for a log of your own. An
// [inspan.Conductor] runs a session and puts its questions.
//
// The rules of the organisation (/etc/inspan/config.toml) always hold. The files of the
// workspace count as for the command: instructions, skills and kinds of agents are read; hooks,
// tools and MCP servers in it do not run unless a person has trusted them. What a person has
// set up for the command itself counts only with Options.Personal.
//
// Don't use it for an agent that works on something else than files and commands: an [inspan.Agent] with tools
// of your own links little and touches no disk.
//
// # Compatibility
//
// The zero value of a new option changes nothing. Sessions are read by later versions as those of the
// command are. Which calls ask in a mode can change, but a rule that denies keeps denying.
package coding

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// Options say which agent is made. Only Sandbox is needed; the zero value of every other field
// works. Do not change the slices of Options that an agent was made of.
type Options struct {
	// Sandbox is what [Init] returned, or [NoSandbox]. The zero Sandbox is an error.
	Sandbox Sandbox
	// Root is the workspace, a folder. Empty: the current folder.
	Root string
	// State is the folder for sessions, checkpoints, memory and caches; it is made when it is
	// needed, and no tool reads or changes it. It can't hold the workspace. Programs may share
	// one. Empty: embedded/PROGRAM in the state folder of the command, so that the command's
	// tools can't reach it either; with Personal the state folder itself.
	State string
	// Settings is a settings file as docs/config.sample.toml describes it. Skills, tools, agents
	// and commands in its folder are used. No tool reads or changes that folder, so it can't
	// hold the workspace. Empty: none.
	Settings string
	// Personal takes over what the person who runs the program has set up for the command: the
	// settings file, variables called INSPAN_..., skills, tools and agents in the home folder
	// and, if State is empty, plugins, memory, approvals and trust. Their rules can then allow
	// calls, and their settings can choose the mode. Without Personal, no tool reads or changes
	// the command's folders of settings and state. Not with Settings.
	Personal bool

	// Model answers, also for subagents, unless these ask for another one by name. It is used
	// as it is: fallbacks of the settings don't stand behind it. Nil: the model of the
	// settings, or of the first provider with a key in the environment.
	Model llm.Model
	// Prompt is added to the system prompt of new sessions and of subagents.
	Prompt string
	// Mode is the permission mode. Empty: for a new session that of the settings, else ask; an
	// old one keeps its mode.
	Mode tool.Mode
	// Allow, Ask and Deny are rules as in the settings, such as "bash(go test *)". Deny beats
	// ask, ask beats allow, wherever a rule comes from.
	Allow, Ask, Deny []string
	// MaxTurns, MaxCost and MaxTime bound as in [inspan.Agent]: the turns of a run, negative for
	// no limit; the US dollars of a session, which needs a model with a price; the time of a
	// run. Zero: for a new session the settings decide, else 200 turns and no other limit.
	MaxTurns int
	MaxCost  float64
	MaxTime  time.Duration
	// Unattended says that nobody answers questions: calls that would ask are denied.
	Unattended bool

	// Tools are further ones. The model is told of them in every request. A call's Env is the
	// sandbox of its session. Names of built-in tools are taken: to use one is an error when a
	// session is opened.
	Tools []tool.Tool
	// Hooks run behind those of the settings, for subagents too.
	Hooks []tool.Hook
	// Servers are MCP servers. Their programs run in the sandbox. Their tools ask, unless a rule
	// such as "mcp__NAME__*" allows them.
	Servers []mcptool.Server
	// Skills are folders of skills beside those of the workspace. Their rights are those of a
	// person's own skills.
	Skills []string
	// Container is an image of podman or docker that commands run in, instead of the sandbox of
	// the kernel. The program must be linked statically (CGO_ENABLED=0). Empty: none.
	Container string

	// Warn receives what a person should know although it stops nothing, such as a sandbox that
	// this machine can't build in full: calls then ask more. It may be called from any
	// goroutine. Nil: the default logger of log/slog gets it.
	Warn func(text string)
}

// Agent returns the host of a coding agent, which is safe for concurrent use. It starts nothing
// and creates no files; sessions do. An error names the option that is wrong.
//
// All sessions of the host work in the workspace: New with another folder is an error, and so is
// Open of a session of another one. The host's field Agent makes the agent of one session. It
// may be called with the zero [inspan.Place] and New set; opening a session with that agent
// takes it over, and closing the session ends what it has started.
func Agent(o Options) (*inspan.Host, error) {
	a, root, err := o.open()
	if err != nil {
		return nil, fmt.Errorf("coding agent: %w", err)
	}
	host := a.Host(o.app(), o.warn)
	host.Agent = within(root, host.Agent)
	return host, nil
}

// Env returns the sandbox of the agent's sessions for other parts of the program: its files keep
// sensitive places closed, its processes run in the workspace box unless a command asks for
// another one, its HTTP reaches no addresses of this machine's network. Where a box can't be
// built, and with NoSandbox, commands for it fail with [tool.ErrNoBox]. Nothing that is done
// through an Env is judged, asks or is logged. A tool of the agent uses the Env of its call
// instead. The caller closes it.
func Env(o Options) (tool.Env, error) {
	a, root, err := o.open()
	if err != nil {
		return tool.Env{}, fmt.Errorf("coding environment: %w", err)
	}
	rules, err := a.Permission.RulesFor(root, permission.Line{Allow: o.Allow, Ask: o.Ask, Deny: o.Deny})
	if err != nil {
		return tool.Env{}, err
	}
	env, err := a.Permission.EnvOf(root, nil, nil, rules, o.Container, nil)
	if err == nil && env.Walls.Why != "" {
		o.warn("no full sandbox: " + env.Walls.Why)
	}
	return env, err
}

// within has a host work in one workspace.
func within(root string, agent func(context.Context, inspan.Place) (*inspan.Agent, error)) func(context.Context,
	inspan.Place) (*inspan.Agent, error) {
	return func(ctx context.Context, at inspan.Place) (*inspan.Agent, error) {
		if at.Root == "" {
			at.Root = root
		}
		if at.Root != root {
			return nil, fmt.Errorf("coding agent: it works in %s, and the session in %s: make another agent for that", root, at.Root)
		}
		return agent(ctx, at)
	}
}

// app is what a command would say of this.
func (o Options) app() app.Options {
	out := app.Options{
		Mode: o.Mode, MaxTurns: o.MaxTurns, MaxCost: o.MaxCost, MaxTime: o.MaxTime, AppendSystem: o.Prompt,
		Allow: o.Allow, Ask: o.Ask, Deny: o.Deny, Container: o.Container, Unattended: o.Unattended,
		Tools: o.Tools, Hooks: o.Hooks,
	}
	for _, s := range o.Servers {
		out.Servers = append(out.Servers, mcp.Given(s).From(mcp.Client))
	}
	return out
}

func (o Options) warn(text string) {
	if o.Warn == nil {
		slog.Warn("inspan: " + text)
		return
	}
	o.Warn(text)
}

// Workflow is [Agent] for sessions that perform a workflow with these inputs in the place of a model,
// which its agents have. The workflow must be checked. A session of the host that was opened before
// goes on with the workflow that it was begun with.
func Workflow(o Options, w *workflow.Workflow, inputs map[string]any) (*inspan.Host, error) {
	a, root, err := o.open()
	if err != nil {
		return nil, fmt.Errorf("coding workflow: %w", err)
	}
	with := o.app()
	with.Program = &app.Program{Workflow: w, Inputs: inputs}
	host := a.Host(with, o.warn)
	host.Agent = within(root, host.Agent)
	return host, nil
}
