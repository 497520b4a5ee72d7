package drive

// A tool may make nested calls while it runs. It sends the driver a request for each and waits. The driver judges and
// runs the nested call like a call of the model.
//
// This file keeps three promises:
//
//   - A finished call does not run again. After a crash or a wait for a person, the tool of the caller runs again from
//     its beginning. It gets the logged results of its nested calls in their original order, so a tool that branches
//     on results makes the same calls again.
//   - A person can approve a loop of calls at once. A tool with AsksAhead continues after a call that waits for
//     approval, and requests further calls. They are stored as requested ahead (event.Judged.RequestedAhead), and the
//     person decides on all of them together.
//   - A call runs exactly as the person saw it. A call requested ahead runs only when the tool, on its next run,
//     reaches it (event.Wanted), and only if the facts behind its verdict still hold. Otherwise it is dropped and made
//     again.
//
// loop/nested.go and loop/ahead.go fold these calls.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxDepth     = 8                // how deep calls may nest
	maxAheadTime = 20 * time.Second // how long a tool may continue after its first held call
)

var (
	errParentEnded  = errors.New("the call that made it has ended")
	errAheadTooLong = errors.New("it ran for too long after a call that waits for a decision")
)

// caller is a running call that may make nested calls. The driver owns the fields for replay and for running ahead,
// except for suspended: the call sets it, and the driver reads it after the call has ended.
type caller struct {
	id       string // of the call
	requests chan<- callRequest
	redact   func(string) string
	ctx      context.Context // of its nested calls
	cancel   context.CancelCauseFunc
	ahead    bool // its tool may continue after a held call

	// Replay of its earlier run.
	logged      map[string]bool        // nested calls that the log had when it started
	matched     map[string]bool        // logged calls that it has requested again
	replayOrder []string               // ended calls whose results it has yet to get, in their original order
	outOfTurn   map[string]callRequest // requests for results that are not due yet
	resultCount int                    // how many results it got

	// Running ahead.
	sawHeld    bool        // it learned in this run that a nested call is held
	aheadTimer *time.Timer // cancels it if it runs ahead for too long; nil if no call is held
	suspended  bool        // it ended because of a held call
}

// callRequest is a caller's request for a nested call.
type callRequest struct {
	caller *caller
	ctx    context.Context // stops the nested call when it ends
	call   llm.Call
	digest string // of the request
	idle   bool   // no call: the caller says that it requests nothing more until a nested call ends
	result chan nestedResult
	held   chan struct{} // closed when the nested call waits for a decision and the caller may run ahead
}

// nestedResult is the end of a nested call, and its position among the results that the caller got.
type nestedResult struct {
	event.Ended
	nth int
}

// newCaller registers a call that is about to run as a caller.
func (cs *calls) newCaller(ctx context.Context, c loop.Call) *caller {
	m := &caller{
		id: c.ID, requests: cs.nestedRequests, redact: cs.cfg.Secrets.Vault.Redact, ahead: cs.tool(c).AsksAhead,
		logged: map[string]bool{}, matched: map[string]bool{}, outOfTurn: map[string]callRequest{},
	}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	for _, made := range c.Nested {
		m.logged[made.ID] = true
	}
	ended := slices.DeleteFunc(slices.Clone(c.Nested), func(made loop.Call) bool { return made.Ended == nil || made.RequestedAhead })
	slices.SortStableFunc(ended, func(a, b loop.Call) int { return cmp.Compare(a.EndedSeq, b.EndedSeq) })
	for _, made := range ended {
		m.replayOrder = append(m.replayOrder, made.ID)
	}
	cs.callers[c.ID] = m
	return m
}

// do implements [tool.Call.Do].
func (m *caller) do(ctx context.Context, name string, args json.RawMessage) (tool.Result, error) {
	return m.start(ctx, name, args)()
}

