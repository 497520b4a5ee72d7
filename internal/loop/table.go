package loop

import (
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/tool"
)

// table knows of the calls of the last reply what would else have to be looked for at each
// event: where a call is, how many are how far, and which of them may start. All of it
// follows from the calls, whose phases change through move alone, or make the table void.
type table struct {
	calls []Call           // shares the memory of Run.Calls
	at    map[string][]int // nil: they are few, and looked through
	in    counts
	come  int   // how many there are up to the last that is not asked for ahead
	free  []int // ready, and nothing stands in their way; in order
	// calling are those that run and make calls of their own.
	calling []int

	// Once all are judged, they are lined up: the calls of each lane in order, and for each
	// call that has not ended the ready ones behind it that wait for its end.
	lined bool
	lanes map[lane][]int
	after map[int][]int
}

// counts is how many calls are in each phase.
type counts [8]int

func (c *counts) of(p phase) *int {
	switch p {
	case phaseNew:
		return &c[0]
	case phaseWaiting:
		return &c[1]
	case phaseReady:
		return &c[2]
	case phaseRunning:
		return &c[3]
	case phaseEnded:
		return &c[4]
	case phaseDenied:
		return &c[5]
	case phaseCut:
		return &c[6]
	}
	return &c[7] // lost
}

// n is how many are in a phase.
func (c counts) n(p phase) int { return *c.of(p) }

// few calls are sooner looked through than looked up.
const few = 8

func newTable(calls []Call) *table {
	t := &table{calls: calls}
	if len(calls) > few {
		t.at = make(map[string][]int, len(calls))
	}
	for i, c := range calls {
		if t.at != nil {
			t.at[c.ID] = append(t.at[c.ID], i)
		}
		*t.in.of(c.Phase)++
		t.comeTo(i)
		if c.Caller {
			calls[i].inner = newTable(c.Made)
		}
		if c.Caller && c.Phase == phaseRunning {
			t.calling = append(t.calling, i)
		}
	}
	if t.in.n(phaseNew) == 0 {
		t.lineUp()
	}
	return t
}

// add puts a call behind the others, which is to be judged, and returns all of them. Those that
// are judged may run meanwhile.
func (t *table) add(c Call) []Call {
	if last := len(t.calls) - 1; t.lined && last >= 0 && t.calls[last].Phase != phaseEnded {
		t.join(last) // it was in nobody's way
	}
	t.calls = append(t.calls, c)
	switch i := len(t.calls) - 1; {
	case t.at != nil:
		t.at[c.ID] = append(t.at[c.ID], i)
	case len(t.calls) > few:
		t.at = make(map[string][]int, len(t.calls))
		for i, c := range t.calls {
			t.at[c.ID] = append(t.at[c.ID], i)
		}
	}
	*t.in.of(c.Phase)++
	t.comeTo(len(t.calls) - 1)
	return t.calls
}

// of reports whether the table is one of these calls.
func (t *table) of(calls []Call) bool {
	return t != nil && len(t.calls) == len(calls) && (len(calls) == 0 || &t.calls[0] == &calls[0])
}

// any returns the first call with an id, in whatever phase; nil if there is none.
func (t *table) any(id string) *Call {
	if t.at != nil {
		for _, i := range t.at[id] {
			return &t.calls[i]
		}
		return nil
	}
	if i := slices.IndexFunc(t.calls, func(c Call) bool { return c.ID == id }); i >= 0 {
		return &t.calls[i]
	}
	return nil
}

// find returns the first call with an id in one of the phases, or that has not ended if none
// is given; nil if there is none.
func (t *table) find(id string, in ...phase) *Call {
	fits := func(c *Call) bool {
		return c.ID == id && (len(in) == 0 && c.Phase != phaseEnded || slices.Contains(in, c.Phase))
	}
	switch {
	case t == nil:
	case t.at == nil:
		for i := range t.calls {
			if fits(&t.calls[i]) {
				return &t.calls[i]
			}
		}
	default:
		for _, i := range t.at[id] {
			if fits(&t.calls[i]) {
				return &t.calls[i]
			}
		}
	}
	return nil
}

// index is where a call is that find has returned.
func (t *table) index(c *Call) int {
	if t.at == nil {
		for i := range t.calls {
			if &t.calls[i] == c {
				return i
			}
		}
	}
	at := t.at[c.ID]
	return at[slices.IndexFunc(at, func(i int) bool { return &t.calls[i] == c })]
}

// move changes how far a call is that find has returned.
func (t *table) move(c *Call, to phase) {
	i := t.index(c)
	*t.in.of(c.Phase)--
	*t.in.of(to)++
	t.calling = slices.DeleteFunc(t.calling, func(at int) bool { return at == i })
	if c.Caller && to == phaseRunning {
		t.calling = append(t.calling, i)
	}
	c.Phase = to
	switch {
	case t.lined:
		t.look(i)
	case t.in.n(phaseNew) == 0:
		t.lineUp()
	}
}

// lineUp puts the calls in their lanes, now that it is known what each would do.
func (t *table) lineUp() {
	t.lined, t.lanes, t.after = true, map[lane][]int{}, map[int][]int{}
	for i, c := range t.calls {
		t.look(i)
		if c.Phase == phaseEnded || i == len(t.calls)-1 { // it is in nobody's way
			continue
		}
		t.join(i)
	}
}

// join puts a call into its lanes.
func (t *table) join(i int) {
	for _, l := range joins(t.calls[i].scope()) {
		t.lanes[l] = append(t.lanes[l], i)
	}
}

