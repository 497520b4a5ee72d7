// Package drive performs the actions that the loop names, one at a time, and appends their outcomes.
//
// Each part of a [Driver] has a file of its own. To follow a prompt, read them in this order:
//
//	driver.go     a run: claim the session, then perform what loop.State.Next names until the run is over
//	journal.go    appends what the driver decides, and reads what others have appended
//	request.go    ask the model
//	judge.go      may a call happen?
//	calls.go      run calls concurrently; nested.go: calls within calls
//	compose.go    the wrappers of the model and of tools, and the judges
//	compact.go, hooks.go, tools.go, workspace.go, ...   the rest
//
// If the process dies, another driver continues from the log alone.
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

// ErrBusy means that this process already drives the session.
var ErrBusy = errors.New("the session is already running")

// Config is the configuration of a driver. Fields with the same name as in inspan.Agent have the same meaning.
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
	// Started is called when the first run begins. Stored is called with each stored event, after it is folded. Both
	// may be nil.
	Started func()
	Stored  func(event.Event)
}

// Dynamic is inspan.Dynamic.
type Dynamic struct {
	Tools         func(ctx context.Context) (shown, hidden []tool.Tool)
	SubagentTools []string
	Proposed      func(ctx context.Context, p tool.Proposal) (tool.Tool, error)
	Servers       func(ctx context.Context, tell func(text string)) []event.Server
	Instructions  func(path string) []event.Added
}

// Driver drives one session. Before calling its methods, a goroutine must acquire the session with [Driver.Acquire].
// Methods that any goroutine may call say so.
type Driver struct {
	cfg            *Config
	driving        sync.Mutex
	runStarted     bool // a run began in this process
	settingsStored bool // the log has the agent's changes to the session's settings

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
	d.journal = &journal{log: log, secrets: cfg.Secrets, state: state, beforeFold: d.beforeFold, afterFold: d.afterFold}
	d.jobs = &jobs{journal: d.journal}
	d.workspace = &workspace{cfg: cfg, journal: d.journal, jobs: d.jobs}
	d.journal.attach = d.workspace.attach
	d.tools = &toolbox{cfg: cfg, journal: d.journal, marker: &guard.Marker{}}
	d.seen = &seenFiles{journal: d.journal}
	d.judging = &judging{cfg: cfg, journal: d.journal, tools: d.tools, seen: d.seen}
	d.instructions = &instructions{cfg: cfg, journal: d.journal, asked: map[string]bool{}}
	d.hooks = &hooks{cfg: cfg, journal: d.journal, who: d.judging.who}
	d.requests = &requests{cfg: cfg, journal: d.journal, model: cfg.model()}
	cfg.Secrets.Learn()
	return d, d.tools.gather(ctx)
}

// Create writes the first events of a new session. Opening returns them, given the tools for the model.
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

// Acquire reserves the session for this process until it is released. It fails with [ErrBusy] if this process already
// drives it, and with an error of [event.Leaser] if another process does.
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
	releaseLease, err := d.lease(ctx)
	if err != nil {
		return nil, err
	}
	leased = true
	return func() error { defer d.driving.Unlock(); return releaseLease() }, nil
}

// lease makes this process the session's driver, if its log supports leases.
func (d *Driver) lease(ctx context.Context) (release func() error, err error) {
	l, ok := d.journal.log.(event.Leaser)
	if !ok {
		return func() error { return nil }, nil
	}
	return l.Release, l.Lease(ctx)
}

