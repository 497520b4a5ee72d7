package drive

// A call may make other calls while it runs. Its tool asks the driver for each and waits; the driver judges and
// runs it between two events, like a call of the model.
//
// Three promises hold:
//
//   - A call that ended does not run again. After a crash, and after a wait for a person, the tool runs again
//     from its beginning. It gets the results that the log has of its calls in their original order, so a tool
//     that branches on results makes the same calls again.
//   - A loop of calls can be approved as one. A tool with AsksAhead continues behind a call that waits for a
//     person, and requests further calls that will need approval too. They are stored as requested ahead
//     (event.Judged.RequestedAhead), and the person is asked about all of them together.
//   - What was shown is what runs. A call requested ahead runs only when the tool, run again, has come to it
//     and no call before it is held (event.Wanted), and only if the facts it was judged by still hold. If not,
//     it is dropped and made again.
//
// How the fold treats such calls is in loop/made.go and loop/ahead.go.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/redact"
	"github.com/inspan/inspan/internal/kernel/request"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxDepth = 8                // how deep calls may nest
	aheadFor = 20 * time.Second // how long a tool may continue behind its first call that is held
)

var (
	errParentEnded = errors.New("the call that made it has ended")
	errAhead       = errors.New("it has gone on for too long behind a call that waits for a decision")
)

// maker makes the calls of one running call. The fields below "Run again" and "Ahead" belong to the driver;
// suspended is set by the call, and read after that has ended.
type maker struct {
	id     string // of the call
	wanted chan<- callRequest
	redact func(string) string
	ctx    context.Context // of the calls that it makes
	end    context.CancelCauseFunc
	ahead  bool // its tool may continue behind a held call

	// Run again.
	known     map[string]bool        // calls that the log had of it when it began
	asked     map[string]bool        // those of them that it has requested since
	past      []string               // calls that had ended when it began, in order; a call leaves it when its result is given back
	outOfTurn map[string]callRequest // requested before their turn
	results   int                    // how many results it was given

	// Ahead.
	held      bool        // it was told in this run that a call waits
	late      *time.Timer // stops it when it is late; nil if no call is held
	suspended bool        // it has ended for that reason
}

// callRequest is a call that another call wants to make.
type callRequest struct {
	by     *maker
	ctx    context.Context // the call is stopped when it ends
	call   llm.Call
	digest string // of the request
	idle   bool   // not a call: the maker requests nothing until a call that it waits for has ended
	result chan nestedResult
	held   chan struct{} // closed when the call waits for a decision and its maker need not wait
}

// nestedResult is the end of a call, and its position among the results that the maker was given.
type nestedResult struct {
	event.Ended
	nth int
}

// newMaker returns the maker of a call that is about to run.
func (cs *calls) newMaker(ctx context.Context, c loop.Call) *maker {
	m := &maker{
		id: c.ID, wanted: cs.wanted, redact: cs.cfg.Secrets.Vault.Redact, ahead: cs.tool(c).AsksAhead,
		known: map[string]bool{}, asked: map[string]bool{}, outOfTurn: map[string]callRequest{},
	}
	m.ctx, m.end = context.WithCancelCause(ctx)
	for _, made := range c.Nested {
		m.known[made.ID] = true
	}
	ended := slices.DeleteFunc(slices.Clone(c.Nested), func(made loop.Call) bool { return made.Ended == nil || made.RequestedAhead })
	slices.SortStableFunc(ended, func(a, b loop.Call) int { return cmp.Compare(a.EndedSeq, b.EndedSeq) })
	for _, made := range ended {
		m.past = append(m.past, made.ID)
	}
	cs.makers[c.ID] = m
	return m
}

// do implements [tool.Call.Do].
func (m *maker) do(ctx context.Context, name string, args json.RawMessage) (tool.Result, error) {
	return m.begin(ctx, name, args)()
}

