// Package drive does what the loop asks for, one thing at a time, and appends the outcome.
//
// A [Driver] is built of parts, each in a file of its own. To follow a prompt, read in this order:
//
//	driver.go     a run: claim the session, then do what loop.State.Next says until it is over
//	journal.go    appends what the driver decides, and reads what others have appended
//	request.go    ask the model
//	judge.go      may a call happen?
//	calls.go      run calls concurrently; nested.go: calls that calls make
//	compose.go    the wrappers of the model and of tools, and the judges
//	compact.go, hooks.go, tools.go, workspace.go   the rest of what a run may need
//
// The log has everything that another driver needs to continue if the process dies.
package drive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// ErrBusy means that this process is driving the session already.
var ErrBusy = errors.New("the session is already running")

// Config is the configuration of a driver. Fields that inspan.Agent has too mean the same here.
type Config struct {
	Model   llm.Model
	Retry   request.Retry
	Tools   []tool.Tool
	Policy  policy.Policy // mode, rules and sensitive places
	Judges  []tool.Judge
	Hooks   []tool.Hook
	Secrets *redact.Secrets
	Env     tool.Env

	Dynamic    Dynamic
	Checkpoint func(ctx context.Context) (event.Checkpoint, error)
	Sync       func(ctx context.Context, last event.Workspace) ([]event.Body, error)

	Kind       string // kind of agent
	Unattended bool
	KeepJobs   bool
	KeepNone   bool
	AskTimeout time.Duration
	CallTime   time.Duration
	Parallel   int

	// Changes returns how the agent's settings differ from the state, and whether they do.
	Changes func(*loop.State) (event.Switched, bool)
	// Started is called when the first run begins, Stored with each stored event after it is folded. Both may
	// be nil.
	Started func()
	Stored  func(event.Event)
}

// Dynamic is inspan.Dynamic.
type Dynamic struct {
	Tools        func(ctx context.Context) (shown, hidden []tool.Tool)
	Directing    []string
	Proposed     func(ctx context.Context, p tool.Proposal) (tool.Tool, error)
	Servers      func(ctx context.Context, tell func(text string)) []event.Server
	Instructions func(path string) []event.Added
}

// Driver drives one session. Its methods must be called by one goroutine at a time, which has called
// [Driver.Acquire] and not released the session, unless they say that any goroutine may call them.
type Driver struct {
	cfg     *Config
	driving sync.Mutex
	started bool // a run has begun here
	joined  bool // the log has the agent's changes to the session's settings

	journal      *journal
	tools        *toolbox
	judging      *judging
	requests     *requests
	hooks        *hooks
	calls        *calls // of the run in progress
	seen         *seenFiles
	instructions *instructions
	workspace    *workspace
	jobs         *jobs
}

// Open returns a driver for the session in a log, given the state folded from the log.
func Open(ctx context.Context, cfg *Config, log event.Log, state *loop.State) (*Driver, error) {
	d := &Driver{cfg: cfg}
	d.journal = &journal{log: log, secrets: cfg.Secrets, state: state, before: d.before, after: d.after}
	d.jobs = &jobs{journal: d.journal}
	d.workspace = &workspace{cfg: cfg, journal: d.journal, jobs: d.jobs}
	d.journal.attach = d.workspace.attach
	d.tools = &toolbox{cfg: cfg, journal: d.journal, marker: &guard.Marker{}}
	d.seen = &seenFiles{journal: d.journal}
	d.judging = &judging{cfg: cfg, journal: d.journal, tools: d.tools, seen: d.seen}
	d.instructions = &instructions{cfg: cfg, journal: d.journal, asked: map[string]bool{}}
	d.hooks = &hooks{cfg: cfg, journal: d.journal, who: d.judging.who}
	d.requests = newRequests(cfg, d.journal)
	cfg.Secrets.Learn()
	return d, d.tools.gather(ctx)
}

// Create writes the first events of a new session. Opening returns them, given the tools that the model is told
// about.
func (d *Driver) Create(ctx context.Context, opening func(tools []llm.ToolSpec) []event.Body) error {
	release, err := d.lease(ctx)
	if err != nil {
		return err
	}
	bodies, err := d.journal.attach(ctx, opening(d.tools.specs))
	if err == nil {
		_, err = d.journal.log.AppendAs(ctx, event.Driver{}, d.cfg.Secrets.Bodies(bodies)...)
	}
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	d.journal.state, err = Fold(ctx, d.journal.log)
	return err
}

// Acquire reserves the session for this process until it is released. It fails with [ErrBusy] if this process
// drives it already, and as [event.Leaser] says if another process does.
func (d *Driver) Acquire(ctx context.Context) (release func() error, err error) {
	if !d.driving.TryLock() {
		return nil, ErrBusy
	}
	leased := false
	defer func() {
		if !leased { // Lease failed or panicked
			d.driving.Unlock()
		}
	}()
	give, err := d.lease(ctx)
	if err != nil {
		return nil, err
	}
	leased = true
	return func() error { defer d.driving.Unlock(); return give() }, nil
}