// start implements [tool.Call.Start].
func (m *caller) start(ctx context.Context, name string, args json.RawMessage) (wait func() (tool.Result, error)) {
	failed := func(err error) func() (tool.Result, error) {
		return func() (tool.Result, error) { return tool.Result{}, err }
	}
	if loop.Depth(m.id) >= maxDepth {
		return failed(fmt.Errorf("%s: calls are nested too deeply, at most %d levels", name, maxDepth))
	}
	call := request.Sound(llm.Call{Name: name, Args: redact.Texts(args, m.redact)})
	digest := tool.Digest(fmt.Appendf(nil, "%s\x00%s%s", name, call.Args, call.Invalid))
	w := callRequest{caller: m, ctx: ctx, call: call, digest: digest, result: make(chan nestedResult, 1), held: make(chan struct{})}
	select {
	case m.requests <- w:
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	case <-m.ctx.Done():
		return failed(context.Cause(m.ctx))
	}
	return func() (tool.Result, error) {
		select {
		case end := <-w.result:
			return end.asResult(name)
		case <-w.held:
			return tool.Result{}, fmt.Errorf("%s: %w", name, tool.ErrHeld)
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		case <-m.ctx.Done():
			return tool.Result{}, context.Cause(m.ctx)
		}
	}
}

// asResult returns the result in the form that the caller's tool gets.
func (end nestedResult) asResult(name string) (tool.Result, error) {
	res := tool.Result{
		Parts: end.Parts, Files: end.Files, Cwd: end.Cwd, Exit: end.Exit, Todo: end.Todo, Show: end.Show, Job: end.Job, LeftProcesses: end.Left,
		Untrusted: end.Untrusted, Position: end.nth,
	}
	if end.Outcome == event.OutcomeOK {
		return res, nil
	}
	return res, &tool.CallError{Name: name, Outcome: string(end.Outcome), Text: end.Parts.Text()}
}

// signalIdle implements [tool.Call.Waiting].
func (m *caller) signalIdle() {
	if len(m.logged) == 0 {
		return // nothing is replayed, so it can't be stuck
	}
	select {
	case m.requests <- callRequest{caller: m, idle: true}:
	case <-m.ctx.Done():
	}
}

// giveResult gives the caller the result of a nested call.
func (m *caller) giveResult(w callRequest, end event.Ended) {
	m.resultCount++
	w.result <- nestedResult{end, m.resultCount}
}

// makeCall makes a nested call, or gives the caller its result from the log.
func (cs *calls) makeCall(ctx context.Context, w callRequest) error {
	parent, runs := cs.journal.state.Call(w.caller.id)
	if !runs || cs.callers[w.caller.id] != w.caller {
		return nil // the caller has ended or was started again
	}
	if w.idle {
		for _, open := range cs.openRequests {
			if open.caller == w.caller {
				return nil
			}
		}
		// It would wait forever if all results that it waits for come after a call that it has left out.
		if err := w.caller.divergence(parent); err != nil && len(w.caller.outOfTurn) > 0 {
			w.caller.cancel(err)
		}
		return nil
	}
	made, known := w.caller.match(parent, w)
	if w.call.ID = made.ID; known {
		w.caller.matched[made.ID] = true
	}
	switch {
	case known && made.RequestedAhead && !w.caller.sawHeld:
		return cs.reachCall(ctx, w, made)
	case known && made.Ended != nil:
		w.caller.replayResults(parent, w)
		return nil
	}
	if cs.openRequests[w.call.ID] = w; !known {
		bodies, err := cs.judgeNested(ctx, w, false)
		if err == nil {
			err = cs.journal.record(ctx, bodies...)
		}
		if err != nil {
			return err
		}
	}
	cs.holdIfWaiting(w)
	return nil
}

// match returns the logged call for a request: the first equal one that was not matched yet, because concurrent
// requests may come in another order than before. Without a match it returns a new call.
func (m *caller) match(parent loop.Call, w callRequest) (made loop.Call, known bool) {
	for _, made := range parent.Nested {
		dropped := made.RequestedAhead && made.Ended != nil && made.Ended.Outcome == event.OutcomeCancelled
		if m.logged[made.ID] && made.RequestDigest == w.digest && !m.matched[made.ID] && !dropped {
			return made, true
		}
	}
	made.ID = loop.NestedID(m.id, len(parent.Nested)+1)
	return made, false
}

// divergence returns an error if the caller, on its next run, has left out a nested call of an earlier run. Its
// result must not count then.
func (m *caller) divergence(parent loop.Call) error {
	for _, made := range parent.Nested {
		if m.logged[made.ID] && !m.matched[made.ID] && !made.RequestedAhead {
			return fmt.Errorf("%w: it has left out the call %s %s", hold.ErrDiverged, made.Name, made.Args)
		}
	}
	return nil
}

