// Package app turns the settings into the host that every front end uses. It only wires; it contains no rules
// of the agent.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/install/equipment"
	"github.com/inspan/inspan/internal/install/knowledge"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/tool"
)

// App is inspan with its settings loaded: the parts of an installation, wired together.
type App struct {
	*config.Installation
	Consent    *consent.Store
	Providers  *providers.Set
	Extensions *equipment.Set
	Permission *permission.Set
	Knowledge  *knowledge.Base
	Logins     *connect.Logins
	Hubs       *connect.Hubs
	Rewind     *running.Rewinds
	Running    *running.Table
	Notify     *Notifier
	Canaries   *Canaries // nil means no session tries changes

	sessions *session.Store
	exporter func() (*running.Exporter, error) // for all sessions of the process
}

// Load reads the settings that the environment points to. Self is as in [config.Installation].
func Load(self string) (*App, error) {
	at, err := config.Here()
	if err != nil {
		return nil, err
	}
	return LoadFrom(self, at)
}

// LoadFrom is [Load] with the settings and the state at the given place.
func LoadFrom(self string, at config.Where) (*App, error) {
	set, err := open(self, at)
	if err != nil {
		return nil, err
	}
	a := New(set)
	a.Providers.Advice = providers.Advice{NoModel: "\n" + howToGetOne, Choose: " (choose with --model, see 'inspan models')", Setup: "run 'inspan setup'"}
	if a.Providers.Prices, err = providers.OwnPrices(set); err != nil {
		return nil, err
	}
	return a, a.Providers.Aim("")
}

const howToGetOne = `To get one, do one of these:
  inspan setup                          stores a key, or finds a local server; needs a terminal
  export ANTHROPIC_API_KEY=...          a key from console.anthropic.com, then run again
  export OPENAI_API_KEY=...             a key from platform.openai.com, then run again
  inspan run --model ollama/MODEL ...   a model of a local Ollama, without a key
  inspan config set providers.home.base_url=http://127.0.0.1:8080/v1 model=home/MODEL
                                        a model of a server at an address
To try inspan offline, without any key:
  inspan demo
  inspan run --model script "bash: ls"`

// New wires the parts of an installation.
func New(set *config.Installation) *App {
	a := &App{Installation: set, sessions: &session.Store{Dir: set.SessionsDir()}, Consent: &consent.Store{Dir: set.ConsentDir()}}
	a.Permission = &permission.Set{Installation: set, Consent: a.Consent}
	a.Extensions = &equipment.Set{Installation: set, Consent: a.Consent, Env: a.Permission.Env}
	a.Logins = &connect.Logins{Installation: set, Note: a.Permission.Note}
	a.Providers = &providers.Set{Installation: set, Keys: a.Logins, Token: a.Logins.ProviderToken, Note: a.Permission.Note}
	a.Providers.Spent = func(ctx context.Context) (float64, error) { return cost.Today(ctx, a.Running.Sessions) }
	a.Permission.Shown, a.Permission.Keys, a.Permission.Model = a.Extensions.SkillFolders, a.Providers.KeyVariables, a.Providers.WithinBudget
	a.Hubs = &connect.Hubs{
		Installation: set, Logins: a.Logins, Consent: a.Consent,
		Env: a.Permission.Env, Plugins: a.Extensions.Plugins, Sample: a.Providers.Sample,
	}
	a.Knowledge = &knowledge.Base{
		Installation: set, Consent: a.Consent, Sessions: a.sessions, Places: a.Permission.Places, Redact: a.Permission.Redacted,
	}
	a.Rewind = &running.Rewinds{Installation: set, Sessions: a.sessions, Places: a.Permission.Places}
	a.Notify = &Notifier{Installation: set}
	a.Running = &running.Table{Installation: set, Sessions: a.sessions, Redact: a.Permission.Redacted, Trees: subagent.Copies()}
	a.exporter = sync.OnceValues(func() (*running.Exporter, error) {
		to, err := running.ReceiverOf(os.Getenv)
		return running.NewExporter(a.Running.Sessions, to, inspan.Version), err
	})
	return a
}

// Order is the job of a separate process.
type Order = running.Order

// Board is the list of all sessions with their state.
type Board = running.Board

// Row is a session on a [Board].
type Row = running.Row

// Notifier notifies a person who is away.
type Notifier = running.Notifier

// Front is the front end that a person uses, for a [Notifier].
type Front = running.Front

// Point is a message that a session can be rewound to. The message itself is removed.
type Point = running.Point

