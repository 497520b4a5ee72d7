package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Agent is a model with the tools, permissions and limits that make it an agent. The zero value of every field works.
// Don't change an Agent while it is in use.
type Agent struct {
	// Model answers. If nil, every request fails, and the session can only be driven by [Session.Perform].
	Model llm.Model
	// Effort is how much reasoning to ask the model for, see [llm.Request].
	Effort string
	// System is the system prompt, the most stable block first. It is fixed when a session is opened. The field
	// Where of its blocks is ignored.
	System []event.Added
	// Tools are the tools that the model may call. Their names must be unique.
	Tools []tool.Tool
	// Env holds the files, processes and network that the tools work with. Its Root is the workspace.
	Env tool.Env

	// Mode is the permission mode: "plan", "ask", "edit", "auto" or "yolo". If empty, a new session gets ask,
	// and an existing one keeps its mode.
	Mode tool.Mode
	// Rules allow, ask about or deny calls. Deny beats ask, and ask beats allow. An allow rule only answers questions that
	// the mode would ask. Rules have the same syntax as in the settings. A rule without a scope must name a tool of Tools
	// or a kind of effect, unless Dynamic.Tools is set.
	Rules []Rule
	// Judges review every call after mode and rules. They can only make the verdict stricter, except that a judge which
	// returns Grant may answer a question that the mode would ask.
	Judges []tool.Judge
	// Hooks run at fixed points of a session, in this order. Like an allow rule, a hook may answer a question
	// that the mode would ask. Otherwise hooks can only make the verdict stricter.
	Hooks []tool.Hook
	// Approve decides each call that needs a person, one at a time, for [Agent.Run], [Agent.Answer] and
	// [Session.Run]. It allows the call once or denies it; an error ends the run. If nil, such calls wait:
	// Agent.Run and Agent.Answer return a [*WaitingError], and Session.Run returns so that the answer can be
	// sent later. Use a [Conductor] to offer more choices than yes and no, or to answer questions in words.
	Approve func(ctx context.Context, call Pending) (allow bool, err error)
	// Unattended means that no one will answer. Calls that would ask are denied, and requests to an unavailable
	// model are retried for longer.
	Unattended bool
	// Limits bound runs and calls.
	Limits Limits

	// Rarely needed.
	Workspace Workspace // additional folders, checkpoints, and workspaces that move between machines
	Places    Places    // folders that tools must avoid, or may use despite the defaults
	Secrets   Secrets   // values that the model must never see
	Approvals Approvals // how long to wait for answers, and where lasting rules are stored
	Jobs      Jobs      // commands that run in the background
	Dynamic   Dynamic   // tools and instructions that can change during a session
	Opening   Opening   // facts stored when a session is created
	Program   Program   // steps that run instead of a model
	Lifecycle Lifecycle // callbacks for the start, the events and the end of sessions

	vault *secret.Vault // set by ShareSecrets; if nil, each session has its own
}

// Limits bound what an agent may use. For limits that are stored in a session, 0 keeps the value of an existing
// session.
type Limits struct {
	// Turns bounds the turns of one run. 0 means 200 in a new session, a negative value no limit.
	Turns int
	// Cost bounds the US dollars of the whole session, and Tokens its prompts and replies together. 0 means no
	// limit in a new session, a negative value no limit at all.
	Cost   float64
	Tokens int64
	// Time bounds one run, not counting waits for a person. 0 and negative values mean the same as for Cost.
	Time time.Duration
	// CallTime bounds one tool call, not counting waits for a person. 0 means 15 minutes. Tools that delegate
	// or make calls of their own have no such bound.
	CallTime time.Duration
	// Parallel is how many calls run at once; the others wait in order. Tools that delegate or make calls of their own
	// don't count. 0 means 16.
	Parallel int
	// Retry bounds how long a failed request is retried while the model is unavailable. 0 means a minute, or 15
	// minutes with Unattended or RetryLong, which also wait up to a day for a used-up quota. A negative value
	// means no retries. If the provider asks for a longer wait, the run fails at once and says so. A wait survives the
	// process: a resumed session waits the remaining time or, if that is longer than Retry allows, asks the model at
	// once.
	Retry time.Duration
	// RetryLong means that someone can answer questions but is not watching: the model is retried as if
	// Unattended were set.
	RetryLong bool
}