// replayResults gives the caller all results that are due: a logged result is due once the caller has requested all
// calls that ended before it.
func (m *caller) replayResults(parent loop.Call, w callRequest) {
	if m.outOfTurn[w.call.ID] = w; !slices.Contains(m.replayOrder, w.call.ID) { // it has ended since
		m.replayOrder = slices.Insert(m.replayOrder, 0, w.call.ID)
	}
	for len(m.replayOrder) > 0 {
		next, asked := m.outOfTurn[m.replayOrder[0]]
		if !asked {
			return
		}
		made, _ := parent.Find(next.call.ID)
		m.giveResult(next, *made.Ended)
		delete(m.outOfTurn, made.ID)
		m.replayOrder = m.replayOrder[1:]
	}
}

// judgeNested returns the verdict on a nested call. Approved means that a person already decided on it. The verdict
// stores the call itself, which is in no reply, so there is a verdict even if the call can't run.
func (cs *calls) judgeNested(ctx context.Context, w callRequest, approved bool) ([]event.Body, error) {
	t := trial{judging: cs.judging, approved: approved}
	t.judged = event.Judged{Call: w.call.ID, Parent: w.caller.id, Asked: w.digest, RequestedAhead: w.caller.sawHeld}
	denied := t.judged
	denied.Action, denied.By, denied.Reason = tool.Deny, loop.By, "the call can't run"
	var bodies []event.Body
	if limit, spent := cs.journal.state.Spent(); limit != "" { // the loop checks limits only between turns
		denied.Reason = spent
		bodies = []event.Body{denied}
	} else {
		watched, done := cs.journal.interruptible(ctx)
		bodies = t.run(watched, w.call)
		done()
	}
	verdict, ok := bodies[0].(event.Judged)
	if !ok {
		verdict, bodies = denied, slices.Insert(bodies, 0, event.Body(denied))
	}
	if verdict.Tool = cmp.Or(verdict.Tool, w.call.Name); verdict.Args == nil {
		verdict.Args = w.call.Args
	}
	bodies[0] = verdict
	if end, over := bodies[len(bodies)-1].(event.Ended); over {
		end.Parent = w.caller.id
		bodies[len(bodies)-1] = end
	}
	return bodies, ctx.Err()
}

// reachCall continues with a call that was requested ahead, now that its caller has reached it. If the facts behind
// its verdict no longer hold, it ends and is made again.
func (cs *calls) reachCall(ctx context.Context, w callRequest, made loop.Call) error {
	bodies := []event.Body{event.Wanted{Call: made.ID, Parent: made.Parent}}
	if made.Ended == nil && !made.Begun {
		again, err := cs.judgeNested(ctx, w, made.WaitingSeq > 0 && !made.Waits())
		if err != nil {
			return err
		}
		more, holds := stillHolds(made, cs.cfg.Secrets.Body(again[0]), again[len(again)-1])
		if !holds {
			end := event.Ended{
				Call: made.ID, Parent: made.Parent, Outcome: event.OutcomeCancelled,
				Parts: llm.Say("Not run: it was judged ahead of time. The calls before it have run since, and its verdict no longer holds."),
			}
			if err := cs.journal.record(ctx, end); err != nil {
				return err
			}
			return cs.makeCall(ctx, w)
		}
		bodies = append(bodies, more...)
	}
	if made.Ended == nil {
		cs.openRequests[made.ID] = w
	}
	if err := cs.journal.record(ctx, bodies...); err != nil {
		return err
	}
	if made.Ended == nil {
		cs.holdIfWaiting(w)
		return nil
	}
	parent, _ := cs.journal.state.Call(w.caller.id)
	w.caller.replayOrder = append(w.caller.replayOrder, made.ID)
	w.caller.replayResults(parent, w)
	return nil
}

// stillHolds compares the earlier verdict on a call with the current one. It returns events to store, and whether
// the call keeps its earlier verdict. Question is the Waiting event that comes with a verdict to ask.
func stillHolds(made loop.Call, verdict, question event.Body) (more []event.Body, holds bool) {
	now, ok := verdict.(event.Judged)
	if !ok || !SameJSON(now.Args, made.Args) || !sameEffects(now.Effects, made.Effects) {
		return nil, false
	}
	if now.Cost > 0 {
		more = append(more, now)
	}
	switch {
	case now.Action == tool.Allow && made.Waits():
		return append(more, event.Decided{Call: made.ID, Question: made.WaitingSeq, Allow: true, By: "the user", Rule: now.By}), true
	case now.Action == tool.Allow:
		return more, true
	}
	w, _ := question.(event.Waiting)
	return more, now.Action == tool.Ask && made.WaitingSeq > 0 && slices.Equal(w.Shown, made.Shown)
}

