// Package app turns the settings into the host that every front end uses. It is
// straight-line code and holds no rule of the agent.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/guard"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/lsp"
	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/oauth"
	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/profile"
	"github.com/inspan/inspan/internal/prompt"
	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/internal/subagent"
	"github.com/inspan/inspan/internal/tools"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/cloud"
	"github.com/inspan/inspan/llm/limit"
	"github.com/inspan/inspan/llm/replay"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/tool"
)

// App is inspan with its settings read.
type App struct {
	Config     config.Config
	ConfigPath string // the settings file, whether it exists or not
	StateDir   string // everything inspan keeps; sessions lie below it
	Self       string // the program that keeps processes, see sandbox.Options; empty: there are no walls

	organisation config.Organisation
	set          []config.Setting           // by the environment
	warnings     []string                   // about the environment
	providers    map[string]config.Provider // as the file has them
	health       *router.Health             // of the models, for all sessions of this process
	google       *cloud.Google

	shells  sync.Map // of open sessions, by id
	printed sync.Map // keys by the provider whose key_command printed them

	pool sandbox.Pool
	hubs hubs // of MCP servers that are started

	pluginsOnce    sync.Once
	plugins        []enabled
	pluginProblems []string

	keychainOnce sync.Once
	keychain     *oauth.Keychain

	devicesOnce sync.Once
	devices     []profile.Device
}

// ErrConfig says that settings, a model or a key are missing or wrong.
var ErrConfig = errors.New("configuration")

// configError is an error with ErrConfig in it and not in its text.
type configError struct{ error }

func (e configError) Unwrap() error     { return e.error }
func (e configError) Is(err error) bool { return err == ErrConfig }

// Load reads the settings. Self is as in [App].
func Load(self string) (*App, error) {
	path, err := ConfigPath()
	if err != nil {
		return nil, err
	}
	state, err := config.StateDir()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(path)
	if err != nil {
		return nil, configError{err}
	}
	set, warnings, err := c.Over(os.Environ())
	if err != nil {
		return nil, configError{err}
	}
	org, err := config.LoadOrganisation(config.OrganisationFile)
	if err != nil {
		return nil, configError{err}
	}
	// What is judged has no links, and what keeps it apart must not have any either.
	path, state = real(path), real(state)
	a := &App{
		Config: c, ConfigPath: path, StateDir: state, Self: self, organisation: org, health: &router.Health{}, google: &cloud.Google{},
		set: set, warnings: warnings, providers: c.Providers,
	}
	return a, a.aim("")
}

// Options is what a command says beyond the settings. Zero fields leave the
// settings as they are.
type Options struct {
	Model        string
	Mode         string
	MaxTurns     int // as inspan.Agent has it
	MaxCost      float64
	MaxTokens    int64
	MaxTime      time.Duration
	System       string
	AppendSystem string
	Allow, Ask   []string // rules
	Deny         []string
	Container    string // image that commands run in
	Trust        string // what consent.Sum says of the workspace content that may run
	Unattended   bool
	Patient      bool          // as inspan.Agent has it
	RetryFor     time.Duration // as inspan.Agent has it
	Record       string        // file to record the model to; it must not be there yet
	Replay       string        // file to play instead of asking a model
	Servers      []mcp.Server  // MCP servers that the client brings, with Source mcp.Client
	NoServers    bool          // no MCP servers are used
	Folders      []string      // as inspan.Agent has it
	AllTools     bool          // whoever calls is told of every tool: none is left to tool_search
	KeepJobs     bool          // whatever bash is told to keep goes on after the session, unasked

	order *subagent.Order // of a session that works for another
}

// Store is where the sessions lie.
func (a *App) Store() *session.Store {
	return &session.Store{Dir: filepath.Join(a.StateDir, "sessions")}
}

