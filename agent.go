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
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Agent is a model with all that makes it an agent. The zero value of every field works. Do not change an agent
// that is in use.
type Agent struct {
	// Model answers. If nil, every request fails, and the session is one for [Session.Perform].
	Model llm.Model
	// Effort asks the model for reasoning, see [llm.Request].
	Effort string
	// System is the system prompt, most stable block first. It is fixed when a session is opened; Where is ignored.
	System []event.Added
	// Tools are what the model may call. Names must be unique.
	Tools []tool.Tool
	// Env is the world the tools work in. Its Root is the workspace.
	Env tool.Env

	// Mode is the permission mode: "plan", "ask", "edit", "auto" or "yolo". If empty, it is ask in a new session,
	// and unchanged in an old one.
	Mode tool.Mode
	// Rules allow, ask about or deny calls. Deny beats ask beats allow, and allow answers only what the mode would
	// ask.
	Rules []Rule
	// Judges have a say in every call, after mode and rules. They can only tighten.
	Judges []tool.Judge
	// Hooks run at fixed points of the session, in this order. What one allows answers what the mode would ask, like
	// a rule; otherwise hooks can only tighten.
	Hooks []tool.Hook
	// Approve is asked about each call that needs a person, one at a time, by [Agent.Run], [Agent.Answer] and
	// [Session.Run]. It allows the call once or denies it; an error ends the run. If nil, such calls wait: Agent.Run and
	// Agent.Answer end with a [*WaitingError], and Session.Run returns, so that the answer can be sent later. For more
	// choices than yes and no, and for questions that want words, use a [Conductor].
	Approve func(ctx context.Context, call Pending) (allow bool, err error)
	// Unattended says that nobody will answer: what would ask is denied, and the model is retried for longer.
	Unattended bool
	// Limits bound runs and calls.
	Limits Limits

	// Rarely needed.
	Workspace Workspace // further folders, checkpoints, and workspaces that travel
	Places    Places    // folders that tools stay away from, or may use after all
	Secrets   Secrets   // values that the model must not see
	Approvals Approvals // time for answers, and rules that outlive the session
	Jobs      Jobs      // commands that continue in the background
	Dynamic   Dynamic   // tools and instructions that come and go
	Opening   Opening   // what a new session says of itself
	Program   Program   // steps in the place of a model
	Lifecycle Lifecycle // what is told of sessions, and what ends with them

	vault *secret.Vault // see ShareSecrets; nil: each session has its own
}

// Limits bound what an agent may use. Where a limit can also stand in an old session, 0 leaves that as it is.
type Limits struct {
	// Turns bounds the turns of one run. 0: 200 in a new session; negative: no limit.
	Turns int
	// Cost bounds the US dollars of the whole session, and Tokens its prompts and replies together. 0: no limit in a new
	// session; negative: no limit.
	Cost   float64
	Tokens int64
	// Time bounds one run, the waits for a person aside. 0 and negative mean as for Cost.
	Time time.Duration
	// CallTime bounds the time that one tool call works, the waits for a person aside; 0: 15 minutes. Calls of tools that
	// delegate or make calls have no such bound.
	CallTime time.Duration
	// Parallel is how many calls of a reply run at once, at most; the others wait for their turn in order. Calls of tools
	// that delegate do not count. 0: 16.
	Parallel int
	// Retry bounds the waits before one request is sent again when the model can't be reached. 0: a minute, or a quarter
	// of an hour with Unattended or RetryLong, which wait up to a day for a used-up allowance; negative: never. If
	// the vendor asks for a longer wait, the run fails at once and says so. A wait outlasts the process: whoever resumes
	// the session waits the rest, unless that is longer than Retry allows; then the model is simply asked.
	Retry time.Duration
	// RetryLong says that somebody may answer questions, but does not watch: the model is retried as if Unattended.
	RetryLong bool
}

