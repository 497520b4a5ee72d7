package loop

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// While a call waits for a decision, its parent may request further calls ahead, so that all of them can be
// asked about together (event.Judged.RequestedAhead). The result of the first is not known yet, so the parent may turn
// out not to want the others. Therefore a call requested ahead runs only when its parent has come to it
// (event.Wanted). Until then it only blocks other calls requested ahead, and the parent can continue without a
// decision on it. A call that only reads may run earlier, as long as the parent has come to nothing behind it.

// early reports whether a ready call may not run yet because its parent has not come to it.
func (t *table) early(i int) bool {
	c := &t.calls[i]
	return c.Ahead && (c.Caller || !tool.ReadOnly(c.Effects) || i < t.come)
}

// passes reports whether a call need not wait for an earlier one because that one was requested ahead, and
// can't start before its parent has come to it.
func (t *table) passes(i, earlier int) bool {
	e := &t.calls[earlier]
	return e.Ahead && !t.calls[i].Ahead && e.Phase != phaseRunning
}

// waitsFor reports whether a call that the parent has come to waits for a decision.
func (t *table) waitsFor() bool {
	return t.in[phaseWaiting] > 0 &&
		slices.ContainsFunc(t.calls, func(c Call) bool { return c.Phase == phaseWaiting && !c.Ahead })
}

// Early reports whether a call waits for a decision, or may not run before its parent has come to it.
func (s *State) Early(id string) bool {
	t, c := s.calls.seek(id)
	if c == nil {
		return false
	}
	i := slices.IndexFunc(t.calls, func(other Call) bool { return other.ID == id && other.Phase != phaseEnded })
	return c.Phase == phaseWaiting || c.Phase == phaseReady && t.early(i)
}

// wanted makes a call that its parent has come to the last one.
func (s *State) wanted(b event.Wanted, seq uint64) {
	_, parent := s.calls.seek(b.Parent, phaseRunning)
	if parent == nil {
		return
	}
	i := slices.IndexFunc(parent.Made, func(c Call) bool { return c.ID == b.Call && c.Ahead })
	if i < 0 {
		return
	}
	c := parent.Made[i]
	if c.Ahead = false; c.Ended != nil {
		c.Over = seq
	}
	parent.Made = append(slices.Delete(slices.Clone(parent.Made), i, i+1), c)
	parent.inner = newTable(parent.Made)
}

// decidedAlso applies a decision to the further questions that it answers.
func (s *State) decidedAlso(b event.Decided) {
	up := strings.LastIndex(b.Call, madeBy)
	if len(b.Also) == 0 || up < 0 {
		return
	}
	_, parent := s.calls.seek(b.Call[:up])
	if parent == nil || parent.inner == nil {
		return
	}
	for i := range parent.Made {
		c := &parent.Made[i]
		if c.Phase == phaseWaiting && b.OnCall(c.ID, c.Parent, c.Asked) {
			parent.inner.decided(c, b)
		}
	}
}

// decided moves on a call that waited for a decision.
func (t *table) decided(c *Call, b event.Decided) {
	if b.Allow {
		if b.Rule != "" { // the rule would have let it run whatever the file holds now
			c.Shown = nil
		}
		t.move(c, phaseReady)
		return
	}
	c.By, c.Reason = b.By, b.Reason
	t.move(c, phaseDenied)
}