// Host builds the host for a command. Warn receives what a person should know
// although it stops nothing. Resumed sessions keep the mode and the limits
// they have unless the options, not the settings, name others.
func (a *App) Host(o Options, warn func(string)) *inspan.Host {
	for _, w := range a.warnings {
		warn(w)
	}
	if err := a.aim(o.Model); err != nil {
		warn(err.Error())
	}
	return &inspan.Host{
		Dir: a.Store().Dir,
		Agent: func(ctx context.Context, s inspan.Place) (*inspan.Agent, error) {
			return a.lead(ctx, o, s, warn)
		},
	}
}

// lead is the agent of a session that works for a person.
func (a *App) lead(ctx context.Context, o Options, at inspan.Place, warn func(string)) (*inspan.Agent, error) {
	if err := roomToRun(); err != nil {
		return nil, err
	}
	agent, come, err := a.agent(ctx, o, at, warn)
	if err != nil {
		return nil, err
	}
	if !a.Config.Agents.Off && roomy(agent.Model.Info().Window) {
		a.team(o, at.Root, agent.Hooks).Wire(agent)
	}
	a.furnish(agent, come, o)
	return agent, nil
}

// Context tells what the next prompt of a session is made of; an empty id means
// a new one in the folder root.
func (a *App) Context(ctx context.Context, root, id string, warn func(string)) (inspan.Context, error) {
	if id == "" {
		agent, err := a.lead(ctx, Options{}, inspan.Place{Root: root, New: true}, warn)
		if err != nil {
			return inspan.Context{}, err
		}
		s, err := agent.Open(ctx, event.NewMemory("new"))
		if err != nil {
			return inspan.Context{}, errors.Join(err, agent.Close())
		}
		defer s.Close()
		return s.Context(), nil
	}
	log, err := a.Store().Open(ctx, id)
	if err != nil {
		return inspan.Context{}, err
	}
	defer log.Close()
	return inspan.ContextOf(ctx, log)
}