// lease makes this process the session's driver, if its log supports leases.
func (d *Driver) lease(ctx context.Context) (release func() error, err error) {
	l, ok := d.journal.log.(event.Leaser)
	if !ok {
		return func() error { return nil }, nil
	}
	return l.Release, l.Lease(ctx)
}

// Run appends the inputs and does what the state asks for until nothing is left to do: the run has stopped, or
// only decisions are missing. Each round of its loop appends or waits, and both pick up what others have sent.
// When Run returns, no call is running.
func (d *Driver) Run(ctx context.Context, inputs []event.Body, yield func(event.Event, error) bool) (err error) {
	if err := d.Begin(ctx, inputs, yield); err != nil {
		return err
	}
	limit := &keep.Deadline{Do: func() { d.TimeUp(ctx) }}
	defer limit.Stop()
	defer func() { d.calls.quit(ctx, err) }()
	for state := d.journal.state; err == nil; {
		d.calls.heedInterrupt()
		limit.Set(d.Deadline())
		next := state.Next()
		wait, waits := next.(loop.Wait)
		switch {
		case waits && len(d.calls.running) > 0:
			err = d.calls.suspendStalled(ctx)
			continue
		case d.spanEnds(next):
			err = d.workspace.checkpoint(ctx, true)
			continue
		case waits && len(overdue(wait.Calls)) == 0:
			return nil
		}
		switch n := next.(type) {
		case loop.Ask:
			err = d.ask(ctx, n)
		case loop.Judge:
			err = d.judging.judge(ctx, n.Calls)
		case loop.RunCalls:
			err = d.calls.start(ctx, n.Calls)
		case loop.Await:
			err = d.calls.await(ctx)
		case loop.Wait:
			_, err = d.journal.decide(ctx, overdue(n.Calls)...)
		case loop.End:
			_, err = d.journal.decide(ctx, bodies(n.Ended)...)
		case loop.Compact:
			err = d.compact(ctx, n)
		case loop.Prune:
			_, err = d.journal.decide(ctx, n.Pruned)
		case loop.Heal:
			_, err = d.journal.decide(ctx, n.Healed)
		case loop.Steer:
			_, err = d.journal.decide(ctx, n.Steered)
		case loop.Stop:
			err = d.stop(ctx, n.Stopped)
		}
	}
	return err
}

// Begin makes this driver the one that continues the session, and appends the inputs and what is new since the
// session was last driven. Yield shows every event from here on.
func (d *Driver) Begin(ctx context.Context, inputs []event.Body, yield func(event.Event, error) bool) error {
	claimed, err := d.claim(ctx, yield)
	if err != nil {
		return err
	}
	bodies, err := d.journal.attach(ctx, []event.Body{claimed})
	if err != nil {
		return err
	}
	state := d.journal.state
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(b event.Body) bool { return state.HasInput(event.Key(b)) })
	if !d.started && d.cfg.Started != nil {
		d.cfg.Started()
	}
	d.started = true
	if !d.joined {
		sw, some := d.cfg.Changes(state)
		tools, told := d.tools.retooled(sw.Route != "")
		if sw.Tools = tools; some || tools != nil {
			bodies = append(bodies, sw)
		}
		bodies = append(bodies, told...)
		bodies = append(append(bodies, d.tools.clashes()...), d.hooks.sessionStart(ctx)...)
	} else {
		bodies = append(bodies, d.tools.renewed(ctx)...)
	}
	bodies = append(bodies, d.jobs.lost(state.Jobs)...)
	bodies = append(bodies, d.newPermissions(append(bodies, inputs...))...)
	bodies = append(bodies, inputs...)
	was := state.Mode
	if err := d.journal.persist(ctx, func() ([]event.Body, error) { return bodies, nil }); err != nil {
		return err
	}
	d.joined = true
	if err := d.tools.meetServers(ctx); err != nil || d.journal.state.Mode == was {
		return err
	}
	return d.judging.reconsider(ctx)
}

// claim begins a run and returns the claim, which is appended first. The session must be leased.
func (d *Driver) claim(ctx context.Context, yield func(event.Event, error) bool) (event.Claimed, error) {
	d.journal.epoch, d.journal.yield = 0, yield
	d.calls = newCalls(d)
	d.seen.forget()
	d.workspace.begin()
	if err := d.journal.catchUp(ctx); err != nil {
		return event.Claimed{}, err
	}
	d.journal.epoch = d.journal.state.Epoch + 1
	return event.Claimed{
		Epoch: d.journal.epoch, By: thisProcess(), Writer: rand.Text(),
		Unattended: d.cfg.Unattended, Keeps: d.cfg.KeepJobs, NoKeep: d.cfg.KeepNone,
	}, nil
}

