package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// A call may make nested calls while it runs (event.Judged.Parent). They are stored in it with their results until
// it ends, so that a tool that is run again after a crash gets the results of its earlier calls. Nested calls have a
// table of their own. A call that makes others runs alone in its reply, so only calls with the same parent can
// conflict, and there is no deadlock.

// nestedSeparator separates the id of the parent from the number of the nested call.
const nestedSeparator = "/"

// NestedID returns the id of the nth call that parent makes.
func NestedID(parent string, n any) string { return fmt.Sprint(parent, nestedSeparator, n) }

// Depth returns how many ancestors the call with this id has.
func Depth(id string) int { return strings.Count(id, nestedSeparator) }

// IsNestedIn reports whether parent is an ancestor of the call with this id.
func IsNestedIn(id, parent string) bool { return strings.HasPrefix(id, parent+nestedSeparator) }

// findNested returns the call with this id, in the table or nested in one of its calls, and the table that holds
// it. The call must be in one of the phases or, if none is given, not have ended; nil if there is none.
func (t *table) findNested(id string, in ...phase) (*table, *Call) {
	if c := t.find(id, in...); c != nil || t == nil {
		return t, c
	}
	for up := strings.LastIndex(id, nestedSeparator); up > 0; up = strings.LastIndex(id[:up], nestedSeparator) {
		if parent := t.find(id[:up]); parent != nil && parent.nestedTable != nil {
			return parent.nestedTable.findNested(id, in...)
		}
	}
	return t, nil
}

// addNested adds a call to the running call that made it.
func (s *State) addNested(b event.Judged, seq uint64) {
	_, parent := s.calls.findNested(b.Parent, phaseRunning)
	if parent == nil || !parent.Caller {
		return
	}
	if _, known := parent.Find(b.Call); known {
		return
	}
	c := Call{Seq: seq, Phase: phaseNew, Parent: b.Parent, RequestDigest: b.Asked, RequestedAhead: b.RequestedAhead}
	c.ID, c.Name, c.Args = b.Call, b.Tool, b.Args
	parent.Nested = parent.nestedTable.add(c)
}

// Find returns a call that this one made, whether or not it has ended.
func (c *Call) Find(id string) (made Call, ok bool) {
	if i := slices.IndexFunc(c.Nested, func(m Call) bool { return m.ID == id }); i >= 0 {
		return c.Nested[i], true
	}
	return made, false
}

// Unfinished returns ends for all unfinished calls below a call that no longer runs. The innermost come first.
func (c *Call) Unfinished() []event.Ended {
	var out []event.Ended
	for i := range c.Nested {
		if m := &c.Nested[i]; m.Ended == nil {
			end := event.Ended{Call: m.ID, Parent: m.Parent, Outcome: event.OutcomeCancelled}
			end.Parts = llm.Say("Not run: the call that made it has ended.")
			if m.Begun {
				end.Outcome, end.Parts = event.OutcomeUnknown, llm.Say("Outcome unknown: it was still running when the call that made it ended.")
			}
			out = append(append(out, m.Unfinished()...), end)
		}
	}
	return out
}

// maxAccount bounds the nested calls in an account.
const maxAccount = 20

// Account tells the model, which doesn't see nested calls, how they ended; empty if the call made none.
func (c *Call) Account() string {
	if len(c.Nested) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nCalls that it made:")
	skipped := max(0, len(c.Nested)-maxAccount)
	if skipped > 0 {
		fmt.Fprintf(&b, "\n- %d earlier ones", skipped)
	}
	for _, m := range c.Nested[skipped:] {
		outcome := event.Outcome("not run")
		switch {
		case m.Ended != nil:
			outcome = m.Ended.Outcome
		case m.Begun:
			outcome = event.OutcomeUnknown
		}
		fmt.Fprintf(&b, "\n- %s %s: %s", m.Name, truncate(string(m.Args), 200), outcome)
	}
	return b.String()
}

// callers yields the running calls of a table that may make others.
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

// startable returns the calls that may start, in the table and nested in its running calls.
func (s *State) startable(t *table) []Call {
	out := t.startable(maxOffered)
	for c := range t.callers {
		out = append(out, s.startable(c.nestedTable)...)
	}
	return out
}

// stalled reports whether the calls of a table can only continue after a decision.
func (t *table) stalled() bool {
	callers := 0
	for c := range t.callers {
		if callers++; !c.nestedTable.stalled() {
			return false
		}
	}
	unsettled := t.in[phaseNew] + t.in[phaseLost] + t.in[phaseDenied] + t.in[phaseCut]
	if unsettled > 0 || t.in[phaseRunning] > callers || len(t.startable(1)) > 0 {
		return false
	}
	// A call that the parent has reached may wait for a decision.
	return callers > 0 || slices.ContainsFunc(t.calls, func(c Call) bool { return c.Phase == phaseWaiting && !c.RequestedAhead })
}

// Stalled reports whether the call is running, and its nested calls can only continue after a decision.
func (c *Call) Stalled() bool { return c.Caller && c.Phase == phaseRunning && c.nestedTable.stalled() }

// Calling returns the running calls that may make others, the innermost last.
func (s *State) Calling() []Call {
	var out []Call
	for level := []*table{s.calls}; len(level) > 0; {
		var below []*table
		for _, t := range level {
			for c := range t.callers {
				out, below = append(out, *c), append(below, c.nestedTable)
			}
		}
		level = below
	}
	return out
}

// waitingCalls returns all calls that wait for a decision, nested ones too.
func (t *table) waitingCalls() []Call {
	if t == nil {
		return nil
	}
	var out []Call
	if t.in[phaseWaiting] > 0 {
		out = t.all(phaseWaiting)
	}
	for i := range t.calls {
		out = append(out, t.calls[i].nestedTable.waitingCalls()...)
	}
	return out
}