// Workspace describes folders beyond the root of Env, and how to save the state of the workspace.
type Workspace struct {
	// Folders lists additional folders that calls may read and change like the workspace: absolute paths
	// without symbolic links. Env must confine commands to them itself. The list replaces that of an existing
	// session.
	Folders []string
	// Checkpoint saves the state of the workspace. It is called before and after calls that may change it. If nil,
	// nothing is saved.
	Checkpoint func(ctx context.Context) (event.Checkpoint, error)
	// Sync stores a workspace that moves between machines. Last is the latest state in the log. Sync returns the events
	// to append: the new state if it changed, and notes for the model.
	//
	// Sync is called when a session is created, when a run begins, when calls that may have changed the workspace have
	// ended, and when a run with such calls stops. While background jobs or left processes are running, it is also
	// called with every result and request. Its events are appended together with the event that caused the call, so
	// nothing is acknowledged before the state is stored. An error ends the run. If nil, the workspace stays on this
	// machine.
	Sync func(ctx context.Context, last event.Workspace) ([]event.Body, error)
}

// Places lists exceptions from the default treatment of paths. All paths are absolute.
type Places struct {
	// Private lists folders that tools may neither read nor change, in addition to folders of keys and passwords, which
	// are closed to every agent. Private beats Public.
	Private []string
	// Readable lists folders below Private ones that tools may read but never change.
	Readable []string
	// Public lists globs of absolute paths that look sensitive but are not.
	Public []string
	// Foreign lists folders in which others work too. Tools may neither read nor change anything there, except for the
	// workspace and its additional folders.
	Foreign []string
	// Git lists files that git runs or reads as settings, because git's settings name them. Changing one asks.
	Git []string
}

// Secrets are values that must not reach the model, the log or any observer: placeholders replace them. Text that looks
// like a secret is always replaced.
type Secrets struct {
	// Values returns secrets by name. Tools get the values instead of the placeholders. It is called before each
	// request. If nil, there are none.
	Values func() map[string]string
	// Hidden returns further secrets. Not even tools get their values. It is called like Values.
	Hidden func() map[string]string
	// Key derives the placeholders. With the same key, a secret has the same placeholder in every session, so the
	// placeholders of a resumed session keep their meaning. Protect the key like the secrets: with the key and a log, an
	// attacker can guess short secrets. If nil, each session of the agent has a random key, or each [Host] has one for
	// all of its sessions.
	Key []byte
}

// Approvals configures how answers are awaited and remembered.
type Approvals struct {
	// Timeout is how long a call waits for an answer before it is denied. 0 means forever.
	Timeout time.Duration
	// Remember stores rules that a person allowed beyond the session: for its workspace (event.ScopeProject) or for all
	// workspaces (event.ScopeAlways). If nil, such rules apply to the session only.
	Remember func(ctx context.Context, scope event.Scope, rules []string) error
}

// Jobs configures whether commands may continue after the session. The model knows these settings.
type Jobs struct {
	// Keep lets background commands continue after a session that ended normally. Lifecycle.Shutdown implements that.
	Keep bool
	// KeepNone means that no command can continue, because the system does not support it or a setting forbids it.
	KeepNone bool
}

// Dynamic provides tools and instructions that may change while a session is open.
type Dynamic struct {
	// Tools returns additional tools. Shown ones are listed for the model; it can also call hidden ones. Tools is called
	// before each run. A change may invalidate the prompt cache. A tool whose name is taken is left out, with a note. If
	// nil, there are none.
	Tools func(ctx context.Context) (shown, hidden []tool.Tool)
	// SubagentTools names hidden tools for managing subagents. They are listed for the model once a subagent has been
	// started in the background or in a copy of the workspace.
	SubagentTools []string
	// Proposed turns a tool that the model wrote into a callable one, see [tool.Result.Proposal]. From the next request on
	// it is listed after all other tools. An error becomes a note, and the session continues without the tool. If nil,
	// the model can't write tools.
	Proposed func(ctx context.Context, p tool.Proposal) (tool.Tool, error)
	// Servers returns the states of the MCP servers that provide tools of Tools. It is called at the beginning of
	// each run, before Tools. It may wait for servers until ctx is cancelled, for example by an interrupt, and
	// reports its progress with tell. If nil, there are none.
	Servers func(ctx context.Context, tell func(text string)) []event.Server
	// Instructions returns the instructions that apply to a file or folder below the workspace in addition to System,
	// outermost first. It is called when a call first uses a file in a folder. New instructions are added at the end of
	// the context. If nil, there are none.
	Instructions func(path string) []event.Added
}

