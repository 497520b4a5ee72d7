package loop

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// While a call waits for a decision, its parent may request further calls ahead, so that the person decides on all
// of them at once (event.Judged.RequestedAhead). The result of the first call may change the parent's mind, so:
//
//   - A call requested ahead runs only when its parent reaches it (event.Wanted).
//   - Until then it blocks only other calls requested ahead, and the parent can continue without a decision on it.
//   - A call that only reads may run earlier, unless the parent has already reached a later call.

// awaitsParent reports whether a ready call may not run until its parent reaches it.
func (t *table) awaitsParent(i int) bool {
	c := &t.calls[i]
	return c.RequestedAhead && (c.Caller || !tool.ReadOnly(c.Effects) || i < t.reached)
}

// IsBlocked reports whether a call waits for a decision, or for its parent to reach it.
func (s *State) IsBlocked(id string) bool {
	t, c := s.calls.findNested(id)
	if c == nil {
		return false
	}
	i := slices.IndexFunc(t.calls, func(other Call) bool { return other.ID == id && other.Phase != phaseEnded })
	return c.Phase == phaseWaiting || c.Phase == phaseReady && t.awaitsParent(i)
}

// parentReached clears the mark of a call requested ahead, and moves the call to the end of its parent's calls.
func (s *State) parentReached(b event.Wanted, seq uint64) {
	_, parent := s.calls.findNested(b.Parent, phaseRunning)
	if parent == nil {
		return
	}
	i := slices.IndexFunc(parent.Nested, func(c Call) bool { return c.ID == b.Call && c.RequestedAhead })
	if i < 0 {
		return
	}
	c := parent.Nested[i]
	if c.RequestedAhead = false; c.Ended != nil {
		c.EndedSeq = seq
	}
	parent.Nested = append(slices.Delete(slices.Clone(parent.Nested), i, i+1), c)
	parent.nestedTable = newTable(parent.Nested)
}

// decidedAlso applies a decision to the further questions that it answers.
func (s *State) decidedAlso(b event.Decided) {
	up := strings.LastIndex(b.Call, nestedSeparator)
	if len(b.Also) == 0 || up < 0 {
		return
	}
	_, parent := s.calls.findNested(b.Call[:up])
	if parent == nil || parent.nestedTable == nil {
		return
	}
	for i := range parent.Nested {
		c := &parent.Nested[i]
		if c.Phase == phaseWaiting && b.OnCall(c.ID, c.Parent, c.WaitingSeq) {
			parent.nestedTable.decided(c, b)
		}
	}
}

// decided makes a waiting call ready or denied.
func (t *table) decided(c *Call, b event.Decided) {
	if b.Allow {
		if b.Rule != "" { // the rule allows the call regardless of the file's content
			c.Shown = nil
		}
		t.move(c, phaseReady)
		return
	}
	c.By, c.Reason = b.By, b.Reason
	t.move(c, phaseDenied)
}
