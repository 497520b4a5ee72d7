package inspan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// A call may make others while it runs. Its tool asks the driver for each and waits; the driver
// judges and runs it between two events, like a call of the model. What the log has of the calls
// of a tool that is run again is given back in the order in which it came, so that a tool which
// decides by what its calls bring makes the same calls again.

// mostDeep is how many calls above it a call may have.
const mostDeep = 8

// maker makes the calls of one call that runs.
type maker struct {
	calls *calls
	id    string          // of the call
	ctx   context.Context // of the calls that it makes
	end   context.CancelCauseFunc

	// Of the driver alone.
	told  int               // ends of which it was told
	past  []string          // calls that had ended when this one began, as they came; what is given back leaves it
	early map[string]wanted // asked for before their turn
	known map[string]bool   // calls that the log had of it when it began
	asked map[string]bool   // those of them that it has asked for since
	ahead
}

// wanted is a call that another wants to make.
type wanted struct {
	by    *maker
	ctx   context.Context // when it ends the call is stopped
	call  llm.Call
	asked string // digest of what is wanted
	idle  bool   // no call: its maker asks for nothing until one of those that it waits for has ended
	came  chan told
	held  chan struct{} // closed: it waits for a decision, and its maker need not
}

// told is how a call has ended, and the how manieth end that is of which its maker is told.
type told struct {
	event.Ended
	nth int
}

// maker is that of a call which is about to run.
func (cs *calls) maker(ctx context.Context, c loop.Call) *maker {
	m := &maker{calls: cs, id: c.ID, early: map[string]wanted{}, known: map[string]bool{}, asked: map[string]bool{}}
	m.may = cs.tools[cmp.Or(c.Tool, c.Name)].Ahead
	m.ctx, m.end = context.WithCancelCause(ctx)
	for _, made := range c.Made {
		m.known[made.ID] = true
	}
	ended := slices.DeleteFunc(slices.Clone(c.Made), func(made loop.Call) bool { return made.Ended == nil || made.Ahead })
	slices.SortStableFunc(ended, func(a, b loop.Call) int { return cmp.Compare(a.Over, b.Over) })
	for _, made := range ended {
		m.past = append(m.past, made.ID)
	}
	cs.makers[c.ID] = m
	return m
}

// do is [tool.Call.Do].
func (m *maker) do(ctx context.Context, name string, args json.RawMessage) (tool.Result, error) {
	return m.start(ctx, name, args)()
}

// start is [tool.Call.Begin].
func (m *maker) start(ctx context.Context, name string, args json.RawMessage) (wait func() (tool.Result, error)) {
	failed := func(err error) func() (tool.Result, error) {
		return func() (tool.Result, error) { return tool.Result{}, err }
	}
	if loop.Depth(m.id) >= mostDeep {
		return failed(fmt.Errorf("%s: there are too many calls within calls", name))
	}
	call := sound(llm.Call{Name: name, Args: mapTexts(args, m.calls.vault.Redact)})
	asked := tool.Digest(fmt.Appendf(nil, "%s\x00%s%s", name, call.Args, call.Invalid))
	w := wanted{by: m, ctx: ctx, call: call, asked: asked, came: make(chan told, 1), held: make(chan struct{})}
	select {
	case m.calls.wanted <- w:
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	case <-m.ctx.Done():
		return failed(context.Cause(m.ctx))
	}
	return func() (tool.Result, error) {
		select {
		case end := <-w.came:
			return brought(name, end)
		case <-w.held:
			return tool.Result{}, fmt.Errorf("%s: %w", name, tool.ErrHeld)
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		case <-m.ctx.Done():
			return tool.Result{}, context.Cause(m.ctx)
		}
	}
}

// idle is [tool.Call.Idle].
func (m *maker) idle() {
	if len(m.known) == 0 {
		return // nothing can be left out
	}
	select {
	case m.calls.wanted <- wanted{by: m, idle: true}:
	case <-m.ctx.Done():
	}
}

// tell tells it of the end of a call.
func (m *maker) tell(w wanted, end event.Ended) {
	m.told++
	w.came <- told{end, m.told}
}