// Opening holds facts that are stored in the first event of a new session.
type Opening struct {
	// Kind is the kind of a subagent. Hooks and tools see it.
	Kind string
	// Levers switch measures that help the model, see docs/LEVERS.md. A session from a version without levers continues
	// without them.
	Levers event.Levers
	// Config is a digest of the session's configuration, for programs that compare sessions.
	Config string
	// Labels help to find the session later: at most 32, with names of up to 64 letters, digits, dots, dashes
	// and underscores, and values of up to 256 bytes.
	Labels map[string]string
	// Traceparent is the parent span of the session in the form of W3C Trace Context.
	Traceparent string
	// Corpus is the text that the session answers questions about. It is stored so that the session can be opened again,
	// see [SessionSpec]. Tools must contain the tools for it.
	Corpus event.Corpus
}

// Program runs a session in steps instead of asking a model.
type Program struct {
	// Run performs one run of the session, see [Session.Perform]. If nil, the model answers.
	Run func(ctx context.Context, steps *Steps) error
	// Step is the step that encloses all of Run. It is stored when a session is created, so the log names its program
	// from the beginning. If its Step is empty, there is none.
	Step event.StepStarted
}

// Lifecycle holds functions that are called as sessions begin, proceed and end. Nil functions are not called.
type Lifecycle struct {
	// Started is called with the session when its first run begins, so that parts of the agent can send it
	// inputs. It must not wait for the run.
	Started func(s *Session)
	// Stored is called with every stored event of a run, in order, after Status includes it. It must not block.
	Stored func(s *Session, e event.Event)
	// Shutdown ends the processes that the session has started, or lets them continue, and reports which.
	// Normal is true if the last run ended without an interrupt; otherwise nothing continues.
	// [Session.Shutdown] calls it once, before Close.
	Shutdown func(normal bool, mode tool.Mode) Leftovers
	// Close releases what the agent holds for one session, such as background processes. [Session.Close] calls
	// it once.
	Close func() error
}

// ShareSecrets makes the agent's sessions use the placeholders of s, so that they can exchange text with secrets. Call
// it before the agent is used.
func (a *Agent) ShareSecrets(s *Session) { a.vault = s.driver.Secrets().Vault }

// Rule allows, asks about or denies calls. Its form is TOOL or TOOL(PATTERN), or a kind of effect instead of
// the tool: read, write, execute, network, external, keep. "bash(go test *)" matches commands by their first
// words, "write(docs/**)" files, and "network(*.example.com)" hosts.
type Rule struct {
	Action tool.Action // Allow, Ask or Deny
	// Text is the rule in the grammar of docs/SECURITY.md, or in that of Claude Code, Codex, opencode or Gemini.
	Text     string
	Original string // the rule as a person wrote it, if Text is a translation
	Scope    string // where the rule comes from, shown to people; may be empty
	Reason   string // shown when the rule asks or denies; may be empty
}

// Run runs the agent in a new session in memory, see [Session.Run]. If calls still wait for a decision when the run
// ends, the last error is a [*WaitingError], because no one could answer later.
func (a *Agent) Run(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s, err := a.Open(ctx, event.NewMemory("memory"))
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer s.Close()
		for e, err := range s.Run(ctx, event.Say(text)) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		if waiting := s.Status().Waiting; len(waiting) > 0 {
			yield(event.Event{}, &WaitingError{Waiting: waiting})
		}
	}
}

// Open opens the session in log, or creates one if log is empty. The caller must close the session. Open fails
// if the path of the workspace is not UTF-8, because sessions, rules and answers store paths as text.
func (a *Agent) Open(ctx context.Context, log event.Log) (*Session, error) {
	state, err := drive.Fold(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return a.attach(ctx, log, state, "")
}

// model returns the agent's model, or one that fails every request.
func (a *Agent) model() llm.Model {
	if a.Model == nil {
		return noModel{}
	}
	return a.Model
}

// noModel stands in for the model of an agent without one.
type noModel struct{}

func (noModel) Info() llm.Info { return llm.Info{Provider: "none", Model: "none"} }

func (noModel) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		yield(llm.Chunk{}, &llm.Error{Kind: llm.KindNoModel, Message: "the agent has no model"})
	}
}

