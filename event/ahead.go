package event

import (
	"slices"
	"strings"
)

// Wanted says that a tool which was run again has come to a call that it had requested ahead, see Judged. From
// here on it is a call like any other, the last one that its parent has made, and may run.
//
// Emitted once for such a call, and never for one that its parent does not come to.
type Wanted struct {
	Call   string `json:"call"`
	Parent string `json:"parent"` // as in Judged
}

// Kind returns the kind's name in the log.
func (Wanted) Kind() string { return "wanted" }

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