// begin implements [tool.Call.Start].
func (m *maker) begin(ctx context.Context, name string, args json.RawMessage) (wait func() (tool.Result, error)) {
	failed := func(err error) func() (tool.Result, error) {
		return func() (tool.Result, error) { return tool.Result{}, err }
	}
	if loop.Depth(m.id) >= maxDepth {
		return failed(fmt.Errorf("%s: there are too many calls within calls", name))
	}
	call := request.Sound(llm.Call{Name: name, Args: redact.Texts(args, m.redact)})
	digest := tool.Digest(fmt.Appendf(nil, "%s\x00%s%s", name, call.Args, call.Invalid))
	w := callRequest{by: m, ctx: ctx, call: call, digest: digest, result: make(chan nestedResult, 1), held: make(chan struct{})}
	select {
	case m.wanted <- w:
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

// asResult returns the result for the call that made this one.
func (end nestedResult) asResult(name string) (tool.Result, error) {
	res := tool.Result{
		Parts: end.Parts, Files: end.Files, Cwd: end.Cwd, Exit: end.Exit, Todo: end.Todo, Show: end.Show, Job: end.Job, Left: end.Left,
		Untrusted: end.Untrusted, Nth: end.nth,
	}
	if end.Outcome == event.OutcomeOK {
		return res, nil
	}
	return res, &tool.CallError{Name: name, Outcome: string(end.Outcome), Text: end.Parts.Text()}
}

// idle implements [tool.Call.Waiting].
func (m *maker) idle() {
	if len(m.known) == 0 {
		return // no call can be left out
	}
	select {
	case m.wanted <- callRequest{by: m, idle: true}:
	case <-m.ctx.Done():
	}
}

// give gives the maker the result of a call.
func (m *maker) give(w callRequest, end event.Ended) {
	m.results++
	w.result <- nestedResult{end, m.results}
}

// makeCall makes a call for another, or gives back its result from the log.
func (cs *calls) makeCall(ctx context.Context, w callRequest) error {
	parent, runs := cs.journal.state.Call(w.by.id)
	if !runs || cs.makers[w.by.id] != w.by {
		return nil // it has ended, or runs again
	}
	if w.idle {
		cs.endIfStuck(parent, w.by)
		return nil
	}
	made, known := w.by.find(parent, w)
	if w.call.ID = made.ID; known {
		w.by.asked[made.ID] = true
	}
	switch {
	case known && made.RequestedAhead && !w.by.held:
		return cs.takeUp(ctx, w, made)
	case known && made.Ended != nil:
		w.by.giveBack(parent, w)
		return nil
	}
	if cs.waiting[w.call.ID] = w; !known {
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

// find returns the logged call that matches the request: the first with the same request that was not matched
// since the parent began, as concurrent calls may come in another order than before. Without a match it is a
// new call.
func (m *maker) find(parent loop.Call, w callRequest) (made loop.Call, known bool) {
	for _, made := range parent.Nested {
		dropped := made.RequestedAhead && made.Ended != nil && made.Ended.Outcome == event.OutcomeCancelled
		if m.known[made.ID] && made.RequestDigest == w.digest && !m.asked[made.ID] && !dropped {
			return made, true
		}
	}
	made.ID = loop.NestedID(m.id, len(parent.Nested)+1)
	return made, false
}

// diverged returns an error if the call, when run again, has left out a call of its first run: then its end
// does not count.
func (m *maker) diverged(parent loop.Call) error {
	for _, made := range parent.Nested {
		if m.known[made.ID] && !m.asked[made.ID] && !made.RequestedAhead {
			return fmt.Errorf("%w: it has left out the call %s %s", tool.ErrDiverged, made.Name, made.Args)
		}
	}
	return nil
}

// endIfStuck ends a call that would wait forever: everything it waits for has ended, but comes after a call
// that it has left out.
func (cs *calls) endIfStuck(parent loop.Call, m *maker) {
	for _, w := range cs.waiting {
		if w.by == m {
			return
		}
	}
	if err := m.diverged(parent); err != nil && len(m.outOfTurn) > 0 {
		m.end(err)
	}
}

// giveBack gives back the result of a call once those before it have been requested, together with results that
// were waiting for it.
func (m *maker) giveBack(parent loop.Call, w callRequest) {
	if m.outOfTurn[w.call.ID] = w; !slices.Contains(m.past, w.call.ID) { // it has ended since
		m.past = slices.Insert(m.past, 0, w.call.ID)
	}
	for len(m.past) > 0 {
		next, asked := m.outOfTurn[m.past[0]]
		if !asked {
			return
		}
		made, _ := parent.Find(next.call.ID)
		m.give(next, *made.Ended)
		delete(m.outOfTurn, made.ID)
		m.past = m.past[1:]
	}
}

// judgeNested returns the verdict on a nested call. Approved means that a person was there to approve. No reply
// holds the call, so its verdict does, even if the call can't run.
func (cs *calls) judgeNested(ctx context.Context, w callRequest, approved bool) ([]event.Body, error) {
	t := trial{judging: cs.judging, approved: approved}
	t.judged = event.Judged{Call: w.call.ID, Parent: w.by.id, Asked: w.digest, RequestedAhead: w.by.held}
	denied := t.judged
	denied.Action, denied.By, denied.Reason = tool.Deny, loop.By, "the call is not fit to run"
	var bodies []event.Body
	if limit, spent := cs.journal.state.Spent(); limit != "" { // the next turn would be too late
		denied.Reason = spent
		bodies = []event.Body{denied}
	} else {
		watched, done := cs.journal.interruptible(ctx)
		bodies = t.run(watched, w.call)
		done()
	}
	verdict, fit := bodies[0].(event.Judged)
	if !fit {
		verdict, bodies = denied, slices.Insert(bodies, 0, event.Body(denied))
	}
	if verdict.Tool = cmp.Or(verdict.Tool, w.call.Name); verdict.Args == nil {
		verdict.Args = w.call.Args
	}
	bodies[0] = verdict
	if end, over := bodies[len(bodies)-1].(event.Ended); over {
		end.Parent = w.by.id
		bodies[len(bodies)-1] = end
	}
	return bodies, ctx.Err()
}

// takeUp continues with a call that was requested ahead, now that its parent has come to it. If the facts it
// was judged by no longer hold, another call is made in its place.
func (cs *calls) takeUp(ctx context.Context, w callRequest, made loop.Call) error {
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
				Parts: llm.Say("Not run: it was judged before the calls that come before it had run, and that verdict holds no longer."),
			}
			if err := cs.journal.record(ctx, end); err != nil {
				return err
			}
			return cs.makeCall(ctx, w)
		}
		bodies = append(bodies, more...)
	}
	if made.Ended == nil {
		cs.waiting[made.ID] = w
	}
	if err := cs.journal.record(ctx, bodies...); err != nil {
		return err
	}
	if made.Ended == nil {
		cs.holdIfWaiting(w)
		return nil
	}
	parent, _ := cs.journal.state.Call(w.by.id)
	w.by.past = append(w.by.past, made.ID)
	w.by.giveBack(parent, w)
	return nil
}

// stillHolds compares the earlier decision on a call with its verdict now. It returns whether the call may run,
// and what must be stored. Question is the Waiting that comes with the verdict if that asks.
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

// holdIfWaiting tells the maker that its call waits for a decision, if the maker need not wait for it.
func (cs *calls) holdIfWaiting(w callRequest) {
	if _, waits := cs.waiting[w.call.ID]; waits && w.by.ahead && cs.journal.state.IsBlocked(w.call.ID) {
		cs.holdCall(w)
	}
}

func (cs *calls) holdCall(w callRequest) {
	delete(cs.waiting, w.call.ID)
	if w.by.held = true; w.by.late == nil {
		w.by.late = time.AfterFunc(aheadFor, func() { w.by.end(errAhead) })
	}
	close(w.held)
}

// holdAll tells the makers that their calls can't continue now, if they need not wait for them. It reports
// whether makers are still running that will end soon.
func (cs *calls) holdAll() (some bool) {
	for id, w := range cs.waiting {
		if _, runs := cs.running[id]; !runs && w.by.ahead && cs.makers[w.by.id] == w.by {
			cs.holdCall(w)
		}
	}
	for _, m := range cs.makers {
		_, runs := cs.running[m.id]
		some = some || runs && m.held
	}
	return some
}

// suspendStalled stops calls that only wait for decisions on calls that they have made. They run again after a
// decision.
func (cs *calls) suspendStalled(ctx context.Context) error {
	select {
	case w := <-cs.wanted:
		return cs.makeCall(ctx, w)
	default:
	}
	if cs.holdAll() {
		return cs.await(ctx)
	}
	return cs.halt(ctx, nil)
}

// revive runs suspended calls again that can continue.
func (cs *calls) revive(ctx context.Context) {
	for _, c := range cs.journal.state.Calling() {
		if _, runs := cs.running[c.ID]; !runs && cs.makers[c.ID] == nil && !c.Stalled() {
			cs.begin(ctx)
			cs.launch(c)
		}
	}
}

// deliver gives the result of a call to the call that made it.
func (cs *calls) deliver(end event.Ended) {
	if w, waits := cs.waiting[end.Call]; waits {
		delete(cs.waiting, end.Call)
		w.by.give(w, end)
	}
}

// scope returns the context of a call that is about to run. It ends with the call that made it, and when that
// no longer waits for it. The caller must call done.
func (cs *calls) scope(c loop.Call) (ctx context.Context, done func()) {
	m := cs.makers[c.Parent]
	if m == nil {
		return cs.ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	stop := func() bool { return true }
	if w, waits := cs.waiting[c.ID]; waits {
		stop = context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

// suspends reports whether a call that makes calls has not really ended: its tool has continued as far as
// possible without the held calls, and will run again.
func (cs *calls) suspends(end event.Ended) bool {
	m := cs.makers[end.Call]
	if m == nil || m.late == nil {
		return false
	}
	m.late.Stop()
	if cs.journal.state.Run.Cancelled || !m.suspended && !errors.Is(context.Cause(m.ctx), errAhead) {
		return false
	}
	delete(cs.makers, end.Call)
	return true
}

// storable returns the ends that can be stored. The end of a call with nested calls is kept back until theirs
// are stored; those that are still running are stopped.
func (cs *calls) storable(ends []event.Ended) []event.Body {
	all := slices.Concat(cs.pendingEnds, ends)
	cs.pendingEnds = nil
	slices.SortStableFunc(all, func(a, b event.Ended) int { return cmp.Compare(loop.Depth(b.Call), loop.Depth(a.Call)) })
	var out []event.Body
	for _, end := range all {
		m := cs.makers[end.Call]
		if m == nil {
			out = append(out, end)
			continue
		}
		m.end(errParentEnded)
		within := func(b event.Body) bool { return loop.IsNestedIn(b.(event.Ended).Call, end.Call) }
		if cs.runsFor(end.Call) || slices.ContainsFunc(out, within) {
			cs.pendingEnds = append(cs.pendingEnds, end)
			continue
		}
		delete(cs.makers, end.Call)
		c, _ := cs.journal.state.Call(end.Call)
		err := m.diverged(c)
		if err != nil && (end.Outcome == event.OutcomeOK || errors.Is(context.Cause(m.ctx), tool.ErrDiverged)) {
			end.Outcome, end.Class, end.Parts = event.OutcomeFailed, event.ErrorDiverged, llm.Say(err.Error())
		}
		out = append(out, bodies(c.Unfinished())...)
		if text := c.Account(); text != "" && end.Outcome != event.OutcomeOK {
			end.Parts = wrap.OnNewLine(end.Parts, text)
		}
		out = append(out, end)
	}
	return out
}

// runsFor reports whether a call that parent has made is running.
func (cs *calls) runsFor(parent string) bool {
	for id := range cs.running {
		if loop.IsNestedIn(id, parent) {
			return true
		}
	}
	return slices.ContainsFunc(cs.pendingEnds, func(end event.Ended) bool { return loop.IsNestedIn(end.Call, parent) })
}
