package loop_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// deed is a call that a caller has made, as the test knows it.
type deed struct {
	id                              string
	does                            []tool.Effect
	ahead, waits, ready, runs, over bool
	asked                           uint64
}

// TestAheadByDefinition compares with a small model which calls of a caller may start, whatever was requested ahead,
// decided, reached and ended. One requested ahead never starts, unless it only reads; none starts next to one that it
// conflicts with; and one that the caller has reached always starts, unless one is in its way that runs, may start or
// was reached before.
func TestAheadByDefinition(t *testing.T) {
	effects := []tool.Effect{read("/w/a"), read("/w/b"), write("/w/a"), write("/w/b")}
	rapid.Check(t, func(r *rapid.T) {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("p", "script")),
			event.Judged{Call: "p", Action: tool.Allow, Caller: true}, event.Started{Call: "p"})
		var deeds []*deed
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			proceed(r, tp, &deeds, effects)
			checkDeeds(r, tp, deeds)
			if rapid.IntRange(0, 4).Draw(r, "snapshot") == 0 {
				snapshot, err := tp.Snapshot()
				if err != nil {
					r.Fatal(err)
				}
				tp = &tape{t, &loop.State{}}
				tp.add(event.Compacted{Snapshot: snapshot})
				checkDeeds(r, tp, deeds)
			}
		}
	})
}

// proceed does one thing that a driver or a person may do.
func proceed(r *rapid.T, tp *tape, deeds *[]*deed, effects []tool.Effect) {
	some := func(name string, such func(d *deed) bool) *deed {
		list := slices.DeleteFunc(slices.Clone(*deeds), func(d *deed) bool { return !such(d) })
		if len(list) == 0 {
			return nil
		}
		return rapid.SampledFrom(list).Draw(r, name)
	}
	switch rapid.IntRange(0, 5).Draw(r, "what") {
	case 0, 1:
		d := &deed{id: fmt.Sprint("p/", len(*deeds)+1), does: rapid.SliceOfN(rapid.SampledFrom(effects), 1, 2).Draw(r, "does")}
		d.ahead = some("waits", func(d *deed) bool { return d.waits }) != nil && rapid.Bool().Draw(r, "ahead")
		if d.waits = rapid.Bool().Draw(r, "asks"); d.waits {
			tp.add(event.Judged{Call: d.id, Parent: "p", Tool: "t", Action: tool.Ask, Effects: d.does, RequestedAhead: d.ahead}, event.Waiting{Call: d.id})
			d.asked = tp.Seq
		} else {
			d.ready = true
			tp.add(event.Judged{Call: d.id, Parent: "p", Tool: "t", Action: tool.Allow, Effects: d.does, RequestedAhead: d.ahead})
		}
		*deeds = append(*deeds, d)
	case 2:
		if d := some("decide", func(d *deed) bool { return d.waits }); d != nil {
			tp.add(event.Decided{Call: d.id, Question: d.asked, Allow: true})
			d.waits, d.ready = false, true
		}
	case 3:
		if d := some("come", func(d *deed) bool { return d.ahead && !d.runs }); d != nil {
			tp.add(event.Wanted{Call: d.id, Parent: "p"})
			d.ahead = false
			*deeds = append(slices.DeleteFunc(*deeds, func(o *deed) bool { return o == d }), d)
		}
	case 4:
		if d := some("start", func(d *deed) bool { return slices.Contains(free(tp), d.id) }); d != nil {
			tp.add(event.Started{Call: d.id, Parent: "p"})
			d.ready, d.runs = false, true
		}
	case 5:
		if d := some("end", func(d *deed) bool { return d.runs }); d != nil {
			tp.add(event.Ended{Call: d.id, Parent: "p", Outcome: event.OutcomeOK})
			d.runs, d.over = false, true
		}
	}
}

// free are the calls that may start.
func free(tp *tape) (out []string) {
	if n, ok := tp.Next().(loop.RunCalls); ok {
		for _, c := range n.Calls {
			out = append(out, c.ID)
		}
	}
	return out
}

func checkDeeds(r *rapid.T, tp *tape, deeds []*deed) {
	may := free(tp)
	starts := func(d *deed) bool { return slices.Contains(may, d.id) }
	for i, d := range deeds {
		if starts(d) && (!d.ready || d.ahead && !tool.ReadOnly(d.does)) {
			r.Fatalf("%+v may start", *d)
		}
		clear := d.ready && !d.ahead
		for j, other := range deeds {
			if i == j || !conflict(d.does, other.does) {
				continue
			}
			if starts(d) && (other.runs || starts(other)) {
				r.Fatalf("%+v may start beside %+v", *d, *other)
			}
			clear = clear && !other.runs && !starts(other) && (other.over || j > i || other.ahead)
		}
		if clear && !starts(d) {
			r.Fatalf("%+v may not start: %q may", *d, may)
		}
	}
}

