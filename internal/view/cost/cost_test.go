package cost_test

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// log makes events of bodies, one a minute.
func log(session string, bodies ...event.Body) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i, b := range bodies {
			e := event.Event{Seq: uint64(i + 1), Time: noon.Add(time.Duration(i) * time.Minute), Session: session, Body: b}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func calls(names ...string) event.Replied {
	r := event.Replied{Stop: llm.StopCalls, Route: "near/a", Usage: llm.Usage{Input: 1000, Output: 100}, Cost: 1}
	for _, name := range names {
		r.Parts = append(r.Parts, llm.Call{ID: name, Name: name, Args: json.RawMessage("{}")})
	}
	return r
}

func ended(call, text string) event.Body {
	return event.Ended{Call: call, Outcome: event.OutcomeOK, Parts: llm.Say(text)}
}

func answer(route string, usage llm.Usage, dollars float64) event.Replied {
	return event.Replied{Stop: llm.StopEnd, Route: route, Parts: llm.Say("Done."), Usage: usage, Cost: dollars}
}

func tallies(t *testing.T, session string, events iter.Seq2[event.Event, error]) []cost.Tally {
	t.Helper()
	out, err := cost.Tallies(session, events)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func keys(rows []cost.Row) map[string]float64 {
	out := map[string]float64{}
	for _, r := range rows {
		out[r.Key] = r.Dollars.Dollars()
	}
	return out
}

func TestGroup(t *testing.T) {
	all := append(tallies(t, "s1", log("s1",
		event.Opened{}, event.Said{}, calls("read_file", "bash"), ended("read_file", strings.Repeat("x", 299)),
		ended("bash", strings.Repeat("x", 99)),
		answer("far/b", llm.Usage{Input: 2000, Output: 10}, 4),
	)), tallies(t, "s2", log("s2",
		event.Opened{Parent: "s1"}, event.Routed{Rule: "small", Route: "near/a"},
		event.Replied{Stop: llm.StopEnd, Route: "near/a", Usage: llm.Usage{Output: 5, Estimated: true}, Unpriced: true},
	))...)
	for by, want := range map[string]map[string]float64{
		"session": {"s1": 5, "s2": 0},
		"day":     {"2026-11-21": 5},
		"model":   {"near/a": 1, "far/b": 4},

		"agent": {"s1": 5, "s1 > s2": 0},
	} {
		rows, err := cost.Group(all, by)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, keys(rows)); diff != "" {
			t.Errorf("%s: %s", by, diff)
		}
	}
	total := cost.Sum(all)
	want := cost.Row{
		Key: "total", Replies: 3, Usage: llm.Usage{Input: 3000, Output: 115, Estimated: true},
		Dollars: cost.Of(5), Unpriced: 1, Estimated: 1,
	}
	if diff := cmp.Diff(want, total); diff != "" {
		t.Error(diff)
	}
	if _, err := cost.Group(all, "moon"); err == nil || !strings.Contains(err.Error(), "session, day") {
		t.Error(err)
	}
}

// TestAllThatIsPaidFor checks that summaries, reviews and the spending of calls count too.
func TestAllThatIsPaidFor(t *testing.T) {
	spends := event.Ended{Call: "bash", Outcome: event.OutcomeFailed, Parts: llm.Say("x"), Cost: 2}
	all := tallies(t, "s", log("s", calls("bash", "read_file"),
		event.Judged{Call: "bash", By: "reviewer far/b", Cost: 4}, event.Judged{Call: "read_file", By: "rule"}, spends, ended("read_file", "x"),
		event.Compacted{Route: "far/c", Usage: llm.Usage{Input: 10}, Cost: 8}, event.Kept{Usage: llm.Usage{Input: 1}},
		event.Routed{Route: "near/a", Rule: "easy", Judge: "near/j", Cost: 16}, event.Failed{Cause: llm.KindRefused, Route: "far/d", Cost: 32},
		event.Judged{Call: "bash", By: "rule", Route: "far/b", Cost: 64},
	))
	for by, want := range map[string]map[string]float64{
		"model": {"near/a": 1, "far/b": 68, "(calls)": 2, "far/c": 8, "(summary)": 0, "near/j": 16, "far/d": 32},
	} {
		rows, err := cost.Group(all, by)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, keys(rows)); diff != "" {
			t.Errorf("%s: %s", by, diff)
		}
	}
	if got := cost.Sum(all).Usage.Input; got != 1011 {
		t.Errorf("%d tokens", got)
	}
}

// What a fork has copied was paid for once.
func TestForksCountOnce(t *testing.T) {
	fork := func(yield func(event.Event, error) bool) {
		for e, err := range log("old", event.Opened{}, answer("near/a", llm.Usage{}, 3)) {
			if !yield(e, err) {
				return
			}
		}
		for e, err := range log("new", event.Forked{From: "old", Seq: 2}, answer("near/a", llm.Usage{}, 2)) {
			if e.Seq += 2; !yield(e, err) {
				return
			}
		}
	}
	if got := cost.Sum(tallies(t, "new", fork)).Dollars; got != cost.Of(2) {
		t.Errorf("the fork cost %v", got)
	}
}