// Workspace is what an agent has of folders beyond the root of its Env.
type Workspace struct {
	// Folders are further ones, absolute and without links, that calls may read and change as they may the workspace.
	// Env walls commands in. The session has just these from then on.
	Folders []string
	// Checkpoint keeps the state of the workspace, before and after calls that change something. If nil, nothing is kept.
	Checkpoint func(ctx context.Context) (event.Checkpoint, error)
	// Sync keeps a workspace that travels where other machines find it. Last is where the log has it. Sync returns what
	// to append: where the state is now, if that has changed, and what is to be told of it. It is called when a session
	// is opened for the first time, when a run begins, when calls that may have changed the workspace have ended, and
	// when a run that made such calls stops; also with all results and requests while jobs, or what commands have left,
	// are at work. What it returns is in the same append as the beginning, the results, the request or the stop, so that
	// none of them is acknowledged before the state is kept. An error ends the run. If nil, the workspace stays here.
	Sync func(ctx context.Context, last event.Workspace) ([]event.Body, error)
}

// Places are folders that are treated differently than their path suggests. They are absolute.
type Places struct {
	// Private lists folders that tools neither read nor change, besides those of keys and passwords that every agent
	// keeps away from. Private beats Public.
	Private []string
	// Readable lists folders below those of Private that tools do read, and never change.
	Readable []string
	// Public lists globs of absolute paths that are not sensitive after all.
	Public []string
	// Foreign lists folders where others work too. Tools neither read nor change what lies there, except for the workspace
	// and its further folders.
	Foreign []string
}

// Secrets are values that reach neither the model nor the log nor anybody who watches: placeholders stand for them.
// What looks like a secret by its shape is held back in any case.
type Secrets struct {
	// Values returns secrets by name. Tools get them back in the place of their placeholders. It is called before each
	// request. If nil, there are none.
	Values func() map[string]string
	// Withheld is Values for secrets that tools don't get back either.
	Withheld func() map[string]string
	// Key makes the placeholders: with the same key a secret has the same one in every session, so that what a resumed
	// session repeats means what it meant. Whoever has the key and a log can find short secrets by trying, so keep it as
	// private as they are, and out of logs. If nil, each session of the agent has a random one, or each [Host] for all of
	// its sessions.
	Key []byte
}

// Approvals say how a person's answers are waited for and kept.
type Approvals struct {
	// Timeout is how long a call waits for a decision before it counts as denied; 0: for ever.
	Timeout time.Duration
	// Remember keeps the rules that a person allowed for more than this session: for its workspace (event.ScopeProject) or
	// for all (event.ScopeAlways). If nil, they hold for the session only.
	Remember func(ctx context.Context, scope event.Scope, rules []string) error
}

// Jobs say whether commands may continue after a run. The model is told.
type Jobs struct {
	// Keep says that commands which run in the background at the normal end of a run continue; Lifecycle.Shutdown sees to
	// it.
	Keep bool
	// KeepNone says that nothing continues, as nothing can or nobody may allow it.
	KeepNone bool
}

// Dynamic is what an agent has only at times.
type Dynamic struct {
	// Tools returns further tools: those that the model is told of, and those that it can call without. It is called
	// before each run; a change costs the prompt cache. A tool whose name is taken is left out, and a note says so. If nil,
	// there are none.
	Tools func(ctx context.Context) (shown, hidden []tool.Tool)
	// Directing are the names of hidden tools that the model is told of from the request on that follows the first agent
	// in the background or in a copy of the workspace.
	Directing []string
	// Proposed makes the tool of a proposal of the session's model, see [tool.Result.Proposal]. The model is told of it from
	// the next request on, behind all other tools; an error is a note, and the session continues without. If nil, no model
	// writes tools.
	Proposed func(ctx context.Context, p tool.Proposal) (tool.Tool, error)
	// Servers says how the MCP servers are that Tools has tools of. It is called at the beginning of each run, before Tools,
	// and may wait for them until ctx is done, which an interrupt does; it tells what it waits for. If nil, there are none.
	Servers func(ctx context.Context, tell func(text string)) []event.Server
	// Instructions returns what holds for a file or folder below the workspace beyond System, outermost first. It is called
	// when a part of the workspace is first touched, and what is new is added at the tail. If nil, nothing is.
	Instructions func(path string) []event.Added
}

