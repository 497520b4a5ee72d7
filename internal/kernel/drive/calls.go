package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// defaultParallel is how many calls run at once unless the agent says otherwise.
const defaultParallel = 16

// calls runs the calls of a run. Each call has a goroutine that only runs it. The driver's goroutine does everything
// else.
//
// Checkpoints enclose calls that change something: one is taken before the first of them starts, and one when
// none of them is running any more and the loop has no call to start.
type calls struct {
	cfg          *Config
	journal      *journal
	tools        *toolbox
	judging      *judging
	seen         *seenFiles
	instructions *instructions
	workspace    *workspace
	jobs         *jobs

	ctx           context.Context // of the running calls
	stop          context.CancelCauseFunc
	running       map[string]runningCall // by id
	results       chan event.Ended
	progress      chan event.Progress
	announcedWait time.Time // the job deadline that a note in the log has announced; zero if none

	// State of nested calls, see nested.go.
	callers        map[string]*caller     // the running ones, by id
	openRequests   map[string]callRequest // requests whose call has not ended, by the id of the call
	nestedRequests chan callRequest
	pendingEnds    []event.Ended // ends of callers whose nested calls are still running
}

// runningCall describes a call while it runs.
type runningCall struct {
	changes   bool // it may change the workspace, itself or through children
	isCaller  bool // its nested calls may change the workspace
	unbounded bool // it does not count towards Parallel, because its children or nested calls do
}

func newCalls(d *Driver) *calls {
	parallel := d.cfg.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	return &calls{
		cfg: d.cfg, journal: d.journal, tools: d.tools, judging: d.judging, seen: d.seen, instructions: d.instructions,
		workspace: d.workspace, jobs: d.jobs,
		stop: func(error) {}, running: map[string]runningCall{},
		results: make(chan event.Ended, parallel), progress: make(chan event.Progress, 64),
		callers: map[string]*caller{}, openRequests: map[string]callRequest{}, nestedRequests: make(chan callRequest),
	}
}

// tool returns the tool that a call runs.
func (cs *calls) tool(c loop.Call) tool.Tool { return cs.tools.byName[cmp.Or(c.Tool, c.Name)] }

func (cs *calls) describe(c loop.Call) runningCall {
	delegates := cs.tool(c).Delegates
	return runningCall{changes: delegates || changes(c.Effects), isCaller: c.Caller, unbounded: delegates || c.Caller}
}

// fitting returns the first calls of the list, as many as there is room for.
func (cs *calls) fitting(list []loop.Call) []loop.Call {
	room := cap(cs.results)
	for _, c := range cs.running {
		if !c.unbounded {
			room--
		}
	}
	for i, c := range list {
		if cs.describe(c).unbounded {
			continue
		}
		if room--; room < 0 {
			return list[:i]
		}
	}
	return list
}

// start starts as many of the calls as fit. It stores their Started events before any of them has an effect. If none
// fits, it waits instead; if a checkpoint is due, it takes that instead.
func (cs *calls) start(ctx context.Context, list []loop.Call) error {
	list = cs.fitting(list)
	if len(list) == 0 {
		return cs.await(ctx)
	}
	changes := slices.ContainsFunc(list, func(c loop.Call) bool { return cs.describe(c).changes })
	if changes && !cs.workspace.spanOpen && cs.cfg.Checkpoint != nil && !cs.workspace.uncheckable {
		return cs.workspace.checkpoint(ctx, false)
	}
	var intents []event.Body
	for _, c := range list {
		intents = append(intents, event.Started{Call: c.ID, Parent: c.Parent, Sum: cs.tool(c).CodeDigest})
	}
	stored, err := cs.journal.decide(ctx, intents...)
	if err != nil || !stored {
		return err
	}
	cs.ensureContext(ctx)
	for _, c := range list {
		cs.launch(c)
	}
	return nil
}

// ensureContext makes the context of running calls if none is running.
func (cs *calls) ensureContext(ctx context.Context) {
	if len(cs.running) == 0 {
		cs.ctx, cs.stop = context.WithCancelCause(ctx)
	}
	cs.stopIfInterrupted()
}

