package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// usualParallel is how many calls run at once where the agent does not say.
const usualParallel = 16

// calls are those that a driver runs. Each has its own goroutine, which does nothing but
// run it; everything else is done by the driver, between two events.
//
// Checkpoints stand around calls that change something: one is taken before the first of
// them starts, and one when none of them runs any more and the loop has no call to start.
type calls struct {
	*driver
	ctx      context.Context // of those that run
	stop     context.CancelCauseFunc
	running  map[string]doing  // by id
	makers   map[string]*maker // of those of them that make calls, by id
	waiters  map[string]wanted // calls that were made by those, and have not ended, by id
	wanted   chan wanted
	kept     []event.Ended // of those that have made calls which still run
	results  chan event.Ended
	progress chan event.Progress
	span     bool // a checkpoint was taken before calls, and none after
	changed  bool // calls that may have changed the workspace have ended since its state was kept
	leaves   bool // calls have left something behind that goes on
	touched  bool // such calls were made, and may have left something behind that changes it still
}

// doing is what counts of a call while it runs.
type doing struct {
	changes bool // it may change the workspace, itself or by others
	makes   bool // it makes calls, of which that may be known later
	outside bool // it takes no room: there is a bound of its own for those who work for it
}

// newDriver is one for a session that nobody else drives, whose events yield is shown.
func newDriver(s *Session, yield func(event.Event, error) bool) *driver {
	d := &driver{journal: &journal{Session: s, yield: yield}, seen: &seen{Session: s}}
	d.journal.saw, d.calls = d.saw, newCalls(d)
	return d
}

func newCalls(d *driver) *calls {
	parallel := d.agent.MaxParallel
	if parallel <= 0 {
		parallel = usualParallel
	}
	return &calls{
		driver: d, stop: func(error) {}, running: map[string]doing{}, makers: map[string]*maker{}, waiters: map[string]wanted{},
		wanted:  make(chan wanted),
		results: make(chan event.Ended, parallel), progress: make(chan event.Progress, 64),
	}
}

// fitting are the first of the calls, as far as there is room for them.
func (cs *calls) fitting(calls []loop.Call) []loop.Call {
	room := cap(cs.results)
	for _, now := range cs.running {
		if !now.outside {
			room--
		}
	}
	for i, c := range calls {
		if cs.doing(c).outside {
			continue
		}
		if room--; room < 0 {
			return calls[:i]
		}
	}
	return calls
}

func (cs *calls) doing(c loop.Call) doing {
	delegates := cs.tool(c).Delegates
	return doing{changes: delegates || changes(c.Effects), makes: c.Caller, outside: delegates || c.Caller}
}

// tool is what a call runs.
func (cs *calls) tool(c loop.Call) tool.Tool { return cs.tools[cmp.Or(c.Tool, c.Name)] }

// changes reports whether effects may change the workspace: what is thrown away does not.
func changes(effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool { return !e.Throwaway && !tool.ReadOnly([]tool.Effect{e}) })
}

// changing reports whether one that runs may change the workspace.
func (cs *calls) changing() bool {
	for _, now := range cs.running {
		if now.changes || now.makes {
			return true
		}
	}
	return false
}

// start starts the first of the calls for which there is room. The intent to run is
// stored before the first effect of any.
func (cs *calls) start(ctx context.Context, calls []loop.Call) error {
	calls = cs.fitting(calls)
	if len(calls) == 0 {
		return cs.await(ctx)
	}
	changes := slices.ContainsFunc(calls, func(c loop.Call) bool { return cs.doing(c).changes })
	if changes && !cs.span && cs.keeps() {
		return cs.checkpoint(ctx, false)
	}
	var intents []event.Body
	for _, c := range calls {
		intents = append(intents, event.Started{Call: c.ID, Parent: c.Parent, Sum: cs.tool(c).Sum})
	}
	stored, err := cs.decide(ctx, intents...)
	if err != nil || !stored {
		return err
	}
	cs.begin(ctx)
	for _, c := range calls {
		cs.launch(c)
	}
	return nil
}

// begin makes the context of calls that run, if none does.
func (cs *calls) begin(ctx context.Context) {
	if len(cs.running) == 0 {
		cs.ctx, cs.stop = context.WithCancelCause(ctx)
	}
	cs.heed()
}

// launch runs a call beside the driver.
func (cs *calls) launch(c loop.Call) {
	cs.running[c.ID] = cs.doing(c)
	why := strayed(cs.ctx, cs.driver, c)
	k := cs.noted(c, cs.state.Mode, cs.agent.Env.Walls)
	if k.lost {
		why = lostSecret
	}
	call := cs.runnable(c, k)
	ctx, done := cs.scope(c)
	var makes *maker
	if c.Caller {
		makes = cs.maker(ctx, c)
		ctx, call.Do, call.Begin, call.Idle = makes.ctx, makes.do, makes.start, makes.idle
		var err error
		if call.Time, err = cs.timeOf(c.Seq); err != nil {
			why = "Not run: when it was made can't be read: " + err.Error()
		}
	}
	go func() {
		defer done()
		if why != "" {
			cs.results <- event.Ended{Call: c.ID, Parent: c.Parent, Outcome: event.OutcomeFailed, Parts: llm.Say(why)}
			return
		}
		end, err := cs.run(ctx, call)
		if makes != nil {
			makes.gave = errors.Is(err, tool.ErrHeld)
		}
		if end.Parent = c.Parent; c.Caller && ctx.Err() != nil && end.Outcome != event.OutcomeCancelled {
			end.Outcome, end.Class = event.OutcomeCancelled, event.ErrorNone // whatever it made of that
		}
		if tool.ReadOnly(c.Effects) && c.Parent == "" && !c.Caller {
			end = cs.again(end)
		}
		cs.results <- end
	}()
}