// Options are the flags of a command. Zero fields leave the settings as they are.
type Options struct {
	Model        string
	Effort       string // of reasoning, one of llm.Efforts
	Mode         tool.Mode
	Limits       inspan.Limits // a Retry of 0 is that of the settings
	System       string
	AppendSystem string
	Style        string   // output style of new sessions, see [equipment.Set.Styles]
	Allow, Ask   []string // rules
	Deny         []string
	Container    string // image that commands run in
	Trust        string // the consent.Sum of the workspace content that may run
	Unattended   bool
	Record       string                // file to record the model to; it must not exist yet
	Replay       string                // file to play instead of asking a model
	Servers      []mcp.Server          // MCP servers from the client or the command line, by their Source
	Kinds        []skill.Role          // kinds of subagents, before those of the same name in files
	Variables    []permission.Variable // that commands can send, but can't read
	NoServers    bool                  // no MCP servers are used
	Folders      []string              // as in inspan.Agent, links allowed; in addition to those of the settings and the session
	OnlyFolders  bool                  // drops further folders of a resumed session
	AllTools     bool                  // the model gets every tool at once: tool_search hides none
	Sources      []string              // from which a new session answers questions; nil means an ordinary session
	Input        io.Reader             // what the source "-" stands for
	Small        string                // model that reads pieces of Sources; empty means that of the settings
	Programs     *event.Programs       // the session answers by programs, within these limits; nil means by tools
	KeepJobs     bool                  // jobs that bash is asked to keep outlive the session without approval
	Unapproved   bool                  // ignores approvals that a person gave for a project or always, and plugins
	// Foreign are folders where agents of other users work too. The session can reach only its own workspace
	// among them. It reads only the team's memory there, can't change it, and can't see other sessions.
	Foreign []string
	// Elsewhere says that the files and commands of the session are on another machine, reached through Tools.
	// On this machine it has only web tools and the servers in Servers.
	Elsewhere bool
	// Env is the world of the session, with Elsewhere: file tools, and with its Procs also those for commands, work
	// there. The caller closes it. Nil means that of this machine.
	Env *tool.Env
	// Guest says that the session was started by someone other than the owner of the GitHub and GitLab tokens
	// in the environment. Its workflow must not use them.
	Guest bool
	Tools []tool.Tool // of the program that embeds the agent; every request lists them
	Hooks []tool.Hook // of that program; they run after all others
	// Labels and Traceparent are those of a new session that is not a subagent's, as in inspan.Agent.
	Labels      map[string]string
	Traceparent string
	// Program is the workflow that a new session runs. Nil means a model answers. A resumed session stays a
	// workflow or a conversation as it was opened.
	Program *Program
	// Carry moves the workspace between machines. Nil means it stays on this one.
	Carry *running.Carrier

	shown bool            // the agent is only inspected: no warnings about content that waits for trust
	alone bool            // the session is a single call
	order *subagent.Order // of a subagent's session
	role  skill.Role      // of a session that answers from a corpus
}

// Store returns the store in the sessions folder.
func (a *App) Store() *session.Store { return a.sessions }

// Check validates the mode, the labels and the rules. Errors are a [words.Misuse].
func (o Options) Check() error {
	if err := o.Mode.Check(); err != nil {
		return misused("--mode: %w", err)
	}
	if err := (event.Opened{Labels: o.Labels}).Check(); err != nil {
		return misused("--label: %w", err)
	}
	return o.checkRules(nil)
}

// CheckNames checks that the rules name existing tools: built-in ones, those of the options, and installed
// ones. A rule that can't match is a [words.Misuse].
func (o Options) CheckNames(installed []string) error {
	l := o.line()
	return o.checkRules(slices.Concat(equipment.Names(), l.Given, installed))
}

func (o Options) checkRules(known []string) error {
	if err := o.line().Check(func(list tool.Action) string { return "--" + string(list) }, known); err != nil {
		return misused("%w", err)
	}
	return nil
}

// line returns the permissions that the options set.
func (o Options) line() permission.Line {
	l := permission.Line{Allow: o.Allow, Ask: o.Ask, Deny: o.Deny, Trust: o.Trust, KeepJobs: o.KeepJobs, Unapproved: o.Unapproved}
	for _, t := range o.Tools {
		l.Given = append(l.Given, t.Name)
	}
	return l
}

// Host builds the host for a command. Warn receives warnings for the person that stop nothing. Resumed sessions
// keep their mode and limits unless the options, not the settings, set others.
//
// It reads the environment for the model of the options, so don't call it while another host of the app runs;
// see [Hosts].
func (a *App) Host(o Options, warn func(string)) *inspan.Host {
	aim(a, o, warn)
	return hostOf(a, o, warn)
}

// aim reports the warnings of the settings, reads the environment for the model of the options, and separates
// its sessions from those of others.
func aim(a *App, o Options, warn func(string)) {
	if len(o.Foreign) > 0 {
		a.Knowledge.TeamOnly = a.Knowledge.TeamOnly || !a.Config.Memory.Off
		a.Config.Memory.Off = true
		a.Permission.Foreign = apart(o.Foreign)
	}
	a.Extensions.Unplugged = a.Extensions.Unplugged || o.Unapproved
	for _, w := range a.Warnings {
		warn(w)
	}
	if !a.Extensions.Apart {
		if err := a.Providers.Aim(o.Model); err != nil {
			warn(err.Error())
		}
	}
}