// launch runs a call in a goroutine.
func (cs *calls) launch(c loop.Call) {
	cs.running[c.ID] = cs.describe(c)
	why := cs.judging.movedReason(cs.ctx, c)
	judged := cs.cfg.Secrets.Take(c, cs.journal.state.Mode, cs.cfg.Env.Walls)
	if judged.Lost {
		why = lostSecret
	}
	call := cs.toolCall(c, judged)
	ctx, done := cs.callContext(c)
	var m *caller
	if c.Caller {
		m = cs.newCaller(ctx, c)
		ctx, call.Do, call.Start, call.Waiting = m.ctx, m.do, m.start, m.signalIdle
		var err error
		if call.Time, err = cs.eventTime(c.Seq); err != nil {
			why = "Not run: the time of the call can't be read from the log: " + err.Error()
		}
	}
	go func() {
		defer done()
		if why != "" {
			cs.results <- event.Ended{Call: c.ID, Parent: c.Parent, Outcome: event.OutcomeFailed, Parts: llm.Say(why)}
			return
		}
		end, err := cs.run(ctx, call)
		if m != nil {
			m.suspended = errors.Is(err, tool.ErrHeld)
		}
		if end.Parent = c.Parent; c.Caller && ctx.Err() != nil && end.Outcome != event.OutcomeCancelled {
			end.Outcome, end.Class = event.OutcomeCancelled, fault.ErrorNone // regardless of what it returned
		}
		if tool.ReadOnly(c.Effects) && c.Parent == "" && !c.Caller {
			cs.journal.mu.Lock()
			end = cs.journal.state.ReferToEarlier(end) // the model may already see this result
			cs.journal.mu.Unlock()
		}
		cs.results <- end
	}()
}

// lostSecret tells the model why a call was not run.
const lostSecret = "Not run: the arguments contain a placeholder for a secret that was lost when the program was restarted. " +
	"Read the secret again where it came from, then repeat the call."

// toolCall returns a call in the form that its tool gets. Its environment permits no more than the verdict.
func (cs *calls) toolCall(c loop.Call, judged redact.Resolved) *tool.Call {
	state := cs.journal.state
	call := cs.judging.call(c.Call, judged.Args)
	if c.Tool != "" {
		call.Name, call.CalledAs = c.Tool, c.Name
	}
	if begun, runs := state.Call(c.ID); runs {
		call.Traceparent = text.SpanContext(state.Within, state.Session, fmt.Sprint("call-", begun.StartedSeq))
		if call.Env.Procs != nil {
			call.Env.Procs = hold.Named{Procs: call.Env.Procs, Call: call}
		}
	}
	call.Env = hold.Env(call, judged, c.WaitingSeq > 0, cs.judging.rules().Pass(), cs.cfg.Secrets.Vault)
	call.Env.Files = hold.Shown(call.Env.Files, c.Shown, judged.Hide)
	call.Cwd, call.Seen, call.Answer, call.Parent = cs.judging.cwd(), cs.seen.snapshot(), c.Answer, c.Parent
	progress := cs.progress
	call.Progress = func(text string) {
		select {
		case progress <- event.Progress{Call: c.ID, Text: text}:
		default: // the consumer is slow; the result has the whole output
		}
	}
	call.Finished, call.Store = cs.jobs.finished, state.Store
	if !cs.cfg.Unattended && !c.Caller {
		call.Ask = (&asker{cfg: cs.cfg, journal: cs.journal, call: call, turn: state.Run.Turn}).ask
	}
	return call
}

// eventTime returns when an event was stored; zero if there is no such event, as in logs of version 0.1.
func (cs *calls) eventTime(seq uint64) (time.Time, error) {
	for e, err := range cs.journal.log.Read(cs.ctx, max(seq, 1)-1) {
		return e.Time, err
	}
	return time.Time{}, nil
}

