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
	"github.com/inspan/inspan/internal/guard"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Version is the version of this module.
const Version = "0.2.0"

// Agent is a model with all that makes it an agent. The zero value of every field works. Do not
// change an agent that is in use.
type Agent struct {
	// Model answers. Nil: every request fails, and the session is one for [Session.Perform].
	Model llm.Model
	// Program performs a run of the session in steps, in the place of Model, as [Session.Perform] says.
	// Nil: Model answers.
	Program func(ctx context.Context, steps *Steps) error
	// Begins is the step that the whole of Program is. It is stored when a session is opened, so that
	// the log knows from its beginning what performs it. Its Step is empty: there is none.
	Begins event.StepStarted
	// Tools the model may call. Names must be unique.
	Tools []tool.Tool
	// Extra returns more of them: those the model is told of, and those it can
	// call without. It is asked before each run, so they may come and go, which
	// costs the prompt cache. One whose name is taken is left out, and a note says
	// so. Nil: there are none.
	Extra func(ctx context.Context) (shown, hidden []tool.Tool)
	// Written makes the tool of a proposal of the session's model, see [tool.Result.Proposal]. The model
	// is told of it from the next request on, behind all other tools; an error is a note, and the
	// session goes on without. Nil: no model writes tools.
	Written func(ctx context.Context, p tool.Proposal) (tool.Tool, error)
	// Servers says how the MCP servers are that Extra has tools of. It is asked at the
	// beginning of each run, before Extra, and may wait for them until ctx is done, which
	// an interrupt does; it tells what it waits for. Nil: there are none.
	Servers func(ctx context.Context, tell func(text string)) []event.Server
	// System is the system prompt, most stable block first. It is fixed when a
	// session is opened; Where is ignored.
	System []event.Added
	// Instructions returns what holds for a file or folder below the workspace
	// beyond System, outermost first. It is asked when a part of the workspace is
	// first touched, and what is new is added at the tail. Nil: nothing.
	Instructions func(path string) []event.Added
	// Checkpoint keeps the state of the workspace, before and after calls that
	// change something. Nil: nothing is kept.
	Checkpoint func(ctx context.Context) (event.Checkpoint, error)
	// Carry keeps the workspace where other machines find it, for one that travels. Last is where the log
	// has it. It returns what is to be appended: where its state is now, if that is another, and what is
	// to be told of it. It is asked when a session is opened for the first time, when a run begins, when
	// calls that may have changed the workspace have ended, and when a run that made such calls stops; also
	// with all results and requests once jobs or what commands have left go on beside calls. What it
	// returns is in the same append as the beginning, the results, the request or the stop, so none of
	// them is acknowledged before the state is kept. An error ends the run. Nil: the workspace stays here.
	Carry func(ctx context.Context, last event.Workspace) ([]event.Body, error)
	// Env is the world the tools work in. Root is the workspace.
	Env tool.Env
	// Folders are further ones, absolute and without links, that calls may read and change
	// as they may the workspace. Commands are walled in by Env. The session has just these from then on.
	Folders []string

	// Mode is the permission mode: "plan", "ask", "edit", "auto" or "yolo".
	// Empty means ask for a new session and no change for an old one.
	Mode tool.Mode
	// Rules allow, ask about or deny calls. Deny beats ask beats allow, and
	// allow answers only what the mode would ask.
	Rules []Rule
	// Private lists folders that tools neither read nor change, beside those of
	// keys and passwords that every agent keeps away from; Public lists globs of
	// absolute paths that are not sensitive after all. Private beats Public. Shared
	// lists folders below those of Private that tools do read, and never change.
	Private, Shared, Public []string
	// Apart lists folders where others work too: tools neither read nor change what lies there, but
	// for the workspace and Folders.
	Apart []string
	// Judges have a say in every call beside mode and rules. They can only
	// tighten.
	Judges []tool.Judge
	// Hooks run at fixed points of the session, in this order. What one allows
	// answers what the mode would ask, like a rule; else they can only tighten.
	Hooks []tool.Hook
	// Secrets returns values, by what they are called, that reach neither the
	// model nor the log nor whoever watches: placeholders stand for them, which
	// tools get back. It is asked before each request. Nil: only what looks like a
	// secret by its shape is held back.
	Secrets func() map[string]string
	// Withheld returns values, by what they are called, of which tools don't get anything back
	// either: what stands for them stands for nothing. It is asked when Secrets is. Nil: none.
	Withheld func() map[string]string
	// PlaceholderKey makes the placeholders of secrets: with the same key a secret has the same
	// one in every session, so that what a resumed session repeats means what it meant.
	// Whoever has the key and a log can find short secrets by trying: keep it as private as
	// they are, and out of logs. Nil: each session of the agent has a random one, or each
	// [Host] for all of its sessions.
	PlaceholderKey []byte
	// Remember keeps the rules that a person allowed for more than this session:
	// for its workspace (event.ScopeProject) or for all (event.ScopeAlways). Nil:
	// they hold for the session only.
	Remember func(ctx context.Context, scope event.Scope, rules []string) error
	// AskTimeout is how long a call waits for a decision before it counts as
	// denied; 0 means for ever.
	AskTimeout time.Duration
	// Unattended says that nobody will answer: what would ask is denied, and the
	// model is waited for longer.
	Unattended bool
	// Patient says that somebody may answer, but does not sit there: what would ask
	// waits as ever, and the model is waited for as when Unattended.
	Patient bool
	// KeepJobs says that commands which run in the background at the normal end of a run
	// go on afterwards. It is told to the model; Leave sees to it.
	KeepJobs bool
	// NoKeep says that nothing goes on afterwards, as nothing can or nobody may allow it. It
	// is told to the model too.
	NoKeep bool
	// Levers are what helps the model beyond running its calls. They are fixed when a
	// session is opened; a session of a version that had none goes on without.
	Levers event.Levers
	// Labels stand in a session that the agent opens, for whoever looks for sessions later: at
	// most 32, with names of up to 64 letters, digits, dots, dashes and underscores, and values of
	// up to 256 bytes. Traceparent is the span that it belongs to, as W3C Trace Context has it.
	Labels      map[string]string
	Traceparent string
	// Corpus stands in a session that the agent opens, so that whoever opens it again knows what it
	// answers questions from: see [Place]. The agent needs the tools for that.
	Corpus event.Corpus

	// MaxTurns bounds the turns of one run; 0 means 200 for a new session and
	// no change for an old one, negative means no limit.
	MaxTurns int
	// MaxCost bounds the US dollars of the whole session; 0 means no limit for
	// a new session and no change for an old one, negative means no limit.
	MaxCost float64
	// MaxTokens bounds the tokens of the whole session, prompts and replies
	// together, and MaxTime one run, the waits for a person aside; 0 means as for
	// MaxCost.
	MaxTokens int64
	MaxTime   time.Duration
	// Effort asks the model for reasoning, see [llm.Request].
	Effort string
	// CallTimeout bounds the time that one tool call works, the waits for a person
	// aside; 0 means 15 minutes. Calls of tools that delegate or make calls have no such bound.
	CallTimeout time.Duration
	// MaxParallel is how many calls of a reply run at once, at most; the others wait for
	// their turn in order. Calls of tools that delegate do not count. 0 means 16.
	MaxParallel int

	// RetryFor bounds the waits before one request is sent again when the model
	// can't be had; 0 means a minute, or a quarter of an hour when Unattended or
	// Patient, which wait for a used-up allowance as much as a day; negative means
	// never. If the vendor asks for a longer wait, the run fails at once and says so.
	// A wait outlasts the process: whoever resumes the session waits the rest, unless
	// it is longer than RetryFor allows; then the model is simply asked.
	RetryFor time.Duration

	// Joined is called with the session when its first run begins, so that what the
	// agent holds can send it inputs. It must not wait for the run. Nil: nobody
	// wants to know.
	Joined func(s *Session)
	// Saw is told every stored event that a run of the session takes in, in order and once it counts
	// in Status, with the session. It must not block. Nil: nobody wants to know.
	Saw func(s *Session, e event.Event)
	// Leave ends what the session has started and still runs, or lets it go on, and says
	// what became of it. Normal is the end of a session whose last run was over and not
	// interrupted; after any other nothing goes on. [Session.Leave] calls it once, before
	// Close. Nil: there is never anything.
	Leave func(normal bool, mode tool.Mode) Leftovers
	// Close releases what the agent holds for one session, such as background
	// processes. [Session.Close] calls it once. Nil: nothing to release.
	Close func() error

	vault *secret.Vault // see Share; nil: each session has its own
}