func TestDamageIsReported(t *testing.T) {
	broken := errors.New("broken")
	events := func(yield func(event.Event, error) bool) { yield(event.Event{}, broken) }
	if _, err := cost.Tallies("s", events); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := cost.Turns("s", events, hybrid()); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// priced is a model with a price a token.
type priced struct {
	script.Model
	info llm.Info
}

func (p *priced) Info() llm.Info { return p.info }

func hybrid() *router.Model {
	near := &priced{info: llm.Info{Provider: "near", Model: "a", Window: 50_000}}
	far := &priced{info: llm.Info{Provider: "far", Model: "b", Window: 1_000_000, Prices: llm.Prices{{Input: 1e6, Output: 1e6}}}}
	return &router.Model{
		ID:     "hybrid",
		Routes: []router.Route{{Name: "local", Model: near, Local: true}, {Name: "cloud", Model: far}},
		Rules: []router.Rule{
			{Name: "long", When: router.Cond{MinTokens: 1000}, Use: []string{"cloud"}},
			{Name: "short", Use: []string{"local"}},
		},
	}
}

func TestSuppose(t *testing.T) {
	small, big := event.Say("hi"), event.Say(strings.Repeat("long ", 2000))
	used := llm.Usage{Input: 10, Output: 1}
	asked := event.Asked{Turn: 1}
	m := hybrid()
	turns, err := cost.Turns("s", log("s",
		event.Opened{}, small, asked, calls("t"), event.Started{Call: "t"}, ended("t", strings.Repeat("long ", 2000)),
		asked, answer("x/y", used, 5), event.Stopped{Reason: event.ReasonDone},
		big, asked, answer("x/y", used, 5),
	), m)
	if err != nil || len(turns) != 3 {
		t.Fatalf("%d turns, %v", len(turns), err)
	}
	if o := cost.Recorded(turns); o.Dollars != 11 || o.Turns != 3 {
		t.Errorf("recorded %+v", o)
	}
	// The second turn is long, but continues with the calls of a local model.
	want := cost.Outcome{Strategy: "hybrid", Dollars: 11, Turns: 3, Local: 2, Rules: []cost.Share{
		{Rule: "short", Turns: 2}, {Rule: "long", Turns: 1, Cloud: 1, Dollars: 11},
	}}
	if diff := cmp.Diff(want, cost.Suppose("hybrid", turns, m)); diff != "" {
		t.Error(diff)
	}
	m.Force = "cloud"
	o := cost.Suppose("cloud only", turns, m)
	if o.Dollars != 1100+11+11 || o.Local != 0 {
		t.Errorf("cloud only %+v", o)
	}
	if w := strings.Join(o.Warnings(), "\n"); !strings.Contains(w, `the rule "forced" sends all 3 turns to the cloud`) {
		t.Errorf("warnings %q", w)
	}
}

// TestSupposeCountsCaches checks the hypothetical cost of a turn's prompt with the caches that a strategy would have
// had: cold after a switch, a long pause and a compaction, and warm otherwise.
func TestSupposeCountsCaches(t *testing.T) {
	m := hybrid()
	m.Routes[1].Model = &priced{info: llm.Info{Provider: "far", Model: "b", Prices: llm.Prices{{Input: 10, CacheRead: 1, CacheWrite: 12}}}}
	m.Rules = []router.Rule{
		{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud"}},
		{Name: "easy", Use: []string{"local"}},
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	turn := func(after time.Duration, hard, cold bool) cost.Turn {
		at = at.Add(after)
		return cost.Turn{
			Session: "s", Route: "x/y", Cold: cold, At: at, Usage: llm.Usage{Input: 100_000},
			Features: router.Features{Tokens: 10, Hard: hard, Step: "prompt"},
		}
	}
	for name, tt := range map[string]struct {
		second cost.Turn
		want   float64
	}{
		"warm":        {turn(time.Minute, true, false), 1.2 + 0.1},
		"after a day": {turn(24*time.Hour, true, false), 1.2 + 1.2},
		"compacted":   {turn(time.Minute, true, true), 1.2 + 1.2},
		"free":        {turn(time.Minute, false, false), 1.2},
	} {
		first := tt.second
		first.At, first.Cold, first.Features.Hard = tt.second.At.Add(-time.Minute), true, true
		if name == "after a day" {
			first.At = tt.second.At.Add(-24 * time.Hour)
		}
		if o := cost.Suppose("hybrid", []cost.Turn{first, tt.second}, m); math.Abs(o.Dollars-tt.want) > 1e-9 {
			t.Errorf("%s: $%v, want $%v", name, o.Dollars, tt.want)
		}
	}
	same := turn(time.Minute, true, false)
	same.Route, same.Usage = "far/b", llm.Usage{CacheRead: 90_000, CacheWrite: 10_000}
	if o := cost.Suppose("hybrid", []cost.Turn{same, same}, m); math.Abs(o.Dollars-2*(0.09+0.12)) > 1e-9 {
		t.Errorf("what was recorded counts: $%v", o.Dollars)
	}
}

// A router whose rules come to the same as the cloud alone is shown as such.
func TestCloudOnlyIsVisible(t *testing.T) {
	m := hybrid()
	m.Rules = []router.Rule{{Name: "quality first", Use: []string{"cloud", "local"}}}
	turns, err := cost.Turns("s", log("s", event.Say("hi"), event.Asked{}, answer("x/y", llm.Usage{Input: 1}, 1)), m)
	if err != nil {
		t.Fatal(err)
	}
	w := cost.Suppose("hybrid", turns, m).Warnings()
	if len(w) != 1 || !strings.Contains(w[0], `the rule "quality first" sends all 1 turns to the cloud`) {
		t.Errorf("warnings %q", w)
	}
}

func TestNobodyCouldAnswer(t *testing.T) {
	m := hybrid()
	m.Force, m.Private = "cloud", []string{"ACME-[0-9]+"}
	turns, err := cost.Turns("s", log("s", event.Say("what is ACME-17?"), event.Asked{}, answer("x/y", llm.Usage{Input: 1}, 1)), m)
	if err != nil {
		t.Fatal(err)
	}
	o := cost.Suppose("cloud only", turns, m)
	if o.Nobody != 1 || !strings.Contains(strings.Join(o.Warnings(), "\n"), "answered by nobody") {
		t.Errorf("outcome %+v, %q", o, o.Warnings())
	}
}