// thisProcess names this process for people.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// newPermissions returns a note for the model if the mode has changed, since its system prompt can't be edited.
func (d *Driver) newPermissions(bodies []event.Body) []event.Body {
	mode := d.journal.state.Mode
	for _, b := range bodies {
		if sw, ok := b.(event.Switched); ok && sw.Mode != "" {
			mode = sw.Mode
		}
	}
	if mode == d.journal.state.Mode || len(d.journal.state.Messages) == 0 {
		return nil
	}
	now := policy.Session{Mode: mode, Walls: d.cfg.Env.Walls, Throwaway: d.cfg.Env.Throwaway, Unattended: d.cfg.Unattended}
	return []event.Body{event.Added{Where: event.PlaceTail, Source: "mode", Text: "[from now on, " + now.Permissions() + "]"}}
}

// spanEnds reports whether calls that changed something have ended, so that a checkpoint must be taken before
// anything else.
func (d *Driver) spanEnds(next loop.Next) bool {
	_, more := next.(loop.RunCalls)
	return !more && d.workspace.span && !d.calls.changing()
}

// stop ends the run, unless it is done and a hook wants another round.
func (d *Driver) stop(ctx context.Context, stopped event.Stopped) error {
	if stopped.Reason == event.ReasonDone {
		if stored, err := d.hooks.runStop(ctx, stopped); err != nil || !stored {
			return err
		}
	}
	if err := d.tools.missedServers(ctx); err != nil {
		return err
	}
	now, still := d.journal.state.Next().(loop.Stop)
	if !still {
		return nil
	}
	_, err := d.journal.decide(ctx, now.Stopped)
	return err
}

// TimeUp appends that the time of the run is used up, which interrupts it. The fold checks whether that is
// true. If the log can't be written, the run ends anyway. Any goroutine may call it.
func (d *Driver) TimeUp(ctx context.Context) {
	_, _ = d.journal.log.Append(ctx, event.Cancelled{By: loop.By, Reason: "the time of the run is used up", Limit: event.ReasonMaxTime})
}

// Deadline returns when the time of the run will be used up; zero means never. It is slightly later than the
// state says, because logs cut times off to milliseconds.
func (d *Driver) Deadline() time.Time {
	at := d.journal.state.Deadline()
	if !at.IsZero() {
		at = at.Add(2 * time.Millisecond)
	}
	return at
}

// overdue denies calls whose time for a decision is over.
func overdue(waiting []loop.Call) []event.Body {
	var out []event.Body
	for _, c := range waiting {
		if !c.Until.IsZero() && !time.Now().Before(c.Until) {
			out = append(out, event.Decided{Call: c.ID, Question: c.WaitingSeq, By: loop.By, Reason: "nobody answered in time"})
		}
	}
	return out
}

// before is called with an event that is about to be folded, and drops cached facts that it invalidates.
func (d *Driver) before(body event.Body) {
	d.requests.cache.Observe(body)
	switch b := body.(type) {
	case event.Compacted, event.Rewound:
		clear(d.instructions.asked) // the additions are no longer in the conversation
	case event.Replied:
		d.seen.forget()
	case event.Ended:
		d.calls.deliver(b)
		d.seen.change(b.Files)
	}
}

// after passes on an event that was folded.
func (d *Driver) after(e event.Event) (err error) {
	defer fault.Recover("Lifecycle.Stored", nil, &err)
	if d.cfg.Stored != nil {
		d.cfg.Stored(e)
	}
	return nil
}

func bodies(ended []event.Ended) []event.Body {
	out := make([]event.Body, len(ended))
	for i, e := range ended {
		out[i] = e
	}
	return out
}

// View calls f with the state, which f must not keep or change. Any goroutine may call it.
func (d *Driver) View(f func(*loop.State)) {
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	f(d.journal.state)
}

// Log returns the log of the session. Any goroutine may call it.
func (d *Driver) Log() event.Log { return d.journal.log }

// Secrets returns the secrets of the session. Any goroutine may call it.
func (d *Driver) Secrets() *redact.Secrets { return d.cfg.Secrets }

// Append appends an input without its secrets, and returns its number. Any goroutine may call it.
func (d *Driver) Append(ctx context.Context, input event.Body) (seq uint64, err error) {
	stored, err := d.journal.log.Append(ctx, d.cfg.Secrets.Body(input))
	if err != nil {
		return 0, err
	}
	return stored[len(stored)-1].Seq, nil
}

// Close tells the hooks that the session is closed, if a run ever began here. Any goroutine may call it, once.
func (d *Driver) Close() error {
	if !d.joined {
		return nil
	}
	return d.hooks.sessionEnd()
}