// lostSecret tells the model why a call was not run.
const lostSecret = "Not run: a placeholder in its arguments stands for a secret that is not known any more since the program was started again. " +
	"Read the secret again where it came from, then repeat the call."

// runnable is a call as its tool gets it.
func (cs *calls) runnable(c loop.Call, k known) *tool.Call {
	call := cs.call(c.Call, k.args)
	if c.Tool != "" {
		call.Name, call.As = c.Tool, c.Name
	}
	if begun, runs := cs.state.Call(c.ID); runs {
		call.Traceparent = event.SpanContext(cs.state.Within, cs.state.Session, fmt.Sprint("call-", begun.Started))
		if call.Env.Procs != nil {
			call.Env.Procs = telling{call.Env.Procs, call}
		}
	}
	call.Env = held(call, k, c.Asked > 0, cs.rules().Pass(), cs.vault)
	call.Env.Files = asShown(call.Env.Files, c.Shown, k.stored)
	call.Cwd, call.Seen, call.Answer, call.Parent = cs.cwd(), cs.seen.now(), c.Answer, c.Parent
	progress := cs.progress
	call.Progress = func(text string) {
		select {
		case progress <- event.Progress{Call: c.ID, Text: text}:
		default: // whoever watches is behind; the result will hold it all
		}
	}
	call.Finished, call.Store = cs.jobEnded, cs.state.Store
	if !cs.agent.Unattended && !c.Caller {
		call.Ask = (&asker{Session: cs.Session, call: call, turn: cs.state.Run.Turn}).ask
	}
	return call
}

// timeOf is when an event was stored. Without an error there is none of that number, as in logs of version 0.1.
func (cs *calls) timeOf(seq uint64) (time.Time, error) {
	for e, err := range cs.log.Read(cs.ctx, max(seq, 1)-1) {
		return e.Time, err
	}
	return time.Time{}, nil
}

