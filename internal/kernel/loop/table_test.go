package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// clash tells in other words than the table whether one of two effects may write what the other touches.
func clash(x, y tool.Effect) bool {
	writes := func(e tool.Effect) bool {
		return e.Kind != tool.Read && e.Kind != tool.Network && (e.Kind != tool.Execute || e.Class != tool.ProvenRead)
	}
	file := func(e tool.Effect) bool { return e.Kind == tool.Read || e.Kind == tool.Write }
	anything := func(e tool.Effect) bool { return !file(e) && writes(e) }
	quiet := func(e tool.Effect) bool { return e.Kind == tool.Execute && !writes(e) }
	apart := file(x) && file(y) && x.Path != "" && y.Path != "" && !text.Inside(x.Path, y.Path) && !text.Inside(y.Path, x.Path)
	switch {
	case quiet(x) || quiet(y) || apart:
		return false
	case anything(x) || anything(y):
		return true
	}
	return (writes(x) || writes(y)) && x.Kind != tool.Network && y.Kind != tool.Network
}

func conflict(a, b []tool.Effect) bool {
	return slices.ContainsFunc(a, func(x tool.Effect) bool {
		return slices.ContainsFunc(b, func(y tool.Effect) bool { return clash(x, y) })
	})
}

// TestStartableByDefinition plays random replies of many calls: at each moment, the calls that may start are those that
// are ready and conflict with no earlier unfinished call, and a state from a snapshot says the same.
func TestStartableByDefinition(t *testing.T) {
	effects := []tool.Effect{
		read("/w"), read("/w/a"), read("/w/a/b"), read(""), write("/w"), write("/w/a"), write("/w/a/b"), write("/w/c"), write("/wa"), write("/"),
		write(""),
		{Kind: tool.Network, Text: "x"},
		{Kind: tool.Execute, Text: "make"},
		{Kind: tool.Execute, Class: tool.ProvenRead},
		{Kind: tool.External},
		{Kind: tool.Question},
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(r, "calls")
		var parts []llm.Part
		var verdicts []event.Body
		does := make([][]tool.Effect, n)
		for i := range n {
			id := fmt.Sprint(i)
			parts = append(parts, call(id, "r"))
			does[i] = rapid.SliceOfN(rapid.SampledFrom(effects), 0, 3).Draw(r, "effects")
			action := rapid.SampledFrom([]tool.Action{tool.Allow, tool.Allow, tool.Ask, tool.Deny}).Draw(r, "action")
			verdicts = append(verdicts, event.Judged{Call: id, Action: action, Effects: does[i]})
			if action == tool.Ask {
				verdicts = append(verdicts, event.Waiting{Call: id})
			}
		}
		tp := newTape(t, append([]event.Body{said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, parts...)}, verdicts...)...)
		for tp.Run.Calls != nil {
			tp = checkStartable(t, r, tp, does)
			open := tp.Run.Calls[rapid.SampledFrom(opened(tp.Run.Calls)).Draw(r, "call")]
			switch {
			case open.Waits():
				tp.add(event.Decided{Call: open.ID, Allow: rapid.Bool().Draw(r, "allow")})
			case strings.Contains(" "+startable(tp)+" ", " "+open.ID+" ") && rapid.Bool().Draw(r, "start"):
				tp.add(event.Started{Call: open.ID})
			default:
				tp.add(ended(open.ID, "ok"))
			}
		}
	})
}

func opened(calls []loop.Call) (out []int) {
	for i, c := range calls {
		if c.Ended == nil {
			out = append(out, i)
		}
	}
	return out
}

func startable(tp *tape) string {
	if n, ok := tp.Next().(loop.RunCalls); ok {
		return ids(n.Calls)
	}
	return ""
}

// checkStartable returns the state as it is, or from its snapshot.
func checkStartable(t *testing.T, r *rapid.T, tp *tape, does [][]tool.Effect) *tape {
	if _, dead := tp.Next().(loop.End); dead {
		return tp
	}
	var want []string
	for i, c := range tp.Run.Calls {
		free := c.Phase == "ready"
		for j, earlier := range tp.Run.Calls[:i] {
			free = free && (earlier.Ended != nil || !conflict(does[i], does[j]))
		}
		if free {
			want = append(want, c.ID)
		}
	}
	if got := startable(tp); got != strings.Join(want, " ") {
		r.Fatalf("may start: %q, want %q", got, want)
	}
	if !rapid.Bool().Draw(r, "snapshot") {
		return tp
	}
	snapshot, err := tp.Snapshot()
	if err != nil {
		r.Fatal(err)
	}
	fresh := &tape{t, &loop.State{}}
	fresh.add(event.Compacted{Snapshot: snapshot})
	if got := startable(fresh); got != strings.Join(want, " ") {
		r.Fatalf("may start after a snapshot: %q, want %q", got, want)
	}
	return fresh
}

// TestNextWhileCallsRun checks that a run does not end while calls run, whatever waits.
func TestNextWhileCallsRun(t *testing.T) {
	tp := newTape(t, said("x"), event.Asked{Turn: 1}, reply(llm.StopCalls, call("1", "r"), call("2", "w"), call("3", "w")),
		allowed("1", read("/a")), event.Judged{
			Call: "2", Action: tool.Ask,
			Effects: []tool.Effect{write("/b")},
		}, event.Waiting{Call: "2"}, allowed("3", write("/b")))
	tp.want("run 1")
	tp.add(event.Started{Call: "1"})
	tp.want("await")
	if got := ids(tp.Waiting()); got != "2" {
		t.Errorf("%q waits", got)
	}
	tp.add(event.Decided{Call: "2", Allow: true})
	tp.want("run 2")
	tp.add(event.Started{Call: "2"}, event.Cancelled{})
	tp.want("end 3=cancelled")
	tp.add(tp.Next().(loop.End).Ended[0])
	tp.want("await")
	tp.add(ended("1", "ok"), ended("2", "ok"))
	tp.want("stop cancelled")
}