// agent makes the agent of a session, with all its tools but those that come and go, and
// what lists these.
func (a *App) agent(
	ctx context.Context, o Options, at inspan.Place, warn func(string),
) (agent *inspan.Agent, come func(context.Context) []tool.Tool, err error) {
	chosen, err := a.chosen(ctx, o, at, warn)
	if err != nil {
		return nil, nil, err
	}
	rules, err := a.rules(at.Root, o)
	if err != nil {
		return nil, nil, err
	}
	key, err := a.placeholderKey()
	if err != nil && at.Parent == "" { // a child has the placeholders of its parent
		warn("what stands for a secret now stands for nothing after this run: " + err.Error())
	}
	env, err := a.env(at.Root, at.Blobs, rules, o.Container)
	if err != nil {
		return nil, nil, err
	}
	env.Throwaway = o.order != nil && o.order.Role.Throwaway
	if o.MaxCost > 0 || at.Limits.Cost > 0 || at.New && a.Config.MaxCost > 0 || a.Config.DayCost > 0 {
		if err := a.priced(chosen); err != nil {
			return nil, nil, err
		}
	}
	checks, err := guard.Compile(a.Config.Checks)
	if err != nil {
		return nil, nil, configError{err}
	}
	judges, err := a.judges(ctx, checks, o.Unattended)
	if err != nil {
		return nil, nil, err
	}
	levers := a.Config.Levers.Stated()
	if a.Config.Effort == "" && levers.Effort.Active(o.Unattended) {
		chosen = profile.Scheduled(chosen)
	}
	model, closeModel, err := a.recorded(checks.Model(a.budgeted(chosen)), o.Record)
	if err != nil {
		return nil, nil, err
	}
	if _, problems := a.enabledPlugins(); at.Parent == "" {
		for _, p := range problems {
			warn(p)
		}
	}
	if env.Walls.Why != "" {
		warn("no full sandbox: " + env.Walls.Why + "; more will ask, see 'inspan doctor sandbox'")
	}
	if at.Parent == "" && tool.Inside(env.Root, keep.Home()) {
		warn("the workspace " + env.Root + " holds your home folder: all your files are its content, and there are no checkpoints; start inspan in the folder of a project")
	}
	if err := a.inert(env.Root, o.Trust, warn); err != nil {
		return nil, nil, err
	}
	hooks, endHooks, err := a.hooks(env.Root, o.Trust, env, warn)
	if err != nil {
		return nil, nil, err
	}
	checkpoint, err := a.checkpointing(ctx, env.Root, warn)
	if err != nil {
		return nil, nil, err
	}
	shell := &tools.Shell{Home: keep.Home(), Protected: a.protected(), NoKeep: a.noKeep(o), Withheld: a.explained}
	a.shells.Store(at.ID, shell)
	needs := profile.For(chosen.Info().Route(), a.Config.Profiles)
	servers := &lsp.Manager{Env: env}
	library, memories := a.Skills(env.Root), a.sessionMemory(ctx, at.ID, env.Root)
	box := wrapped(a.remembering(memories, a.skilled(library, a.toolbox(shell, needs.Edit, servers))), checks)
	if !a.Config.Skills.Off {
		hooks = append(hooks, &skillGrants{library: library, places: a.places(env.Root)})
	}
	var hub *Hub
	if !o.NoServers {
		hub = a.Hub(env.Root, a.Servers(env.Root, o.Trust, o.Servers, warn), env)
	}
	come = a.extra(&extra{
		root: env.Root, sum: o.Trust, env: env, own: box, hub: hub,
		wrap: func(list []tool.Tool) []tool.Tool { return wrapped(list, checks) }, warn: warn,
	})
	agent = &inspan.Agent{
		Model: model, Tools: box, Env: env, Folders: o.Folders,
		KeepJobs: a.Config.Keeps(cmp.Or(o.Mode, at.Mode, a.Config.Mode)),
		NoKeep:   a.noKeep(o) != "" || o.Unattended && !mayKeep(rules),
		Leave:    func(normal bool, mode string) inspan.Leftovers { return a.leave(at.ID, shell, normal, mode) },
		Close: func() error {
			endHooks()
			if hub != nil {
				hub.Close()
			}
			servers.Close()
			a.shells.CompareAndDelete(at.ID, shell)
			shell.Close()
			if shell.Pass(a.Shell(parentOf(at.ID)), env.Close) {
				return closeModel()
			}
			return errors.Join(env.Close(), closeModel())
		},
		Mode: o.Mode, MaxTurns: o.MaxTurns, MaxCost: o.MaxCost, MaxTokens: o.MaxTokens, MaxTime: o.MaxTime, Effort: a.Config.Effort,
		Rules: rules, Judges: judges, Hooks: hooks, Private: a.private(), Shared: a.shared(), Public: a.public(env.Root), Secrets: a.secrets, PlaceholderKey: key, AskTimeout: a.Config.Timeout,

		Remember: func(ctx context.Context, scope event.Scope, rules []string) error {
			return a.Remember(ctx, env.Root, scope, rules)
		},
		Instructions: func(path string) []event.Added {
			return prompt.Nested(prompt.Below(env.Root, path, a.reader(env.Root)))
		},
		Checkpoint: checkpoint, Levers: levers,
		Unattended: o.Unattended, Patient: o.Patient, RetryFor: cmp.Or(o.RetryFor, a.Config.RetryFor),
	}
	if at.Parent == "" { // a child has those of its parent
		agent.Servers = hub.served()
	}
	if at.New {
		a.settings(agent)
		memory, claimed := a.remembered(memories, warn)
		blocks, warnings := prompt.Blocks(prompt.Input{
			Replace: o.System, Append: strings.TrimSpace(needs.Prompt + "\n\n" + o.beside() + "\n\n" + o.AppendSystem),
			Files: prompt.Find(at.Root, a.reader(env.Root)), Facts: a.facts(ctx, agent, o.order),
			Skills: a.skillList(library, warn), Memory: memory, Claimed: claimed,
		})
		agent.System = blocks
		for _, w := range warnings {
			warn(w)
		}
	}
	return agent, come, nil
}

// wrapped holds the results of tools to the checks.
func wrapped(list []tool.Tool, checks guard.Checks) []tool.Tool {
	out := make([]tool.Tool, len(list))
	for i, t := range list {
		out[i] = checks.Wrap(t)
	}
	return out
}