// await lets calls and children work until a call has ended, somebody has appended to the
// log, or it is too late for an answer.
func (cs *calls) await(ctx context.Context) error {
	cs.revive(ctx)
	w, ok := cs.log.(event.Waiter)
	if !ok && len(cs.running) == 0 {
		return errors.New("the log can't be waited for, which what goes on in the background needs")
	}
	listening, stop := context.WithCancel(ctx)
	grown, after := make(chan error, 1), cs.state.Seq
	var listener sync.WaitGroup
	if ok {
		listener.Go(func() {
			var err error
			defer func() { grown <- err }()
			defer caught("the log", nil, &err)
			err = w.Wait(listening, after)
		})
	}
	defer listener.Wait()
	defer stop()
	late, stopLate := at(cs.state.Due())
	defer stopLate()
	if until := cs.state.Patience(); !until.IsZero() && !until.Equal(cs.awaits) {
		cs.awaits = until
		return cs.record(ctx, event.Note{Topic: "jobs", Text: cs.state.Awaited()})
	}
	enough, stopEnough := at(cs.state.Patience())
	defer stopEnough()
	for {
		select {
		case p := <-cs.progress:
			if err := cs.show(p); err != nil {
				return err
			}
			continue
		case end := <-cs.results:
			return cs.ended(ctx, end)
		case w := <-cs.wanted:
			return cs.make(ctx, w)
		case err := <-grown:
			return errors.Join(err, cs.catchUp(ctx))
		case <-late:
			_, err := cs.decide(ctx, overdue(cs.state.Waiting())...)
			return err
		case <-enough:
			return cs.impatient(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// at rings when a time has come; never if it is zero.
func at(t time.Time) (rings <-chan time.Time, stop func() bool) {
	if t.IsZero() {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(time.Until(t))
	return timer.C, timer.Stop
}

// ended stores the result of a call, and of those that have ended meanwhile. A result
// that exists is stored, even if ctx has ended.
func (cs *calls) ended(ctx context.Context, first event.Ended) error {
	ends := []event.Ended{first}
	for len(cs.results) > 0 {
		ends = append(ends, <-cs.results)
	}
	for _, end := range ends {
		if cs.running[end.Call].changes {
			cs.changed, cs.touched = true, true
		}
		cs.leaves = cs.leaves || end.Left
		delete(cs.running, end.Call)
	}
	ends = slices.DeleteFunc(ends, cs.rests)
	cs.learn() // a tool may have got a token while it ran
	whole := context.WithoutCancel(ctx)
	for batch := cs.ripe(ends); len(batch) > 0; batch = cs.ripe(nil) {
		carried, err := cs.carried(whole)
		if err != nil {
			return err
		}
		if err := cs.record(whole, slices.Concat(batch, cs.nested(batch), carried)...); err != nil {
			return err
		}
	}
	if len(cs.running) == 0 {
		cs.stop(nil)
	}
	return nil
}

// heed stops the calls of a run that was interrupted.
func (cs *calls) heed() {
	if cs.state.Run.Cancelled {
		cs.stop(cs.interrupt())
	}
}

// quit stops the calls when the driver ends, and waits for them. What they bring is stored,
// unless failed says that nothing can be stored any more.
func (cs *calls) quit(ctx context.Context, failed error) {
	if ctx.Err() != nil || errors.Is(failed, errBroken) {
		failed = nil
	}
	whole := context.WithoutCancel(ctx)
	if failed = cs.halt(whole, failed); failed != nil {
		return
	}
	if cs.span {
		_ = cs.checkpoint(whole, true)
	}
	if cs.state.Run.Active {
		bodies, err := cs.left(whole)
		if err == nil && len(bodies) > 0 {
			_ = cs.record(whole, bodies...)
		}
	}
}

// halt stops the calls and waits for them. What they bring is stored, if nothing has failed. One
// that makes calls and was stopped has not ended: whoever drives the session next runs it again.
func (cs *calls) halt(ctx context.Context, failed error) error {
	cs.stop(context.Canceled)
	for len(cs.running) > 0 {
		end := <-cs.results
		delete(cs.running, end.Call)
		if cs.makers[end.Call] != nil && end.Outcome == event.OutcomeCancelled && !cs.state.Run.Cancelled {
			delete(cs.makers, end.Call)
			continue
		}
		if failed == nil {
			failed = cs.ended(ctx, end)
		}
		if errors.Is(failed, errBroken) {
			failed = nil // nobody looks, and the rest is stored all the same
		}
	}
	return failed
}

// run runs one call and says how it ended, with the error of its tool.
func (cs *calls) run(ctx context.Context, c *tool.Call) (event.Ended, error) {
	began := time.Now()
	end := event.Ended{Call: c.ID, Outcome: event.OutcomeOK}
	t, ok := cs.tools[c.Name]
	if !ok {
		end.Outcome, end.Class = event.OutcomeFailed, event.ErrorArguments
		end.Parts = llm.Say(fmt.Sprintf("There is no tool %q any more.", c.Name))
		return end, nil
	}
	if ctx.Err() != nil {
		end.Outcome, end.Parts = event.OutcomeCancelled, llm.Say("Not run: it was stopped before it began.")
		return end, nil //nolint:nilerr // the context says so, and no tool
	}
	res, err := t.Run(ctx, c)
	end.Parts, end.Files, end.Cwd, end.Exit, end.Todo = res.Parts, res.Files, res.Cwd, res.Exit, res.Todo
	end.Ways, end.Fetched = res.Ways, res.Fetched
	end.Show, end.Untrusted, end.Lasting, end.Cost = res.Show, res.Untrusted, res.Lasting, res.Cost
	end.Job, end.Left, end.Told, end.Store, end.Proposal = res.Job, res.Left, res.Told, res.Store, res.Proposal
	cs.began(end.Job)
	end.Millis, end.Class = time.Since(began).Milliseconds(), classOf(err, res.Exit)
	switch {
	case errors.Is(err, errLeft):
		end.Outcome = event.OutcomeUnknown
		end.Parts = onNewLine(end.Parts, "Outcome unknown: "+err.Error()+". Check before you repeat it.")
	case err != nil && ctx.Err() != nil:
		end.Outcome, end.Class = event.OutcomeCancelled, event.ErrorNone
		end.Parts = onNewLine(end.Parts, whyStopped(context.Cause(ctx)))
	case err != nil:
		end.Outcome = event.OutcomeFailed
		if said := (*tool.CallError)(nil); !errors.As(err, &said) || said.Text != end.Parts.Text() { // else it stands there
			end.Parts = onNewLine(end.Parts, err.Error())
		}
	case len(end.Parts) == 0:
		end.Parts = llm.Say("(no output)")
	}
	return end, err
}

// onNewLine is a result with a text on a line of its own behind it.
func onNewLine(parts llm.Parts, text string) llm.Parts {
	if before := parts.Text(); before != "" && !strings.HasSuffix(before, "\n") {
		text = "\n" + text
	}
	return append(parts[:len(parts):len(parts)], llm.Text{Text: text})
}

// whyStopped tells the model why a call was stopped.
func whyStopped(cause error) string {
	switch {
	case errors.Is(cause, errLate):
		return "Stopped while it ran: the time of the run is used up."
	case errors.Is(cause, errInterrupted):
		return "Interrupted by the user while it ran."
	case errors.Is(cause, errParentEnded):
		return "Stopped while it ran: the call that made it has ended."
	}
	return "The program was stopped while it ran."
}

// again is the end of a call as the log is to have it, if the model sees its result already.
func (cs *calls) again(end event.Ended) event.Ended {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.state.Again(end)
}