// Share makes a placeholder for a secret stand for the same value in the sessions of
// the agent as in s, so that they can tell each other of it. Call it before the
// agent is used.
func (a *Agent) Share(s *Session) { a.vault = s.vault }

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

// Run runs the agent in a new session in memory. See [Session.Run].
func (a *Agent) Run(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s, err := a.Open(ctx, event.NewMemory("memory"))
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer s.Close()
		s.Run(ctx, event.Say(text))(yield)
	}
}

// Open opens the session whose events the log holds, a new one if it is empty.
// The caller closes the session. A workspace whose path is not UTF-8 is refused: sessions,
// rules and answers keep paths as text.
func (a *Agent) Open(ctx context.Context, log event.Log) (*Session, error) {
	state, err := fold(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return a.attach(ctx, log, state, "")
}

// asks is the model that is asked; without one every request fails.
func (a *Agent) asks() llm.Model {
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
	return event.Opened{Labels: a.Labels, Traceparent: a.Traceparent}.Check()
}

// attach makes a session of the agent and a folded log.
func (a *Agent) attach(ctx context.Context, log event.Log, state *loop.State, parent string) (s *Session, err error) {
	defer caught("open session: the agent", nil, &err)
	if err := a.Mode.Check(); err != nil {
		return nil, fmt.Errorf("open session: mode: %w", err)
	}
	if err := a.describable(); err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	rules, err := a.rules()
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	s = &Session{
		agent: a, log: log, state: state, policy: rules,
		secrets: &secrets{
			vault: cmp.Or(a.vault, keyed(a.PlaceholderKey)),
			ask:   a.Secrets, withheld: a.Withheld,
		}, marker: &guard.Marker{}, model: a.model(), looked: map[string]bool{},
	}
	s.learn()
	if err := s.equip(ctx); err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	if state.Seq == 0 {
		if err := s.begin(ctx, parent); err != nil {
			return nil, fmt.Errorf("open session: %w", err)
		}
	}
	return s, nil
}

// opening is what a new session starts with. Parent is the session that it works
// for, if any.
func (a *Agent) opening(specs []llm.ToolSpec, parent string) []event.Body {
	bodies := []event.Body{event.Opened{
		Format: event.Format, App: "inspan " +
			Version, Root: a.Env.Root, Parent: parent, Levers: a.Levers.Stated(), Labels: a.Labels, Traceparent: a.Traceparent,
		Corpus: a.Corpus, Folder: keep.FolderID(a.Env.Root),
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
	if bodies = append(bodies, sw); a.Begins.Step != "" {
		bodies = append(bodies, a.Begins)
	}
	return bodies
}

// changes is what the agent wants different from the state of a session, and
// whether that is anything.
func (a *Agent) changes(s *loop.State) (sw event.Switched, some bool) {
	if route := a.asks().Info().Route(); route != s.Route {
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
	if !slices.Equal(a.Folders, s.Folders) {
		sw.Folders, some = append([]string{}, a.Folders...), true
	}
	return sw, some
}

// Tokens of the window that stay free for a reply, at least, and which part of a
// window that is small.
const (
	leastReserve = 20_000
	mostReserve  = 4
)

// window is what the model can be asked at once. A small one keeps a quarter
// free, as it would be compacted all the time else.
func (a *Agent) window() event.Window {
	info := a.asks().Info()
	w := event.Window{Tokens: info.Window, Reserve: max(info.MaxOutput, leastReserve)}
	if w.Tokens == 0 {
		return event.Window{}
	}
	w.Reserve = min(w.Reserve, w.Tokens/mostReserve)
	return w
}

func (a *Agent) limits(now event.Limits) event.Limits {
	if a.MaxTurns != 0 {
		now.Turns = max(a.MaxTurns, 0)
	}
	if a.MaxCost != 0 {
		now.Cost = max(a.MaxCost, 0)
	}
	if a.MaxTokens != 0 {
		now.Tokens = max(a.MaxTokens, 0)
	}
	if a.MaxTime != 0 {
		now.Seconds = max(a.MaxTime, 0).Seconds()
	}
	return now
}

// Answer runs the agent in a new session in memory and returns the text of its
// last reply. A run that does not stop as done is an error, a [*WaitingError] if it waits for
// somebody's decision.
func (a *Agent) Answer(ctx context.Context, text string) (answer string, err error) {
	s, err := a.Open(ctx, event.NewMemory("memory"))
	if err != nil {
		return "", err
	}
	defer s.Close()
	c := Conductor{Session: s, See: func(e event.Event) error {
		if b, ok := e.Body.(event.Replied); ok {
			answer = strings.TrimSpace(b.Parts.Text())
		}
		return nil
	}}
	if err := c.Run(ctx, event.Say(text)); err != nil {
		return answer, err
	}
	st := s.Status()
	switch {
	case len(st.Waiting) > 0:
		return answer, &WaitingError{Waiting: st.Waiting}
	case st.Stopped == nil || st.Stopped.Reason != event.ReasonDone:
		return answer, stoppedError(st.Stopped)
	}
	return answer, nil
}

func stoppedError(s *event.Stopped) error {
	if s == nil {
		return errors.New("the run did not stop")
	}
	return errors.New(strings.TrimSuffix(fmt.Sprintf("run stopped: %s: %s", s.Reason, s.Detail), ": "))
}
