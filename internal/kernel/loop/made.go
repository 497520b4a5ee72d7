package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// A call may make others while it runs (event.Judged.Parent). They are kept with it, each with its result,
// until it has ended, so that a tool that is run again learns the results of its calls. They have a table of
// their own: a call that makes others runs alone in its reply, so only calls with the same parent can conflict,
// and none can wait for one that waits for it.

// madeBy separates the id of the parent from the number of the call.
const madeBy = "/"

// MadeBy returns the id of the nth call that parent makes.
func MadeBy(parent string, n any) string { return fmt.Sprint(parent, madeBy, n) }

// Depth returns how many calls are above the call with this id.
func Depth(id string) int { return strings.Count(id, madeBy) }

// Within reports whether a call was made by parent, or by a call that parent made.
func Within(id, parent string) bool { return strings.HasPrefix(id, parent+madeBy) }

// seek returns a call of the last reply or one nested in it, and its table. The call must be in one of the
// phases or, if none is given, not have ended. It returns nil if there is none.
func (t *table) seek(id string, in ...phase) (*table, *Call) {
	if c := t.find(id, in...); c != nil || t == nil {
		return t, c
	}
	for up := strings.LastIndex(id, madeBy); up > 0; up = strings.LastIndex(id[:up], madeBy) {
		if parent := t.find(id[:up]); parent != nil && parent.inner != nil {
			return parent.inner.seek(id, in...)
		}
	}
	return t, nil
}

// made adds a call that another call has made.
func (s *State) made(b event.Judged, seq uint64) {
	_, parent := s.calls.seek(b.Parent, phaseRunning)
	if parent == nil || !parent.Caller {
		return
	}
	if _, known := parent.Find(b.Call); known {
		return
	}
	c := Call{Seq: seq, Phase: phaseNew, Parent: b.Parent, Wants: b.Asked, Ahead: b.RequestedAhead}
	c.ID, c.Name, c.Args = b.Call, b.Tool, b.Args
	parent.Made = parent.inner.add(c)
}

// Find returns a call that this one has made, whether or not it has ended.
func (c *Call) Find(id string) (made Call, ok bool) {
	if m := c.inner.callByID(id); m != nil {
		return *m, true
	}
	return made, false
}

// Unfinished returns the ends of the calls that a call has made and that have not ended, for when it no longer
// runs. Nested calls come first.
func (c *Call) Unfinished() []event.Ended {
	var out []event.Ended
	for i := range c.Made {
		if m := &c.Made[i]; m.Ended == nil {
			out = append(append(out, m.Unfinished()...), m.unfinished())
		}
	}
	return out
}

func (c *Call) unfinished() event.Ended {
	end := event.Ended{Call: c.ID, Parent: c.Parent, Outcome: event.OutcomeCancelled}
	end.Parts = llm.Say("Not run: the call that made it has ended.")
	if c.Begun {
		end.Outcome, end.Parts = event.OutcomeUnknown, llm.Say("Outcome unknown: it had begun, and the call that made it has ended.")
	}
	return end
}

// mostTold is how many nested calls the model is told about.
const mostTold = 20

// Account tells the model, which doesn't see them, what became of the calls that a call has made; empty if
// there are none.
func (c *Call) Account() string {
	if len(c.Made) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nThe calls that it made:")
	skipped := max(0, len(c.Made)-mostTold)
	if skipped > 0 {
		fmt.Fprintf(&b, "\n- %d earlier ones", skipped)
	}
	for _, m := range c.Made[skipped:] {
		outcome := event.Outcome("not run")
		switch {
		case m.Ended != nil:
			outcome = m.Ended.Outcome
		case m.Begun:
			outcome = event.OutcomeUnknown
		}
		fmt.Fprintf(&b, "\n- %s %s: %s", m.Name, cut(string(m.Args), 200), outcome)
	}
	return b.String()
}

// callers yields the running calls of a table that make others.
func (t *table) callers(yield func(*Call) bool) {
	if t == nil {
		return
	}
	for i := t.ended; i < len(t.calls); i++ {
		if c := &t.calls[i]; c.Caller && c.Phase == phaseRunning && !yield(c) {
			return
		}
	}
}

// startable returns the calls that may start, of the reply and of its running calls.
func (s *State) startable(t *table) []Call {
	out := t.startable(atOnce)
	for c := range t.callers {
		out = append(out, s.startable(c.inner)...)
	}
	return out
}

// stalled reports whether a table's calls only wait for decisions.
func (t *table) stalled() bool {
	callers := 0
	for c := range t.callers {
		if callers++; !c.inner.stalled() {
			return false
		}
	}
	unsettled := t.in[phaseNew] + t.in[phaseLost] + t.in[phaseDenied] + t.in[phaseCut]
	if unsettled > 0 || t.in[phaseRunning] > callers || len(t.startable(1)) > 0 {
		return false
	}
	return callers > 0 || t.waitsFor()
}

// Stalled reports whether the call is running and can only continue after a decision.
func (c *Call) Stalled() bool { return c.Caller && c.Phase == phaseRunning && c.inner.stalled() }

// Calling returns the running calls that make others, the innermost last.
func (s *State) Calling() []Call {
	var out []Call
	for level := []*table{s.calls}; len(level) > 0; {
		var below []*table
		for _, t := range level {
			for c := range t.callers {
				out, below = append(out, *c), append(below, c.inner)
			}
		}
		level = below
	}
	return out
}

// waits returns the calls that wait for a decision, including those of a call that is about to run again.
func (t *table) waits() []Call {
	if t == nil {
		return nil
	}
	var out []Call
	if t.in[phaseWaiting] > 0 {
		out = t.all(phaseWaiting)
	}
	for i := range t.calls {
		out = append(out, t.calls[i].inner.waits()...)
	}
	return out
}

// abandon sorts out calls whose process is gone. Calls that only read may run again, and so may a call that
// makes calls of its own; a copy of the session runs none again.
func (s *State) abandon(calls []Call, again bool) {
	for i := range calls {
		c := &calls[i]
		// Another state may share them. A call whose verdict nobody has heard is not made.
		c.Made = slices.DeleteFunc(slices.Clone(c.Made), func(m Call) bool { return m.Phase == phaseNew })
		s.abandon(c.Made, again)
		c.inner = nil
		if c.Phase != phaseRunning {
			continue
		}
		c.Phase = phaseLost
		if again {
			s.retract(c.ID)
		}
		if again && (c.Caller || tool.ReadOnly(c.Effects)) {
			c.Phase = phaseReady
		}
	}
}

// keep stores values that a call has left for later ones. A copied state may share the map.
func (s *State) keep(left map[string]json.RawMessage) {
	if len(left) == 0 {
		return
	}
	store := maps.Clone(s.Store)
	if store == nil {
		store = map[string]json.RawMessage{}
	}
	for name, value := range left {
		if store[name] = value; string(value) == "null" {
			delete(store, name)
		}
	}
	s.Store = store
}