// holdIfWaiting tells a caller that may run ahead that its nested call waits for a decision.
func (cs *calls) holdIfWaiting(w callRequest) {
	if _, waits := cs.openRequests[w.call.ID]; waits && w.caller.ahead && cs.journal.state.IsBlocked(w.call.ID) {
		cs.holdCall(w)
	}
}

func (cs *calls) holdCall(w callRequest) {
	delete(cs.openRequests, w.call.ID)
	if w.caller.sawHeld = true; w.caller.aheadTimer == nil {
		w.caller.aheadTimer = time.AfterFunc(maxAheadTime, func() { w.caller.cancel(errAheadTooLong) })
	}
	close(w.held)
}

// suspendStalled stops callers that only wait for decisions on nested calls. They run again after a decision.
func (cs *calls) suspendStalled(ctx context.Context) error {
	select {
	case w := <-cs.nestedRequests:
		return cs.makeCall(ctx, w)
	default:
	}
	// Callers that may run ahead learn that their nested calls can't continue now. They will end soon.
	for id, w := range cs.openRequests {
		if _, runs := cs.running[id]; !runs && w.caller.ahead && cs.callers[w.caller.id] == w.caller {
			cs.holdCall(w)
		}
	}
	for _, m := range cs.callers {
		if _, runs := cs.running[m.id]; runs && m.sawHeld {
			return cs.await(ctx)
		}
	}
	return cs.stopAll(ctx, nil)
}

// callContext returns the context of a call that is about to run. For a nested call, it ends with the caller, and when
// the caller no longer waits for the result. Done must be called after the call.
func (cs *calls) callContext(c loop.Call) (ctx context.Context, done func()) {
	m := cs.callers[c.Parent]
	if m == nil {
		return cs.ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	stop := func() bool { return true }
	if w, waits := cs.openRequests[c.ID]; waits {
		stop = context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

// isSuspended reports whether a call returned only because nested calls are held. Its tool ran ahead as far as
// possible, and will run again after the decision.
func (cs *calls) isSuspended(end event.Ended) bool {
	m := cs.callers[end.Call]
	if m == nil || m.aheadTimer == nil {
		return false
	}
	m.aheadTimer.Stop()
	if cs.journal.state.Run.Cancelled || !m.suspended && !errors.Is(context.Cause(m.ctx), errAheadTooLong) {
		return false
	}
	delete(cs.callers, end.Call)
	return true
}

// storable returns the ends that can be stored. The end of a caller waits until the ends of its nested calls are
// stored. Nested calls that still run are stopped.
func (cs *calls) storable(ends []event.Ended) []event.Body {
	all := slices.Concat(cs.pendingEnds, ends)
	cs.pendingEnds = nil
	slices.SortStableFunc(all, func(a, b event.Ended) int { return cmp.Compare(loop.Depth(b.Call), loop.Depth(a.Call)) })
	var out []event.Body
	for _, end := range all {
		m := cs.callers[end.Call]
		if m == nil {
			out = append(out, end)
			continue
		}
		m.cancel(errParentEnded)
		within := func(b event.Body) bool { return loop.IsNestedIn(b.(event.Ended).Call, end.Call) }
		if cs.hasRunningNested(end.Call) || slices.ContainsFunc(out, within) {
			cs.pendingEnds = append(cs.pendingEnds, end)
			continue
		}
		delete(cs.callers, end.Call)
		c, _ := cs.journal.state.Call(end.Call)
		err := m.divergence(c)
		if err != nil && (end.Outcome == event.OutcomeOK || errors.Is(context.Cause(m.ctx), hold.ErrDiverged)) {
			end.Outcome, end.Class, end.Parts = event.OutcomeFailed, fault.ErrorDiverged, llm.Say(err.Error())
		}
		out = append(out, bodies(c.Unfinished())...)
		if text := c.Account(); text != "" && end.Outcome != event.OutcomeOK {
			end.Parts = wrap.OnNewLine(end.Parts, text)
		}
		out = append(out, end)
	}
	return out
}

// hasRunningNested reports whether a call below parent is running, or its end is not stored yet.
func (cs *calls) hasRunningNested(parent string) bool {
	for id := range cs.running {
		if loop.IsNestedIn(id, parent) {
			return true
		}
	}
	return slices.ContainsFunc(cs.pendingEnds, func(end event.Ended) bool { return loop.IsNestedIn(end.Call, parent) })
}