// TestTimeOfARun checks which time counts for a run, and when it is used up.
func TestTimeOfARun(t *testing.T) {
	var s loop.State
	at := time.Unix(1e9, 0)
	pass := func(d time.Duration, b event.Body) {
		at = at.Add(d)
		if err := s.Apply(event.Event{Seq: s.Seq + 1, Time: at, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	used := func(want float64, left time.Duration) {
		t.Helper()
		deadline := time.Time{}
		if left > 0 {
			deadline = at.Add(left)
		}
		if got := s.Deadline(); s.Run.Used() != want || !got.Equal(deadline) {
			t.Fatalf("%v s used, want %v; used up %v, want %v", s.Run.Used(), want, got, deadline)
		}
	}
	pass(0, event.Switched{Limits: &event.Limits{Seconds: 60}})
	pass(0, said("x"))
	pass(time.Hour, event.Claimed{Epoch: 1}) // no one was there to do it
	pass(0, event.Asked{Turn: 1})
	pass(10*time.Second, reply(llm.StopCalls, call("1", "w"), call("2", "w")))
	pass(0, allowed("1", read("/a")))
	pass(0, event.Judged{Call: "2", Action: tool.Ask, Effects: []tool.Effect{write("/b")}})
	pass(0, event.Waiting{Call: "2"})
	used(10, 50*time.Second)
	pass(0, event.Started{Call: "1"})
	pass(5*time.Second, event.Raised{ID: "1?1", Call: "1"}) // all that goes on waits
	used(15, 0)
	pass(24*time.Hour, event.Decided{Call: "2", Allow: true})
	used(15, 45*time.Second)
	pass(0, event.Started{Call: "2"})
	pass(time.Second, ended("2", "ok"))
	used(16, 0)
	pass(24*time.Hour, event.Decided{Call: "1?1"})
	pass(2*time.Second, event.Steered{Origin: event.OriginPerson, Parts: llm.Say("hm")})
	used(18, 42*time.Second)
	pass(24*time.Hour, event.Note{Topic: "recovered"}) // it had died
	pass(24*time.Hour, event.Titled{Title: "t"})
	pass(24*time.Hour, event.Claimed{Epoch: 2})
	used(16, 44*time.Second)
	pass(0, event.Started{Call: "1"})
	pass(time.Second, event.Cancelled{Limit: event.ReasonMaxTime}) // someone thought so
	used(17, 43*time.Second)
	pass(43*time.Second, event.Cancelled{Limit: event.ReasonMaxTime})
	pass(0, ended("1", "stopped"))
	stop, ok := s.Next().(loop.Stop)
	if !ok || stop.Stopped.Reason != event.ReasonMaxTime || stop.Stopped.Detail != "60 seconds used of 60" {
		t.Fatalf("%+v", s.Next())
	}
	pass(0, stop.Stopped)
	pass(time.Hour, event.Switched{Limits: &event.Limits{Seconds: 100}})
	pass(0, event.Said{})
	used(60, 40*time.Second)
}

// TestTimeWhileChildrenAsk checks that time stands still while all that work for a run wait for people, and only then.
func TestTimeWhileChildrenAsk(t *testing.T) {
	raised := func(child string) event.Body { return event.Raised{ID: child + "/q", Child: child} }
	for name, tc := range map[string]struct {
		bodies []event.Body
		stands bool
	}{
		"one of a call": {[]event.Body{event.Spawned{Child: "s.1", Call: "1@1"}, raised("s.1")}, true},
		"one of two": {
			[]event.Body{event.Spawned{Child: "s.1", Call: "1@1/1"}, event.Spawned{Child: "s.2", Call: "1@1/2"}, raised("s.1")},
			false,
		},
		"both": {[]event.Body{
			event.Spawned{Child: "s.1", Call: "1@1/1"},
			event.Spawned{Child: "s.2", Call: "1@1/2"},
			raised("s.1"), raised("s.2"),
		}, true},
		"of another":  {[]event.Body{event.Spawned{Child: "s.1", Call: "10@1"}, raised("s.1")}, false},
		"in the back": {[]event.Body{event.Spawned{Child: "s.1", Call: "1@1", Background: true}, raised("s.1")}, false},
		"while the call": {[]event.Body{
			event.Spawned{Child: "s.1", Call: "1@1", Background: true},
			raised("s.1"), ended("1", "ok"),
			event.Asked{Turn: 2},
		}, false},
		"at the end": {[]event.Body{
			event.Spawned{Child: "s.1", Background: true},
			raised("s.1"), ended("1", "ok"),
			event.Asked{Turn: 2},
			reply(llm.StopEnd, llm.Text{Text: "so"}),
		}, true},
	} {
		tp := newTape(t, event.Switched{Limits: &event.Limits{Seconds: 60}}, said("x"), event.Asked{Turn: 1},
			reply(llm.StopCalls, call("1", "spawn")), allowed("1"), event.Started{Call: "1"})
		tp.add(tc.bodies...)
		if got := tp.Deadline().IsZero(); got != tc.stands {
			t.Errorf("%s: it stands still: %v", name, got)
		}
	}
}