// brought is what a call brings to the one that made it.
func brought(name string, end told) (tool.Result, error) {
	res := tool.Result{
		Parts: end.Parts, Files: end.Files, Cwd: end.Cwd, Exit: end.Exit, Todo: end.Todo, Show: end.Show, Job: end.Job, Left: end.Left,
		Untrusted: end.Untrusted, Nth: end.nth,
	}
	if end.Outcome == event.OutcomeOK {
		return res, nil
	}
	return res, &tool.CallError{Name: name, Outcome: string(end.Outcome), Text: end.Parts.Text()}
}

// make makes a call for another, or gives back what the log has of it.
func (cs *calls) make(ctx context.Context, w wanted) error {
	parent, runs := cs.state.Call(w.by.id)
	if !runs || cs.makers[w.by.id] != w.by {
		return nil // it has ended, or runs anew
	}
	if w.idle {
		cs.idled(parent, w.by)
		return nil
	}
	made, known := w.by.meant(parent, w)
	if w.call.ID = made.ID; known {
		w.by.asked[made.ID] = true
	}
	switch {
	case known && made.Ahead && !w.by.held:
		return cs.come(ctx, w, made)
	case known && made.Ended != nil:
		w.by.giveBack(parent, w)
		return nil
	}
	if cs.waiters[w.call.ID] = w; !known {
		bodies, err := cs.tried(ctx, w, false)
		if err == nil {
			err = cs.record(ctx, bodies...)
		}
		if err != nil {
			return err
		}
	}
	cs.hold(w)
	return nil
}

// idled ends a call that would wait for ever: all that its maker waits for has ended, and comes after a
// call that it has left out.
func (cs *calls) idled(parent loop.Call, m *maker) {
	for _, w := range cs.waiters {
		if w.by == m {
			return
		}
	}
	if err := m.diverged(parent); err != nil && len(m.early) > 0 {
		m.end(err)
	}
}

// meant is the call that the log has of what is wanted: the first that was asked for in the same
// words and not since the parent began. Calls side by side may come in another order than before.
// If there is none it is a new one.
func (m *maker) meant(parent loop.Call, w wanted) (made loop.Call, known bool) {
	for _, made := range parent.Made {
		if m.known[made.ID] && made.Wants == w.asked && !m.asked[made.ID] && !dropped(made) {
			return made, true
		}
	}
	made.ID = loop.MadeBy(m.id, len(parent.Made)+1)
	return made, false
}

// diverged is why the end of a call does not count: run again, it has left out a call of the first
// time. Nil if it does.
func (m *maker) diverged(parent loop.Call) error {
	for _, made := range parent.Made {
		if m.known[made.ID] && !m.asked[made.ID] && !made.Ahead {
			return fmt.Errorf("%w: it has left out the call %s %s", tool.ErrDiverged, made.Name, made.Args)
		}
	}
	return nil
}

// giveBack gives back what a call has brought once those before it have been asked for, and what
// waits for that.
func (m *maker) giveBack(parent loop.Call, w wanted) {
	if m.early[w.call.ID] = w; !slices.Contains(m.past, w.call.ID) { // it has ended since
		m.past = slices.Insert(m.past, 0, w.call.ID)
	}
	for len(m.past) > 0 {
		next, asked := m.early[m.past[0]]
		if !asked {
			return
		}
		made, _ := parent.Find(next.call.ID)
		m.tell(next, *made.Ended)
		delete(m.early, made.ID)
		m.past = m.past[1:]
	}
}

// tried is the verdict on a call that another makes, which a person may have approved before. As no reply
// holds the call the verdict does, also where the call is not fit to run.
func (cs *calls) tried(ctx context.Context, w wanted, approved bool) ([]event.Body, error) {
	t := trial{driver: cs.driver, approved: approved, judged: event.Judged{Call: w.call.ID, Parent: w.by.id, Asked: w.asked, Ahead: w.by.held}}
	denied := t.judged
	denied.Action, denied.By, denied.Reason = tool.Deny, loop.By, "the call is not fit to run"
	var bodies []event.Body
	if limit, spent := cs.state.Spent(); limit != "" { // the next turn would come too late
		denied.Reason = spent
		bodies = []event.Body{denied}
	} else {
		watched, done := cs.interruptible(ctx)
		bodies = t.hold(watched, w.call)
		done()
	}
	first, fit := bodies[0].(event.Judged)
	if !fit {
		first, bodies = denied, slices.Insert(bodies, 0, event.Body(denied))
	}
	if first.Tool = cmp.Or(first.Tool, w.call.Name); first.Args == nil {
		first.Args = w.call.Args
	}
	bodies[0] = first
	if end, unfit := bodies[len(bodies)-1].(event.Ended); unfit {
		end.Parent = w.by.id
		bodies[len(bodies)-1] = end
	}
	return bodies, ctx.Err()
}

