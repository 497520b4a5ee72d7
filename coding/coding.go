// Package coding is the agent that the command inspan runs, for programs that embed it: its tools, sandbox,
// checkpoints, skills, memory, subagents, permissions and sessions.
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
// [Agent] returns a host whose sessions are on disk: create, open, fork, list, watch and remove them. The
// host's field Agent makes the agent of one session, for a log of your own. An [inspan.Conductor] runs a
// session and asks its questions.
//
// The rules of the organisation (/etc/inspan/config.toml) always apply. Files of the workspace count as for the
// command: instructions, skills and kinds of agents are read; its hooks, tools and MCP servers do not run
// unless a person has trusted them. A person's own set-up of the command only counts with Options.Personal.
//
// Don't use this package for an agent that works without files and commands: an [inspan.Agent] with your own
// tools links little and touches no disk.
//
// # Compatibility
//
// The zero value of a new option changes nothing. Later versions can read the sessions, like those of the
// command. The set of calls that ask in a mode can change, but a rule that denies keeps denying.
package coding

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/mcptool"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// Options configure an agent. Only Sandbox is required; the zero value of every other field works. Don't modify
// slices of Options after making an agent.
type Options struct {
	// Sandbox is the result of [Init], or [NoSandbox]. The zero Sandbox is an error.
	Sandbox Sandbox
	// Root is the workspace, a folder. Empty means the current folder.
	Root string
	// State is the folder for sessions, checkpoints, memory and caches. It is created when needed, and no tool
	// reads or changes it. It can't contain the workspace. Programs may share one. Empty means embedded/PROGRAM
	// in the state folder of the command, which the command's tools can't reach either, or, with Personal, the
	// state folder itself.
	State string
	// Settings is the path of a settings file as described in docs/config.sample.toml. Skills, tools, agents
	// and commands in its folder are used. No tool reads or changes that folder, so it can't contain the
	// workspace. Empty means none.
	Settings string
	// Personal applies what the person running the program has set up for the command: the settings file,
	// variables called INSPAN_..., skills, tools and agents in the home folder and, if State is empty, plugins,
	// memory, approvals and trust. Their rules can allow calls, and their settings can choose the mode. Without
	// Personal, no tool reads or changes the command's folders of settings and state. It can't be combined with
	// Settings.
	Personal bool

	// Model answers, including for subagents, unless they name another. The fallbacks of the settings are not
	// added. If nil, the model of the settings is used, or that of the first provider with a key in the
	// environment.
	Model llm.Model
	// Prompt is added to the system prompt of new sessions and of subagents.
	Prompt string
	// Mode is the permission mode. If empty, a new session gets the mode of the settings, or ask; an existing
	// one keeps its mode.
	Mode tool.Mode
	// Allow, Ask and Deny are rules as in the settings, such as "bash(go test *)". Deny beats ask, and ask
	// beats allow, regardless of where a rule comes from.
	Allow, Ask, Deny []string
	// Limits bounds sessions and their runs. Where a field is zero, the settings decide for a new session. A limit on
	// cost needs a model with a price.
	Limits inspan.Limits
	// Unattended means that no one answers questions: calls that would ask are denied.
	Unattended bool

	// Tools are additional tools, which every request describes to the model. The Env of their calls is the
	// sandbox of the session. Opening a session fails if a name is that of a built-in tool.
	Tools []tool.Tool
	// Hooks run after those of the settings, for subagents too.
	Hooks []tool.Hook
	// Servers are MCP servers. Their programs run in the sandbox. Their tools ask, unless a rule such as
	// "mcp__NAME__*" allows them.
	Servers []mcptool.Server
	// Skills are folders of skills in addition to those of the workspace. They have the rights of a person's
	// own skills.
	Skills []string
	// Container is an image of podman or docker in which commands run, instead of the kernel's sandbox. The
	// program must be linked statically (CGO_ENABLED=0). Empty means none.
	Container string
	// Env is another world than this machine: files of your own, such as a [files.Memory], a container or a machine
	// that you reach. Its Root is the workspace, so Root stays empty. Tools for files work there, with Procs also
	// those for commands. Everything that needs a folder of this machine is left out: checkpoints, subagents,
	// memory, and instructions and skills of the workspace. The caller closes it, after the sessions. Nil means
	// this machine.
	Env *tool.Env

	// Warn receives warnings that stop nothing, such as that this machine can't build the whole sandbox, so
	// that calls ask more often. Any goroutine may call it. If nil, warnings go to the default logger of
	// log/slog.
	Warn func(text string)
}

// Agent returns the host of a coding agent, which is safe for concurrent use. It starts nothing and creates no
// files; sessions do. An error names the invalid option.
//
// All sessions of the host work in the workspace: New with another folder fails, and so does Open of a session
// with another workspace. The host's field Agent makes the agent of one session. It may be called with an
// [inspan.SessionSpec] whose only set field is New. The session that is opened with the agent owns it, and closing
// the session ends what the agent has started.
func Agent(o Options) (*inspan.Host, error) {
	a, root, err := o.open()
	if err != nil {
		return nil, fmt.Errorf("coding agent: %w", err)
	}
	host := a.Host(o.app(), o.warn)
	host.Agent = within(root, host.Agent)
	return host, nil
}

// Env returns the sandbox of the agent's sessions for other parts of the program. Its files keep sensitive
// places closed, its processes run in the workspace box unless a command asks for another box, and its HTTP
// client reaches no addresses of the local network. Where a box can't be built, and with NoSandbox, such
// commands fail with [tool.ErrNoBox]. Work done through an Env is not judged, never asks, and is not logged. A
// tool of the agent should use the Env of its call instead. The caller must close the Env.
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

// within limits a host to one workspace.
func within(root string, agent func(context.Context, inspan.SessionSpec) (*inspan.Agent, error)) func(context.Context,
	inspan.SessionSpec) (*inspan.Agent, error) {
	return func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
		if at.Root == "" {
			at.Root = root
		}
		if at.Root != root {
			return nil, fmt.Errorf("coding agent: it works in %s, and the session in %s: make another agent for that", root, at.Root)
		}
		return agent(ctx, at)
	}
}

// app returns the options of the command for this agent.
func (o Options) app() app.Options {
	out := app.Options{
		Mode: o.Mode, Limits: o.Limits, AppendSystem: o.Prompt,
		Allow: o.Allow, Ask: o.Ask, Deny: o.Deny, Container: o.Container, Unattended: o.Unattended,
		Tools: o.Tools, Hooks: o.Hooks, Env: o.Env, Elsewhere: o.Env != nil,
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

// Workflow is like [Agent], but sessions perform a workflow with these inputs instead of asking a model; the
// agents of the workflow use the model. The workflow must be checked. A session that was opened before
// continues with its original workflow.
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
