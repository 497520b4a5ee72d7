package event

import (
	"slices"
	"strings"
)

// Wanted says that a tool which was run again has come to a call that it had asked for ahead (see
// Judged): from here on it is a call like any other, the last one that its parent has made, and may
// run.
//
// Emitted once for such a call, and never for one that its parent does not come to.
type Wanted struct {
	Call   string `json:"call"`
	Parent string `json:"parent"` // as that of Judged
}

// Kind returns the name of the kind as it stands in the log.
func (Wanted) Kind() string { return "wanted" }

// OnCall reports whether the decision is on the question about a call that another has made, parent,
// or the model if that is empty: as its own question, or as one of Also. What is Also answered has the
// same parent, and is allowed once or denied.
func (d Decided) OnCall(id, parent string, question uint64) bool {
	if d.On(id, question) {
		return true
	}
	once := !d.Allow || d.Scope == ScopeOnce
	return once && parent != "" && question > 0 && slices.Contains(d.Also, question) && madeBy(d.Call) == parent && madeBy(id) == parent
}

// madeBy is the parent that the id of a call names; empty: it names none.
func madeBy(id string) string { return id[:max(0, strings.LastIndexByte(id, '/'))] }
