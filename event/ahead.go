package event

import (
	"slices"
	"strings"
)

// OnCall reports whether the decision answers the question about a nested call: as its own question, or as one
// of Also. Parent is the call that made it, or empty if the model did. The questions in Also have the same
// parent, and are allowed once or denied.
func (d Decided) OnCall(id, parent string, question uint64) bool {
	if d.On(id, question) {
		return true
	}
	once := !d.Allow || d.Scope == ScopeOnce
	return once && parent != "" && question > 0 && slices.Contains(d.Also, question) && madeBy(d.Call) == parent && madeBy(id) == parent
}

// madeBy returns the parent that the id of a call names; empty if it names none.
func madeBy(id string) string { return id[:max(0, strings.LastIndexByte(id, '/'))] }