// run runs one call and returns its end, with the error of its tool.
func (cs *calls) run(ctx context.Context, c *tool.Call) (event.Ended, error) {
	began := time.Now()
	end := event.Ended{Call: c.ID, Outcome: event.OutcomeOK}
	t, ok := cs.tools.byName[c.Name]
	if !ok {
		end.Outcome, end.Class = event.OutcomeFailed, fault.ErrorUnknown
		end.Parts = llm.Say(fmt.Sprintf("There is no tool %q any more.", c.Name))
		return end, nil
	}
	if ctx.Err() != nil {
		end.Outcome, end.Parts = event.OutcomeCancelled, llm.Say("Not run: it was stopped before it started.")
		return end, nil //nolint:nilerr // the context was cancelled, the tool did not fail
	}
	res, err := t.Run(ctx, c)
	end.Parts, end.Files, end.Cwd, end.Exit, end.Todo = res.Parts, res.Files, res.Cwd, res.Exit, res.Todo
	end.Ways, end.Fetched = res.AllowFlags, res.Fetched
	end.Show, end.Untrusted, end.Lasting, end.Cost = res.Show, res.Untrusted, res.Lasting, res.Cost
	end.Job, end.Left, end.EndedJobs, end.Store, end.Proposal = res.Job, res.LeftProcesses, res.EndedJobs, res.Store, res.Proposal
	cs.jobs.add(end.Job)
	end.Millis, end.Class = time.Since(began).Milliseconds(), fault.ClassOf(err, res.Exit)
	switch {
	case errors.Is(err, fault.ErrUnstoppable):
		end.Outcome = event.OutcomeUnknown
		end.Parts = wrap.OnNewLine(end.Parts, "Outcome unknown: "+err.Error()+". Check before you repeat it.")
	case err != nil && ctx.Err() != nil:
		end.Outcome, end.Class = event.OutcomeCancelled, fault.ErrorNone
		end.Parts = wrap.OnNewLine(end.Parts, whyStopped(context.Cause(ctx)))
	case err != nil:
		end.Outcome = event.OutcomeFailed
		if said := (*tool.CallError)(nil); !errors.As(err, &said) || said.Text != end.Parts.Text() { // otherwise the parts already say it
			end.Parts = wrap.OnNewLine(end.Parts, err.Error())
		}
	case len(end.Parts) == 0:
		end.Parts = llm.Say("(no output)")
	}
	return end, err
}

// whyStopped tells the model why a call was stopped.
func whyStopped(cause error) string {
	switch {
	case errors.Is(cause, fault.ErrTimeUp):
		return "Stopped while it ran: the time of the run is used up."
	case errors.Is(cause, fault.ErrBreaker):
		return "Stopped while it ran: the run spent too much within a minute."
	case errors.Is(cause, fault.ErrInterrupted):
		return "Interrupted by the user while it ran."
	case errors.Is(cause, errParentEnded):
		return "Stopped while it ran: the call that made it has ended."
	}
	return "The program was stopped while it ran."
}