// apart resolves links in folders where others also work, and adds the folder for the copies that agents work
// in.
func apart(dirs []string) (out []string) {
	if copies := subagent.Copies(); copies != nil {
		dirs = append(slices.Clone(dirs), copies.Dir)
	}
	for _, dir := range dirs {
		out = append(out, keep.Real(dir))
	}
	return out
}

// hostOf is Host without aim.
func hostOf(a *App, o Options, warn func(string)) *inspan.Host {
	return &inspan.Host{
		Dir: a.sessions.Dir, Store: a.Running.Sessions,
		Agent: func(ctx context.Context, s inspan.SessionSpec) (*inspan.Agent, error) {
			return a.lead(ctx, o, s, warn)
		},
	}
}

// lead builds the agent of a session that works for a person.
func (a *App) lead(ctx context.Context, o Options, at inspan.SessionSpec, warn func(string)) (*inspan.Agent, error) {
	if err := roomToRun(); err != nil {
		return nil, err
	}
	if at.New {
		o.Limits = o.Program.Within(o.Limits)
	}
	o, role, some := o.leadOn(at)
	var err error
	if o.Folders, err = a.folders(o, at, warn); err != nil {
		return nil, err
	}
	b, err := a.build(ctx, o, at, warn)
	if err != nil {
		return nil, err
	}
	forges := equipment.NewForges(at.ID, at.Root, o.Guest)
	if o.Program != nil || at.Workflow != "" {
		o.Tools = slices.Concat(o.Tools, forges.Tools())
	}
	team := a.team(o, at.Root, b.agent.Hooks)
	if !o.Elsewhere && role.Name == "" && !a.Config.Agents.Off && roomy(b.agent.Model.Info().Window) {
		team.Wire(b.agent)
		b.agent.Tools = slices.Concat(b.agent.Tools, b.wrap(a.Extensions.Asking(team, a.Running.Sessions)))
	} else {
		team.Watch(b.agent) // limits per minute apply to it anyway
	}
	if err := o.Program.Wire(b.agent, at, team, forges, a.Notify.Tell, a.Self); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.agent.Tools = some(b.agent.Tools)
	equipment.Furnish(b.agent, a.Installation, b.mode(), func(ctx context.Context) []tool.Tool { return some(b.come(ctx)) }, o.AllTools)
	b.agent.Tools = slices.Concat(b.agent.Tools, some(b.wrap(o.Tools)))
	if err := b.answers(ctx, role, team.WithLimits); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := b.configured(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if !o.shown && !o.alone {
		b.ends = append(b.ends, a.Notify.Follow(b.agent))
	}
	return b.agent, nil
}

// Context returns the content of the next prompt of a session. An empty id means a new session in the folder
// root.
func (a *App) Context(ctx context.Context, root, id string, warn func(string)) (inspan.Context, error) {
	if id == "" {
		agent, err := a.lead(ctx, Options{shown: true}, inspan.SessionSpec{Root: root, New: true}, warn)
		if err != nil {
			return inspan.Context{}, err
		}
		s, err := agent.Open(ctx, event.NewMemory("new"))
		if err != nil {
			return inspan.Context{}, errors.Join(err, agent.Lifecycle.Close())
		}
		defer s.Close()
		return s.Context(), nil
	}
	log, err := a.sessions.Open(ctx, id)
	if err != nil {
		return inspan.Context{}, err
	}
	defer log.Close()
	return inspan.ContextOf(ctx, log)
}

// byHand builds an agent without a model, for tool calls that a person types. It has the tools and the trust of
// a session in the folder root.
func (a *App) byHand(ctx context.Context, o Options, root string, warn func(string)) (*inspan.Agent, error) {
	o.Model, o.AllTools = "script", true
	agent, err := a.lead(ctx, o, inspan.SessionSpec{Root: root, New: true}, warn)
	if err != nil {
		return nil, err
	}
	agent.Workspace.Checkpoint = nil // there is nothing to rewind to
	return agent, nil
}

// Tools lists the tools that a model can call in the folder root: the built-in tools, the user's programs, the
// trusted ones of the workspace, and those of MCP servers. It waits a while for servers that were never
// connected before.
func (a *App) Tools(ctx context.Context, root string, warn func(string)) ([]tool.Tool, error) {
	agent, err := a.byHand(ctx, Options{shown: true}, root, warn)
	if err != nil {
		return nil, err
	}
	return equipment.List(ctx, agent, warn), agent.Lifecycle.Close()
}

// CallTool runs one tool in the folder root, see [equipment.Call]. The mode and the rules of the options apply.
// With Unattended a call that would ask is denied.
func (a *App) CallTool(ctx context.Context, o Options, root, name string, args json.RawMessage, warn func(string)) (string, error) {
	o.alone = true
	agent, err := a.byHand(ctx, o, root, warn)
	if err != nil {
		return "", err
	}
	return equipment.Call(ctx, agent, name, args, warn)
}