// checkOpening returns an error if the first event of a session can't hold the agent's values.
func (a *Agent) checkOpening() error {
	if !utf8.ValidString(a.Env.Root) {
		return fmt.Errorf("the path of the workspace, %q, is not UTF-8, and sessions store paths as text: rename the folder, "+
			"or mount it at another path", a.Env.Root)
	}
	return event.Opened{Labels: a.Opening.Labels, Traceparent: a.Opening.Traceparent}.Check()
}

// attach makes a session from the agent and a folded log.
func (a *Agent) attach(ctx context.Context, log event.Log, state *loop.State, parent string) (s *Session, err error) {
	defer fault.Recover("open session: the agent", nil, &err)
	defer func() {
		if err != nil {
			s, err = nil, fmt.Errorf("open session: %w", err)
		}
	}()
	if err := a.Mode.Check(); err != nil {
		return nil, fmt.Errorf("mode: %w", err)
	}
	if err := a.checkOpening(); err != nil {
		return nil, err
	}
	rules, err := a.policy()
	if err != nil {
		return nil, err
	}
	s = &Session{agent: a}
	s.driver, err = drive.Open(ctx, a.config(s, rules), log, state)
	if err == nil && state.Seq == 0 {
		err = s.driver.Create(ctx, func(tools []llm.ToolSpec) []event.Body { return a.opening(tools, parent) })
		err = asDrivenError(s.ID(), err)
	}
	return s, err
}

// config returns the configuration of the session's driver.
func (a *Agent) config(s *Session, rules policy.Policy) *drive.Config {
	vault := a.vault
	if vault == nil {
		vault = redact.NewVault(a.Secrets.Key)
	}
	c := &drive.Config{
		Model: a.model(), Retry: a.retry(), Tools: a.Tools, Policy: rules, Judges: a.Judges, Hooks: a.Hooks, Env: a.Env,
		Secrets: &redact.Secrets{Vault: vault, Values: a.Secrets.Values, Hidden: a.Secrets.Hidden},
		Dynamic: drive.Dynamic(a.Dynamic), Checkpoint: a.Workspace.Checkpoint, Sync: a.Workspace.Sync,
		Kind: a.Opening.Kind, Unattended: a.Unattended, KeepJobs: a.Jobs.Keep, KeepNone: a.Jobs.KeepNone,
		AskTimeout: a.Approvals.Timeout, CallTime: a.Limits.CallTime, Parallel: a.Limits.Parallel, Changes: a.changes,
	}
	if a.Lifecycle.Started != nil {
		c.Started = func() { a.Lifecycle.Started(s) }
	}
	if a.Lifecycle.Stored != nil {
		c.Stored = func(e event.Event) { a.Lifecycle.Stored(s, e) }
	}
	return c
}

func (a *Agent) retry() request.Retry {
	return request.NewRetry(!a.Unattended && !a.Limits.RetryLong, a.Limits.Retry)
}

// RetryTime returns how long the agent retries one request that fails with an error of this kind.
func (a *Agent) RetryTime(k llm.Kind) time.Duration { return a.retry().Patience(k) }

// policy combines the agent's rules with its sensitive places.
func (a *Agent) policy() (policy.Policy, error) {
	var p policy.Policy
	m := &p.Map
	m.Root, m.Also, m.State, m.Shared, m.Open = a.Env.Root, a.Workspace.Folders, a.Places.Private, a.Places.Readable, a.Places.Public
	m.Apart, m.Git = a.Places.Foreign, a.Places.Git
	m.Home, m.Programs, m.Moved = keep.Home(), keep.Programs(), keep.Moved()
	if looker, ok := a.Env.Files.(places.Looker); ok {
		m.Look = looker.Look
	}
	p.Map = m.Indexed()
	var names []string
	for _, t := range a.Tools {
		names = append(names, t.Name)
	}
	for _, rule := range a.Rules {
		read, err := policy.Read(rule.Action, rule.Text, rule.Scope, names...)
		if err != nil {
			return p, fmt.Errorf("%s %w", rule.Action, err)
		}
		for _, r := range read {
			if err := r.Names(names); err != nil && rule.Scope == "" && a.Dynamic.Tools == nil {
				return p, fmt.Errorf("%s %w; the agent has no such tool, so the rule would match nothing", rule.Action, err)
			}
			r.Reason, r.Written = rule.Reason, cmp.Or(rule.Original, r.Written)
			p.Rules = append(p.Rules, r)
		}
	}
	p.Map = policy.Close(p.Map, p.Rules)
	return p, nil
}