// Opening is what a new session says of itself in its first event.
type Opening struct {
	// Kind is the kind of agent, of one that works for another. Hooks and tools are told.
	Kind string
	// Levers are what helps the model beyond running its calls. A session of a version that had none goes on without.
	Levers event.Levers
	// Config is the digest of the configuration that the session is begun with, for whoever compares sessions.
	Config string
	// Labels are for whoever looks for sessions later: at most 32, with names of up to 64 letters, digits, dots, dashes and
	// underscores, and values of up to 256 bytes.
	Labels map[string]string
	// Traceparent is the span that the session belongs to, as W3C Trace Context has it.
	Traceparent string
	// Corpus is what the session answers questions from, for whoever opens it again, see [Place]. The agent needs the tools
	// for that.
	Corpus event.Corpus
}

// Program performs a session in steps, in the place of a model.
type Program struct {
	// Run performs a run of the session, as [Session.Perform] says. If nil, the model answers.
	Run func(ctx context.Context, steps *Steps) error
	// Step is the step that the whole of Run is. It is stored when a session is opened, so that the log knows from its
	// beginning what performs it. Its own Step is empty: there is none.
	Step event.StepStarted
}

// Lifecycle holds functions that are called as sessions come and go. If nil, none is.
type Lifecycle struct {
	// Started is called with the session when its first run begins, so that what the agent holds can send it inputs. It must
	// not wait for the run.
	Started func(s *Session)
	// Stored is called with every stored event that a run of the session takes in, in order and once it counts in Status. It
	// must not block.
	Stored func(s *Session, e event.Event)
	// Shutdown ends what the session has started and still runs, or lets it continue, and says what became of it. Normal is
	// the end of a session whose last run was over and not interrupted; after any other nothing continues.
	// [Session.Shutdown] calls it once, before Close.
	Shutdown func(normal bool, mode tool.Mode) Leftovers
	// Close releases what the agent holds for one session, such as background processes. [Session.Close] calls it once.
	Close func() error
}

// ShareSecrets has the sessions of the agent use the placeholders of s, so that they can tell each other of secrets. Call it before the agent is used.
func (a *Agent) ShareSecrets(s *Session) { a.vault = s.driver.Secrets().Vault }

// DefaultMaxTurns bounds the turns of one run where the agent does not say.
const DefaultMaxTurns = 200

// Rule is one line about what calls may do: TOOL, TOOL(PATTERN), or instead of a
// tool a kind of effect: read, write, execute, network, external, keep. "bash(go test
// *)" names commands by their first words, "write(docs/**)" files,
// "network(*.example.com)" hosts.
type Rule struct {
	Action tool.Action // Allow, Ask or Deny
	// Text is the rule in the grammar of docs/SECURITY.md, or in the form of Claude Code, Codex,
	// opencode or Gemini.
	Text    string
	Written string // the rule as a person wrote it, if Text is a translation of that
	Scope   string // where the rule comes from, for people; may be empty
	Reason  string // shown where it asks or denies; may be empty
}

// Run runs the agent in a new session in memory, see [Session.Run]. If calls wait for somebody's decision in the end,
// which nobody could ever give there, the last error is a [*WaitingError].
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

// Open opens the session whose events the log holds, a new one if it is empty.
// The caller closes the session. A workspace whose path is not UTF-8 is refused: sessions,
// rules and answers keep paths as text.
func (a *Agent) Open(ctx context.Context, log event.Log) (*Session, error) {
	state, err := drive.Fold(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return a.attach(ctx, log, state, "")
}

// model is the model that is asked; without one every request fails.
func (a *Agent) model() llm.Model {
	if a.Model == nil {
		return noModel{}
	}
	return a.Model
}

// noModel is the model of an agent that has none.
type noModel struct{}

func (noModel) Info() llm.Info { return llm.Info{Provider: "none", Model: "none"} }

func (noModel) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		yield(llm.Chunk{}, &llm.Error{Kind: llm.KindNoModel, Message: "the agent has no model"})
	}
}

// describable returns why the first event of a session can't say what the agent is given.
func (a *Agent) describable() error {
	if !utf8.ValidString(a.Env.Root) {
		return fmt.Errorf("the path of the workspace, %q, is not UTF-8, and sessions keep paths as text: rename the folder, "+
			"or mount it at another path", a.Env.Root)
	}
	return event.Opened{Labels: a.Opening.Labels, Traceparent: a.Opening.Traceparent}.Check()
}