// scope are the effects that a call counts with beside others. What a call does that makes
// calls of its own is not known before.
func (c *Call) scope() []tool.Effect {
	if c.Caller {
		return []tool.Effect{{Kind: tool.External}}
	}
	return c.Effects
}

// look takes note of what follows from the phase of a call: a ready one may start, or
// waits for the last of those that it conflicts with; one that has ended is waited for
// no longer.
func (t *table) look(i int) {
	phase := t.calls[i].Phase
	at, free := slices.BinarySearch(t.free, i)
	if free && phase != phaseReady {
		t.free = slices.Delete(t.free, at, at+1)
	}
	switch phase {
	case phaseReady:
		if !free && t.early(i) {
			return
		}
		if earlier := t.inTheWay(i); earlier >= 0 {
			t.after[earlier] = append(t.after[earlier], i)
		} else if !free {
			t.free = slices.Insert(t.free, at, i)
		}
	case phaseEnded:
		behind := t.after[i]
		delete(t.after, i)
		for _, later := range behind {
			t.look(later)
		}
	}
}

// inTheWay returns the last call before another that conflicts with it and has not ended;
// -1 if there is none.
func (t *table) inTheWay(i int) int {
	last := -1
	if i == 0 {
		return last
	}
	for _, l := range minds(t.calls[i].scope()) {
		last = max(last, t.lastIn(l, i))
	}
	return last
}

// lastIn returns the last call of a lane before another that has not ended, -1 if there is
// none. Those at its head that have ended leave it, so that they are passed but once.
func (t *table) lastIn(l lane, before int) int {
	queue, some := t.lanes[l]
	if !some {
		return -1
	}
	for len(queue) > 0 && t.calls[queue[0]].Phase == phaseEnded {
		queue = queue[1:]
	}
	t.lanes[l] = queue
	at, _ := slices.BinarySearch(queue, before)
	for at--; at >= 0; at-- {
		if t.calls[queue[at]].Phase != phaseEnded && !t.passed(queue[at], before) {
			return queue[at]
		}
	}
	return -1
}

// startable are the first of the calls that may start.
func (t *table) startable(most int) []Call {
	var out []Call
	for _, i := range t.free[:min(most, len(t.free))] {
		out = append(out, t.calls[i])
	}
	return out
}

// all are the calls in a phase.
func (t *table) all(in phase) []Call {
	var out []Call
	for _, c := range t.calls {
		if c.Phase == in {
			out = append(out, c)
		}
	}
	return out
}

// Two calls must not run at once if one writes what the other touches; commands and
// external effects may touch anything. So each call joins a lane for everything that it
// touches, and minds the lanes of all that it must not run beside:
//
//	joins  whatever it does                     all
//	       a command, something external        all, alone
//	       a file                               all, that file, below each folder above it
//	minds  a network                            alone
//	       a command, something external        all
//	       a file                               alone, that file, each folder above it, below it
//
// Of a file that is read, only those who write it are minded. What is proven to only
// read and print joins nothing and minds nothing.
type lane struct {
	touch touch
	path  string // of a file; empty: one that is not named, which may be any
}

type touch string

const (
	touchAll    touch = "all"
	touchAlone  touch = "alone"
	touchReads  touch = "reads"
	touchWrites touch = "writes"
	readsBelow  touch = "reads below"
	writesBelow touch = "writes below"
)

func joins(effects []tool.Effect) []lane {
	var out []lane
	for _, e := range effects {
		if reader(e) {
			continue
		}
		out = append(out, lane{touch: touchAll})
		switch at, below := touches(e); {
		case at != "":
			folders := above(e.Path)
			out = append(out, lane{at, folders[0]})
			for _, folder := range folders[1:] {
				out = append(out, lane{below, folder})
			}
		case e.Kind != tool.Network:
			out = append(out, lane{touch: touchAlone})
		}
	}
	return out
}

func minds(effects []tool.Effect) []lane {
	var out []lane
	for _, e := range effects {
		at, _ := touches(e)
		switch {
		case reader(e):
		case e.Kind == tool.Network:
			out = append(out, lane{touch: touchAlone})
		case at == "":
			out = append(out, lane{touch: touchAll})
		default:
			out = append(out, mindsFile(e)...)
		}
	}
	return out
}

func mindsFile(e tool.Effect) []lane {
	folders := above(e.Path)
	out := []lane{{touch: touchAlone}, {writesBelow, folders[0]}}
	if e.Kind == tool.Write {
		out = append(out, lane{readsBelow, folders[0]})
	}
	for _, path := range folders {
		out = append(out, lane{touchWrites, path})
		if e.Kind == tool.Write {
			out = append(out, lane{touchReads, path})
		}
	}
	return out
}

// touches are the kinds of lanes for a file and for the folders above it; empty if the
// effect is not on a file.
func touches(e tool.Effect) (at, below touch) {
	switch e.Kind {
	case tool.Read:
		return touchReads, readsBelow
	case tool.Write:
		return touchWrites, writesBelow
	}
	return "", ""
}

// above lists a path and the folders that it lies in. What is not named lies in none and
// all others lie in it.
func above(path string) []string {
	if path == "" {
		return []string{""}
	}
	path = filepath.Clean(path)
	out := []string{path}
	for up := filepath.Dir(path); up != path; path, up = up, filepath.Dir(up) {
		out = append(out, up)
	}
	return append(out, "")
}

// reader says that an effect stands beside all others: what it reads stands beside it.
func reader(e tool.Effect) bool { return e.Kind == tool.Execute && e.Class == tool.ProvenRead }