// opening returns the first events of a new session. Parent is the session that it works for, if any.
func (a *Agent) opening(specs []llm.ToolSpec, parent string) []event.Body {
	bodies := []event.Body{event.Opened{
		Format: event.Format, App: "inspan " + Version, Root: a.Env.Root, Folder: keep.FolderID(a.Env.Root), Parent: parent,
		Agent: a.Opening.Kind, Levers: a.Opening.Levers.Stated(), Config: a.Opening.Config, Labels: a.Opening.Labels,
		Traceparent: a.Opening.Traceparent, Corpus: a.Opening.Corpus,
	}}
	for _, block := range a.System {
		block.Where = event.PlaceSystem
		bodies = append(bodies, block)
	}
	sw, _ := a.changes(&loop.State{})
	sw.Tools = specs
	sw.Mode = cmp.Or(a.Mode, tool.ModeAsk)
	limits := a.limits(event.Limits{Turns: loop.DefaultTurns})
	sw.Limits = &limits
	if bodies = append(bodies, sw); a.Program.Step.Step != "" {
		bodies = append(bodies, a.Program.Step)
	}
	return bodies
}

// changes returns the agent's settings that differ from the state of a session, and whether there are any.
func (a *Agent) changes(s *loop.State) (sw event.Switched, changed bool) {
	if route := a.model().Info().Route(); route != s.Route {
		sw.Route, changed = route, true
	}
	if a.Effort != "" && a.Effort != s.Effort {
		sw.Effort, changed = a.Effort, true
	}
	if a.Mode != "" && a.Mode != s.Mode {
		sw.Mode, changed = a.Mode, true
	}
	if l := a.limits(s.Limits); l != s.Limits {
		sw.Limits, changed = &l, true
	}
	if w := a.window(); w != s.Window {
		sw.Window, changed = &w, true
	}
	if !slices.Equal(a.Workspace.Folders, s.Folders) {
		sw.Folders, changed = append([]string{}, a.Workspace.Folders...), true
	}
	return sw, changed
}

// The reserve for a reply is the model's MaxOutput, at least leastReserve tokens, and never more than 1/reserveShare of
// the window.
const (
	minReserve   = 20_000
	reserveShare = 4
)

// window returns the model's context window. The bound on the reserve prevents constant compactions in a small window.
func (a *Agent) window() event.Window {
	info := a.model().Info()
	w := event.Window{Tokens: info.Window, Reserve: max(info.MaxOutput, minReserve), Assumed: info.Assumed}
	if w.Tokens == 0 {
		return event.Window{}
	}
	w.Reserve = min(w.Reserve, w.Tokens/reserveShare)
	return w
}

func (a *Agent) limits(now event.Limits) event.Limits {
	if a.Limits.Turns != 0 {
		now.Turns = max(a.Limits.Turns, 0)
	}
	if a.Limits.Cost != 0 {
		now.Cost = max(a.Limits.Cost, 0)
	}
	if a.Limits.Tokens != 0 {
		now.Tokens = max(a.Limits.Tokens, 0)
	}
	if a.Limits.Time != 0 {
		now.Seconds = max(a.Limits.Time, 0).Seconds()
	}
	return now
}

// Answer runs the agent in a new session in memory and returns the text of its last reply. If the run stops for any
// reason but done, Answer returns an error: a [*WaitingError] if calls wait for a decision.
func (a *Agent) Answer(ctx context.Context, text string) (answer string, err error) {
	var stopped *event.Stopped
	for e, err := range a.Run(ctx, text) {
		if err != nil {
			return answer, err
		}
		switch b := e.Body.(type) {
		case event.Replied:
			answer = strings.TrimSpace(b.Parts.Text())
		case event.Stopped:
			stopped = &b
		}
	}
	if stopped == nil || stopped.Reason != event.ReasonDone {
		return answer, stoppedError(stopped)
	}
	return answer, nil
}

func stoppedError(s *event.Stopped) error {
	if s == nil {
		return errors.New("the run did not stop")
	}
	return errors.New(strings.TrimSuffix(fmt.Sprintf("run stopped: %s: %s", s.Reason, s.Detail), ": "))
}