// Run appends the inputs and performs what the state names next, until the run has stopped or only waits for
// decisions. Each round appends or waits, and then folds the events of others. When Run returns, no call is running.
func (d *Driver) Run(ctx context.Context, inputs []event.Body, yield func(event.Event, error) bool) (err error) {
	if err := d.Begin(ctx, inputs, yield); err != nil {
		return err
	}
	limit := &keep.Deadline{Do: func() { d.TimeUp(ctx) }}
	defer limit.Stop()
	defer func() { d.calls.shutDown(ctx, err) }()
	for state := d.journal.state; err == nil; {
		d.calls.stopIfInterrupted()
		limit.Set(d.Deadline())
		next := state.Next()
		wait, waits := next.(loop.Wait)
		switch {
		case waits && len(d.calls.running) > 0:
			err = d.calls.suspendStalled(ctx)
			continue
		case d.needsCheckpoint(next):
			err = d.workspace.checkpoint(ctx, true)
			continue
		case waits && len(denyOverdue(wait.Calls)) == 0:
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
			_, err = d.journal.decide(ctx, denyOverdue(n.Calls)...)
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

// Begin claims the session and appends the inputs, after changes to settings, tools and jobs since the session was
// last driven. Yield gets every event from here on.
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
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(b event.Body) bool { return state.HasInput(loop.Key(b)) })
	if !d.runStarted && d.cfg.Started != nil {
		d.cfg.Started()
	}
	d.runStarted = true
	if !d.settingsStored {
		sw, changed := d.cfg.Changes(state)
		tools, message := d.tools.toolChanges(sw.Route != "")
		if sw.Tools = tools; changed || tools != nil {
			bodies = append(bodies, sw)
		}
		bodies = append(bodies, message...)
		bodies = append(append(bodies, d.tools.leftOutNotes()...), d.hooks.sessionStart(ctx)...)
	} else {
		bodies = append(bodies, d.tools.collectAgain(ctx)...)
	}
	bodies = append(bodies, d.jobs.lostEnds(state.Jobs)...)
	bodies = append(bodies, d.modeNote(append(bodies, inputs...))...)
	bodies = append(bodies, inputs...)
	was := state.Mode
	if err := d.journal.persist(ctx, func() ([]event.Body, error) { return bodies, nil }); err != nil {
		return err
	}
	d.settingsStored = true
	if err := d.tools.awaitServers(ctx); err != nil || d.journal.state.Mode == was {
		return err
	}
	return d.judging.reconsider(ctx)
}

// claim resets the parts for a new run and returns the claim, which must be appended first. The session must be
// leased.
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

// modeNote tells the model about a change of the mode, because the system prompt can't be edited.
func (d *Driver) modeNote(bodies []event.Body) []event.Body {
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

// needsCheckpoint reports whether a checkpoint is due because all calls that may change something have ended.
func (d *Driver) needsCheckpoint(next loop.Next) bool {
	if _, more := next.(loop.RunCalls); more || !d.workspace.spanOpen {
		return false
	}
	for _, c := range d.calls.running {
		if c.changes || c.isCaller {
			return false
		}
	}
	return true
}

// stop ends the run, unless a hook lets a finished run continue.
func (d *Driver) stop(ctx context.Context, stopped event.Stopped) error {
	if stopped.Reason == event.ReasonDone {
		rounds := d.journal.state.Run.HookRounds
		if rounds < maxRounds {
			// A hook may let the run continue. If its answer is not stored, the loop must be asked again.
			stored, err := d.hooks.decide(ctx, tool.Point{
				Moment: tool.RunStop, Why: string(stopped.Reason), Text: lastReply(d.journal.state), Rounds: rounds,
			})
			if err != nil || !stored {
				return err
			}
		}
	}
	if err := d.tools.storeServerTrouble(ctx); err != nil {
		return err
	}
	next, ok := d.journal.state.Next().(loop.Stop)
	if !ok {
		return nil
	}
	_, err := d.journal.decide(ctx, next.Stopped)
	return err
}

// TimeUp interrupts the run because its time is used up. The fold checks whether that is true. If the log can't be
// written, the run ends anyway. Any goroutine may call it.
func (d *Driver) TimeUp(ctx context.Context) {
	_, _ = d.journal.log.Append(ctx, event.Cancelled{By: loop.By, Reason: "the time of the run is used up", Limit: event.ReasonMaxTime})
}

// Deadline returns when the time of the run will be used up; zero means never. It is slightly later than in the state,
// because logs truncate times to milliseconds.
func (d *Driver) Deadline() time.Time {
	at := d.journal.state.Deadline()
	if !at.IsZero() {
		at = at.Add(2 * time.Millisecond)
	}
	return at
}

// denyOverdue returns denials for calls that no one decided on in time.
func denyOverdue(waiting []loop.Call) []event.Body {
	var out []event.Body
	for _, c := range waiting {
		if !c.Until.IsZero() && !time.Now().Before(c.Until) {
			out = append(out, event.Decided{Call: c.ID, Question: c.WaitingSeq, By: loop.By, Reason: "nobody answered in time"})
		}
	}
	return out
}

// beforeFold updates the parts for an event that is about to be folded: it drops outdated caches and delivers results.
func (d *Driver) beforeFold(body event.Body) {
	d.requests.cache.Observe(body)
	switch b := body.(type) {
	case event.Compacted, event.Rewound:
		clear(d.instructions.asked) // added instructions may no longer be in the conversation
	case event.Replied:
		d.seen.forget()
	case event.Ended:
		if w, waits := d.calls.openRequests[b.Call]; waits { // a caller waits for the result
			delete(d.calls.openRequests, b.Call)
			w.caller.giveResult(w, b)
		}
		d.seen.beforeChange(b.Files)
	}
}

// afterFold passes on an event that was folded.
func (d *Driver) afterFold(e event.Event) (err error) {
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

// View calls f with the state, which f must neither keep nor change. Any goroutine may call it.
func (d *Driver) View(f func(*loop.State)) {
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	f(d.journal.state)
}

// Log returns the log of the session. Any goroutine may call it.
func (d *Driver) Log() event.Log { return d.journal.log }

// Secrets returns the secrets of the session. Any goroutine may call it.
func (d *Driver) Secrets() *redact.Secrets { return d.cfg.Secrets }

// Append appends an input, with secrets removed, and returns its number. Any goroutine may call it.
func (d *Driver) Append(ctx context.Context, input event.Body) (seq uint64, err error) {
	stored, err := d.journal.log.Append(ctx, d.cfg.Secrets.Body(input))
	if err != nil {
		return 0, err
	}
	return stored[len(stored)-1].Seq, nil
}

// Close tells the hooks that the session is closed, if a run began in this process. It must be called at most once, by
// any goroutine.
func (d *Driver) Close() error {
	if !d.settingsStored {
		return nil
	}
	return d.hooks.sessionEnd()
}