// chosen is the model of a session, or the cassette that stands for it.
func (a *App) chosen(ctx context.Context, o Options, at inspan.Place, warn func(string)) (llm.Model, error) {
	if o.Replay != "" {
		f, err := os.Open(o.Replay)
		if err != nil {
			return nil, configError{err}
		}
		defer f.Close()
		player, err := replay.Open(f)
		if err != nil {
			return nil, configError{fmt.Errorf("%s: %w", o.Replay, err)}
		}
		return player, nil
	}
	choice, err := a.Model(ctx, o.Model, at.Route)
	if err == nil && choice.Why != "" {
		warn(choice.Why)
	}
	return choice.Model, err
}

// budgeted holds a model to what may be spent in a day, unless it costs nothing.
func (a *App) budgeted(m llm.Model) llm.Model {
	prices := m.Info().Prices
	if _, cassette := m.(*replay.Player); cassette || a.Config.DayCost == 0 || len(prices) == 1 && prices[0] == (llm.Price{}) {
		return m
	}
	budget := &limit.Budget{Path: filepath.Join(a.StateDir, "limits", "day.spent"), PerDay: a.Config.DayCost, Seed: a.spentToday}
	return budget.Model(m)
}

// recorded writes down what a model answers, if there is a file for it. Whoever
// gets it closes it.
func (a *App) recorded(m llm.Model, path string) (llm.Model, func() error, error) {
	if path == "" {
		return m, func() error { return nil }, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, configError{fmt.Errorf("record: %s is there already; name a new file", path)}
	}
	if err != nil {
		return nil, nil, configError{fmt.Errorf("record: %w", err)}
	}
	return &replay.Recorder{Model: m, To: f}, f.Close, nil
}

// priced returns an error if what a model costs can't be known.
func (a *App) priced(m llm.Model) error {
	if r, ok := m.(*router.Model); ok {
		if r.Judge != nil {
			if err := a.priced(r.Judge.Model); err != nil {
				return err
			}
		}
		for _, route := range r.Routes {
			if err := a.priced(route.Model); err != nil {
				return err
			}
		}
		return nil
	}
	if info := m.Info(); len(info.Prices) == 0 {
		return configError{fmt.Errorf("a cost limit needs the price of %s; set providers.%s.models.%q.price in %s",
			info.Route(), info.Provider, info.Model, a.ConfigPath)}
	}
	return nil
}

// settings fills in what the command left open.
func (a *App) settings(agent *inspan.Agent) {
	if agent.Mode == "" {
		agent.Mode = a.Config.Mode
	}
	if agent.MaxCost == 0 {
		agent.MaxCost = a.Config.MaxCost
	}
	if agent.MaxTokens == 0 {
		agent.MaxTokens = a.Config.MaxTokens
	}
	if agent.MaxTime == 0 {
		agent.MaxTime = a.Config.MaxTime
	}
	if agent.MaxTurns == 0 && a.Config.MaxTurns != nil {
		agent.MaxTurns = *a.Config.MaxTurns
		if agent.MaxTurns == 0 {
			agent.MaxTurns = -1
		}
	}
}

// reader reads instruction files for a workspace, and what they import: nothing
// that tools may not read, and from folders above the workspace or elsewhere
// only files of instructions, so that one that came with a repository can't put
// a private file before the model.
func (a *App) reader(root string) func(path string) ([]byte, error) {
	at := a.places(root)
	return func(path string) ([]byte, error) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		named := instructions(path) && instructions(real)
		if !named && !tool.Inside(root, real) || at.Of(real).Guard == places.Secret {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		return readInstructions(real)
	}
}

func instructions(path string) bool {
	return slices.Contains([]string{"agents.md", "claude.md"}, strings.ToLower(filepath.Base(path)))
}

// readInstructions reads an instruction file, unless it belongs to another
// user: anybody can put a file into a directory like /tmp.
func readInstructions(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if !ours(info) {
		return nil, fmt.Errorf("%s belongs to another user", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxInstructions))
}

// maxInstructions is how much of one instruction file is read, in bytes. What is
// used of all of them together is less.
const maxInstructions = 8 * prompt.MaxInstructions
