package loop

import (
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// table holds the calls of a reply, or the nested calls of one call, with counts that depend on their phases. So only
// move may change a phase. Other code, such as loseCalls, must drop the table if it does.
type table struct {
	calls   []Call // shares the memory of Run.Calls or Call.Nested
	in      map[phase]int
	ended   int // how many calls at the beginning have ended, so that searches can skip them
	reached int // number of calls up to the last one that the parent has reached
}

func newTable(calls []Call) *table {
	t := &table{calls: calls, in: map[phase]int{}}
	for i := range calls {
		t.count(i)
		if calls[i].Caller {
			calls[i].nestedTable = newTable(calls[i].Nested)
		}
	}
	t.skipEnded()
	return t
}

func (t *table) count(i int) {
	t.in[t.calls[i].Phase]++
	if !t.calls[i].RequestedAhead {
		t.reached = i + 1
	}
}

func (t *table) skipEnded() {
	for t.ended < len(t.calls) && t.calls[t.ended].Phase == phaseEnded {
		t.ended++
	}
}

// add appends a call and returns the new list.
func (t *table) add(c Call) []Call {
	t.calls = append(t.calls, c)
	t.count(len(t.calls) - 1)
	return t.calls
}

// find returns the first call with an id that is in one of the phases or, if none is given, has not ended; nil if
// there is none.
func (t *table) find(id string, in ...phase) *Call {
	if t == nil {
		return nil
	}
	for i := range t.calls {
		if c := &t.calls[i]; c.ID == id && (len(in) == 0 && c.Phase != phaseEnded || slices.Contains(in, c.Phase)) {
			return c
		}
	}
	return nil
}

// move changes the phase of a call that find returned.
func (t *table) move(c *Call, to phase) {
	t.in[c.Phase]--
	t.in[to]++
	c.Phase = to
	t.skipEnded()
}

// startable returns the calls that may start, up to the given number: ready calls that conflict with no earlier
// unfinished call. None may start before all are judged.
func (t *table) startable(most int) []Call {
	if t.in[phaseNew] > 0 || t.in[phaseReady] == 0 {
		return nil
	}
	var out []Call
	for i := t.ended; i < len(t.calls) && len(out) < most; i++ {
		if t.mayStart(i) {
			out = append(out, t.calls[i])
		}
	}
	return out
}

func (t *table) mayStart(i int) bool {
	if t.calls[i].Phase != phaseReady || t.awaitsParent(i) {
		return false
	}
	for earlier := t.ended; earlier < i; earlier++ {
		e := &t.calls[earlier]
		// What the parent has reached overtakes a call requested ahead, unless that runs.
		overtakes := e.RequestedAhead && !t.calls[i].RequestedAhead && e.Phase != phaseRunning
		if e.Phase != phaseEnded && !overtakes && conflict(t.calls[i].scope(), e.scope()) {
			return false
		}
	}
	return true
}

// all returns the calls in a phase.
func (t *table) all(in phase) []Call {
	var out []Call
	for _, c := range t.calls {
		if c.Phase == in {
			out = append(out, c)
		}
	}
	return out
}

// scope returns the effects that determine conflicts. The effects of a call that may make others are not known in
// advance, so it conflicts with all calls.
func (c *Call) scope() []tool.Effect {
	if c.Caller {
		return []tool.Effect{{Kind: tool.External}}
	}
	return c.Effects
}

// conflict reports whether two calls must not run at once because one may change files that the other uses.
func conflict(a, b []tool.Effect) bool {
	for _, x := range a {
		for _, y := range b {
			if clash(x, y) {
				return true
			}
		}
	}
	return false
}

// clash reports whether one of two effects may change files that the other uses. Commands and external effects may
// use any file, except for commands that are proven to only read. An effect on an unknown path may concern any file.
func clash(x, y tool.Effect) bool {
	proven := func(e tool.Effect) bool { return e.Kind == tool.Execute && e.Class == tool.ProvenRead }
	file := func(e tool.Effect) bool { return e.Kind == tool.Read || e.Kind == tool.Write }
	network := func(e tool.Effect) bool { return e.Kind == tool.Network }
	switch {
	case proven(x), proven(y), network(x) && (network(y) || file(y)), file(x) && network(y):
		return false
	case x.Kind == tool.Read && y.Kind == tool.Read:
		return false
	case file(x) && file(y):
		return x.Path == "" || y.Path == "" || text.Inside(x.Path, y.Path) || text.Inside(y.Path, x.Path)
	}
	return true
}