// await waits until a call ends, the log grows, a nested call is requested, or a deadline passes: for an answer, or
// for the jobs of an answered run.
func (cs *calls) await(ctx context.Context) error {
	for _, c := range cs.journal.state.Calling() { // callers that were suspended and can continue
		if _, runs := cs.running[c.ID]; !runs && cs.callers[c.ID] == nil && !c.Stalled() {
			cs.ensureContext(ctx)
			cs.launch(c)
		}
	}
	w, ok := cs.journal.log.(event.Waiter)
	if !ok && len(cs.running) == 0 {
		return errors.New("background work needs a log that implements event.Waiter, to notice its results")
	}
	state := cs.journal.state
	listening, stop := context.WithCancel(ctx)
	grown, after := make(chan error, 1), state.Seq
	var listener sync.WaitGroup
	if ok {
		listener.Go(func() {
			var err error
			defer func() { grown <- err }()
			defer fault.Recover("the log", nil, &err)
			err = w.Wait(listening, after)
		})
	}
	defer listener.Wait()
	defer stop()
	answerDue, stopAnswerDue := alarm(state.Due())
	defer stopAnswerDue()
	if until := state.JobDeadline(); !until.IsZero() && !until.Equal(cs.announcedWait) {
		cs.announcedWait = until
		return cs.journal.record(ctx, event.Note{Topic: "jobs", Text: state.DescribeJobWait()})
	}
	jobsDue, stopJobsDue := alarm(state.JobDeadline())
	defer stopJobsDue()
	for {
		select {
		case p := <-cs.progress:
			if err := cs.journal.show(p); err != nil {
				return err
			}
			continue
		case end := <-cs.results:
			return cs.storeEnds(ctx, end)
		case w := <-cs.nestedRequests:
			return cs.makeCall(ctx, w)
		case err := <-grown:
			return errors.Join(err, cs.journal.catchUp(ctx))
		case <-answerDue:
			_, err := cs.journal.decide(ctx, denyOverdue(state.Waiting())...)
			return err
		case <-jobsDue:
			_, err := cs.journal.log.Append(ctx, event.Cancelled{By: loop.By, Reason: "background jobs do not end", Limit: event.ReasonDone})
			return errors.Join(err, cs.journal.catchUp(ctx))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// alarm returns a channel that receives at the given time; never if it is zero.
func alarm(t time.Time) (rings <-chan time.Time, stop func() bool) {
	if t.IsZero() {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(time.Until(t))
	return timer.C, timer.Stop
}

// storeEnds stores the end of a call, and of others that ended meanwhile, even if ctx has ended.
func (cs *calls) storeEnds(ctx context.Context, first event.Ended) error {
	ends := []event.Ended{first}
	for len(cs.results) > 0 {
		ends = append(ends, <-cs.results)
	}
	for _, end := range ends {
		cs.workspace.callEnded(end, cs.running[end.Call].changes)
		delete(cs.running, end.Call)
	}
	ends = slices.DeleteFunc(ends, cs.isSuspended)
	cs.cfg.Secrets.Learn() // a tool may have received a token
	whole := context.WithoutCancel(ctx)
	for batch := cs.storable(ends); len(batch) > 0; batch = cs.storable(nil) {
		if err := cs.journal.record(whole, slices.Concat(batch, cs.instructions.forTouched(batch))...); err != nil {
			return err
		}
	}
	if len(cs.running) == 0 {
		cs.stop(nil)
	}
	return nil
}

// stopIfInterrupted stops the running calls if the run was cancelled.
func (cs *calls) stopIfInterrupted() {
	if cs.journal.state.Run.Cancelled {
		cs.stop(cs.journal.interruption())
	}
}

// shutDown stops the calls when the driver ends, and waits for them. It stores their results, unless failed says
// that the log failed.
func (cs *calls) shutDown(ctx context.Context, failed error) {
	if ctx.Err() != nil || errors.Is(failed, ErrConsumerGone) {
		failed = nil
	}
	whole := context.WithoutCancel(ctx)
	if failed = cs.stopAll(whole, failed); failed != nil {
		return
	}
	if cs.workspace.spanOpen {
		_ = cs.workspace.checkpoint(whole, true)
	}
	if cs.workspace.everChanged && cs.journal.state.Run.Active {
		_ = cs.workspace.save(whole) // if this fails, the next driver does it
	}
}

// stopAll stops the calls and waits for them. It stores their results unless failed is set. A caller that is stopped
// has not ended: the next driver runs it again.
func (cs *calls) stopAll(ctx context.Context, failed error) error {
	cs.stop(context.Canceled)
	for len(cs.running) > 0 {
		end := <-cs.results
		if cs.callers[end.Call] != nil && end.Outcome == event.OutcomeCancelled && !cs.journal.state.Run.Cancelled {
			delete(cs.running, end.Call)
			delete(cs.callers, end.Call)
			continue
		}
		if failed == nil {
			failed = cs.storeEnds(ctx, end)
		}
		delete(cs.running, end.Call)
		if errors.Is(failed, ErrConsumerGone) {
			failed = nil // the log still works, so the other results are stored
		}
	}
	return failed
}