// TestReadingAhead checks when a reading call requested ahead runs by itself: at once, unless it conflicts with an
// earlier call, and only until its parent has reached later calls.
func TestReadingAhead(t *testing.T) {
	judged := func(n int, action tool.Action, ahead bool, effects ...tool.Effect) event.Body {
		return event.Judged{Call: fmt.Sprint("p/", n), Parent: "p", Tool: "t", Action: action, RequestedAhead: ahead, Effects: effects}
	}
	tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("p", "script")),
		event.Judged{Call: "p", Action: tool.Allow, Caller: true}, event.Started{Call: "p"},
		judged(1, tool.Ask, false, write("/a")), event.Waiting{Call: "p/1"},
		judged(2, tool.Allow, true, read("/a"), read("/b")), judged(3, tool.Allow, true, read("/c")))
	tp.want("run p/3")
	tp.add(judged(4, tool.Allow, false, write("/b")), judged(5, tool.Allow, false, write("/c")))
	tp.want("run p/4 p/5") // the parent has come to calls after p/3, which now waits for its turn
	tp.add(event.Started{Call: "p/4", Parent: "p"}, event.Decided{Call: "p/1", Allow: true}, event.Started{Call: "p/1", Parent: "p"},
		event.Ended{Call: "p/1", Parent: "p"})
	tp.want("run p/5") // p/2 would read what p/4 writes
	tp.add(event.Ended{Call: "p/4", Parent: "p"}, event.Wanted{Call: "p/2", Parent: "p"})
	tp.want("run p/5 p/2")
}

// TestDecidedAlso checks which other questions a decision answers: the open ones of calls with the same parent, once,
// and no others.
func TestDecidedAlso(t *testing.T) {
	wait := func(id, parent string, ahead bool) []event.Body {
		return []event.Body{
			event.Judged{Call: id, Parent: parent, Tool: "t", Action: tool.Ask, RequestedAhead: ahead, Effects: []tool.Effect{write("/" + id)}},
			event.Waiting{Call: id, Rules: []string{"t"}},
		}
	}
	caller := func(id, parent string) []event.Body {
		return []event.Body{
			event.Judged{Call: id, Parent: parent, Tool: "c", Action: tool.Allow, Caller: true}, event.Started{Call: id, Parent: parent},
		}
	}
	for name, tc := range map[string]struct {
		d    event.Decided
		want string // what still waits
	}{
		"alone":        {event.Decided{Allow: true}, "p/3 p/1/2 p/1/3"},
		"allowed":      {event.Decided{Allow: true, Also: []uint64{0, 13, 1, 99}}, "p/1/2 p/1/3"},
		"denied":       {event.Decided{Also: []uint64{13}}, "p/1/2 p/1/3"},
		"for longer":   {event.Decided{Allow: true, Scope: event.ScopeSession, Also: []uint64{13}}, "p/3 p/1/2 p/1/3"},
		"of others":    {event.Decided{Allow: true, Also: []uint64{15, 17, 18}}, "p/3 p/1/2 p/1/3"},
		"not its own":  {event.Decided{Question: 9999, Allow: true, Also: []uint64{13}}, "p/2 p/1/2 p/1/3"},
		"of the inner": {event.Decided{Call: "p/1/2", Question: 15, Allow: true, Also: []uint64{11, 13, 17}}, "p/2 p/3"},
	} {
		tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("p", "script")))
		tp.add(caller("p", "")...)
		tp.add(caller("p/1", "p")...)
		tp.add(slices.Concat(wait("p/2", "p", false), wait("p/3", "p", true), wait("p/1/2", "p/1", false), wait("p/1/3", "p/1", true))...)
		if got := fmt.Sprint(tp.Seq); got != "17" {
			t.Fatal(got)
		}
		d := tc.d
		if d.Call == "" {
			d.Call = "p/2"
		}
		if d.Question == 0 {
			d.Question = 11
		}
		tp.add(d)
		if got := ids(tp.Waiting()); got != tc.want {
			t.Errorf("%s: %q waits, want %q", name, got, tc.want)
		}
	}
}