// tell gives what a call has come to to the one that made it.
func (cs *calls) tell(end event.Ended) {
	if w, waits := cs.waiters[end.Call]; waits {
		delete(cs.waiters, end.Call)
		w.by.tell(w, end)
	}
}

// scope is the context of a call that is about to run: it ends with the call that made it, and
// once that waits for it no longer. done must be called.
func (cs *calls) scope(c loop.Call) (ctx context.Context, done func()) {
	m := cs.makers[c.Parent]
	if m == nil {
		return cs.ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	stop := func() bool { return true }
	if w, waits := cs.waiters[c.ID]; waits {
		stop = context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

var errParentEnded = errors.New("the call that made it has ended")

// ripe are the ends that can be stored. That of a call which has made others is kept until theirs
// are stored; those that still run are stopped.
func (cs *calls) ripe(ends []event.Ended) []event.Body {
	all := slices.Concat(cs.kept, ends)
	cs.kept = nil
	slices.SortStableFunc(all, func(a, b event.Ended) int { return cmp.Compare(loop.Depth(b.Call), loop.Depth(a.Call)) })
	var out []event.Body
	for _, end := range all {
		m := cs.makers[end.Call]
		if m == nil {
			out = append(out, end)
			continue
		}
		m.end(errParentEnded)
		within := func(b event.Body) bool { return loop.Within(b.(event.Ended).Call, end.Call) }
		if cs.runsFor(end.Call) || slices.ContainsFunc(out, within) {
			cs.kept = append(cs.kept, end)
			continue
		}
		delete(cs.makers, end.Call)
		c, _ := cs.state.Call(end.Call)
		err := m.diverged(c)
		if err != nil && (end.Outcome == event.OutcomeOK || errors.Is(context.Cause(m.ctx), tool.ErrDiverged)) {
			end.Outcome, end.Class, end.Parts = event.OutcomeFailed, event.ErrorDiverged, llm.Say(err.Error())
		}
		out = append(out, bodies(c.Unfinished())...)
		if text := c.Account(); text != "" && end.Outcome != event.OutcomeOK {
			end.Parts = onNewLine(end.Parts, text)
		}
		out = append(out, end)
	}
	return out
}

// runsFor reports whether a call runs that another has made.
func (cs *calls) runsFor(parent string) bool {
	for id := range cs.running {
		if loop.Within(id, parent) {
			return true
		}
	}
	return slices.ContainsFunc(cs.kept, func(end event.Ended) bool { return loop.Within(end.Call, parent) })
}

// rest stops the calls that wait for nothing but decisions on calls that they have made. They are
// run again once somebody has decided.
func (cs *calls) rest(ctx context.Context) error {
	select {
	case w := <-cs.wanted:
		return cs.make(ctx, w)
	default:
	}
	if cs.withhold() {
		return cs.await(ctx)
	}
	return cs.halt(ctx, nil)
}

// stopped reports whether a call that makes others was stopped to be run again, or has stopped itself.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, tool.ErrHeld) || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errInterrupted)
}

// revive runs the calls again that were stopped by rest and can go on.
func (cs *calls) revive(ctx context.Context) {
	for _, c := range cs.state.Calling() {
		if _, runs := cs.running[c.ID]; !runs && cs.makers[c.ID] == nil && !c.Stalled() {
			cs.begin(ctx)
			cs.launch(c)
		}
	}
}

// gathering notes what a tool that makes calls has seen: what it brings may hold some of it.
func gathering(t tool.Tool) tool.Tool {
	if !t.Calls {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		var untrusted atomic.Bool
		own, begin := *c, c.Begin
		own.Begin = func(ctx context.Context, name string, args json.RawMessage) func() (tool.Result, error) {
			wait := begin(ctx, name, args)
			return func() (tool.Result, error) {
				res, err := wait()
				if res.Untrusted {
					untrusted.Store(true)
				}
				return res, err
			}
		}
		own.Do = func(ctx context.Context, name string, args json.RawMessage) (tool.Result, error) {
			return own.Begin(ctx, name, args)()
		}
		res, err := run(ctx, &own)
		res.Untrusted = res.Untrusted || untrusted.Load()
		return res, err
	}
	return t
}