// attach makes a session of the agent and a folded log.
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
	if err := a.describable(); err != nil {
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
		err = driven(s.ID(), err)
	}
	return s, err
}

// config is what the session's driver works with.
func (a *Agent) config(s *Session, rules policy.Policy) *drive.Config {
	vault := a.vault
	if vault == nil {
		vault = redact.NewVault(a.Secrets.Key)
	}
	c := &drive.Config{
		Model: a.model(), Retry: a.retry(), Tools: a.Tools, Policy: rules, Judges: a.Judges, Hooks: a.Hooks, Env: a.Env,
		Secrets: &redact.Secrets{Vault: vault, Values: a.Secrets.Values, Withheld: a.Secrets.Withheld},
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

// Patience is how long the agent waits, all together, for one request that fails in such a way.
func (a *Agent) Patience(k llm.Kind) time.Duration { return a.retry().Patience(k) }

// policy is the policy of the agent: its rules and sensitive places.
func (a *Agent) policy() (policy.Policy, error) {
	var p policy.Policy
	m := &p.Map
	m.Root, m.Also, m.State, m.Shared, m.Open = a.Env.Root, a.Workspace.Folders, a.Places.Private, a.Places.Readable, a.Places.Public
	m.Apart = a.Places.Foreign
	m.Home, m.Programs, m.Moved = keep.Home(), keep.Programs(), keep.Moved()
	if looker, ok := a.Env.Files.(tool.Looker); ok {
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
			r.Reason, r.Written = rule.Reason, cmp.Or(rule.Written, r.Written)
			p.Rules = append(p.Rules, r)
		}
	}
	p.Map = policy.Close(p.Map, p.Rules)
	return p, nil
}

// opening is what a new session starts with. Parent is the session that it works
// for, if any.
func (a *Agent) opening(specs []llm.ToolSpec, parent string) []event.Body {
	bodies := []event.Body{event.Opened{
		Format: event.Format, App: "inspan " +
			Version, Root: a.Env.Root, Parent: parent, Agent: a.Opening.Kind, Levers: a.Opening.Levers.Stated(), Config: a.Opening.Config, Labels: a.Opening.Labels, Traceparent: a.Opening.Traceparent,
		Corpus: a.Opening.Corpus, Folder: keep.FolderID(a.Env.Root),
	}}
	for _, block := range a.System {
		block.Where = event.PlaceSystem
		bodies = append(bodies, block)
	}
	sw, _ := a.changes(&loop.State{})
	sw.Tools = specs
	sw.Mode = cmp.Or(a.Mode, tool.ModeAsk)
	limits := a.limits(event.Limits{Turns: DefaultMaxTurns})
	sw.Limits = &limits
	if bodies = append(bodies, sw); a.Program.Step.Step != "" {
		bodies = append(bodies, a.Program.Step)
	}
	return bodies
}

// changes is what the agent wants different from the state of a session, and
// whether that is anything.
func (a *Agent) changes(s *loop.State) (sw event.Switched, some bool) {
	if route := a.model().Info().Route(); route != s.Route {
		sw.Route, some = route, true
	}
	if a.Effort != "" && a.Effort != s.Effort {
		sw.Effort, some = a.Effort, true
	}
	if a.Mode != "" && a.Mode != s.Mode {
		sw.Mode, some = a.Mode, true
	}
	if l := a.limits(s.Limits); l != s.Limits {
		sw.Limits, some = &l, true
	}
	if w := a.window(); w != s.Window {
		sw.Window, some = &w, true
	}
	if !slices.Equal(a.Workspace.Folders, s.Folders) {
		sw.Folders, some = append([]string{}, a.Workspace.Folders...), true
	}
	return sw, some
}

// Tokens of the window that stay free for a reply, at least, and which part of a
// window that is small.
const (
	leastReserve = 20_000
	reserveShare = 4
)

// window is what the model can be asked at once. A small one keeps a quarter
// free, as it would be compacted all the time else.
func (a *Agent) window() event.Window {
	info := a.model().Info()
	w := event.Window{Tokens: info.Window, Reserve: max(info.MaxOutput, leastReserve)}
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

// Answer runs the agent in a new session in memory and returns the text of its last reply. A run that does not stop as
// done is an error, a [*WaitingError] if calls wait for somebody's decision.
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
