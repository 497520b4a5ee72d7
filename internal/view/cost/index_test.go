package cost_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// rows are all groupings of the costs that the tallies allow, and the warnings.
func rows(t *testing.T, s *session.Store, of cost.Spending) (out map[string][]cost.Row, warned int) {
	t.Helper()
	tallies, err := cost.Spent(t.Context(), s, of, func(string) { warned++ })
	if err != nil {
		t.Fatal(err)
	}
	out = map[string][]cost.Row{"": {cost.Sum(tallies)}}
	for _, by := range cost.Groupings() {
		if by == "tool" && of.Totals {
			continue
		}
		if out[by], err = cost.Group(tallies, by); err != nil {
			t.Fatal(err)
		}
	}
	return out, warned
}

// TestIndex checks that sums with an index are those without, whatever has happened to the sessions and to the index.
func TestIndex(t *testing.T) {
	s := &session.Store{Dir: t.TempDir(), Sync: session.SyncKill}
	year(t, s, 12)
	index := filepath.Join(t.TempDir(), "cost.index")
	same := func(what string, since time.Time) {
		t.Helper()
		for _, totals := range []bool{true, true, false, false, true} { // each as it is found, and as it was left
			want, warned := rows(t, s, cost.Spending{Since: since})
			got, again := rows(t, s, cost.Spending{Since: since, Totals: totals, Index: index})
			if totals {
				delete(want, "tool")
				alone, _ := rows(t, s, cost.Spending{Since: since, Totals: true})
				if diff := cmp.Diff(got, alone); diff != "" {
					t.Errorf("%s (-with +without an index):\n%s", what, diff)
				}
			}
			close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
			if diff := cmp.Diff(want, got, close); diff != "" || warned != again {
				t.Errorf("%s: %d and %d warnings (-without +with an index):\n%s", what, warned, again, diff)
			}
		}
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	same("at first", time.Time{})
	good, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	year(t, s, 1)
	same("a new session", time.Time{})
	ids, err := s.IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, since := range []time.Time{today, today.Add(24 * time.Hour), today.Add(time.Hour)} {
		same("since "+since.String(), since)
	}
	if err := s.Remove(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	same("a session less", time.Time{})
	spend(t, s, ids[1])
	same("a session that went on", time.Time{})
	log := filepath.Join(s.Dir, ids[2], "log.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, slices.Concat(data, []byte("damage\n"), data), 0o600); err != nil {
		t.Fatal(err)
	}
	same("a damaged session", time.Time{})
	for name, data := range map[string][]byte{
		"an index of earlier": good, "half an index": good[:len(good)/2], "no index": nil,
		"a wrong index": bytes.Replace(good, []byte("p/m"), []byte("p/x"), 1), "no index at all": []byte(strings.Repeat("x", 100)),
	} {
		if err := os.WriteFile(index, data, 0o600); err != nil {
			t.Fatal(err)
		}
		same(name, time.Time{})
	}
	index = filepath.Join(s.Dir, "not", "there")
	same("an index that can't be written", time.Time{})
}

// TestIndexSavesReading checks that a session that has not changed is not read again.
func TestIndexSavesReading(t *testing.T) {
	s := &session.Store{Dir: t.TempDir(), Sync: session.SyncKill}
	year(t, s, 1)
	of := cost.Spending{Index: filepath.Join(t.TempDir(), "cost.index")}
	want, _ := rows(t, s, of)
	of.Totals = true // which the tallies have too
	rows(t, s, of)
	of.Totals = false
	if err := os.RemoveAll(filepath.Join(s.Dir, "specs")); err != nil { // without which it can't be read
		t.Fatal(err)
	}
	got, warned := rows(t, s, of)
	if diff := cmp.Diff(want, got); diff != "" || warned > 0 {
		t.Errorf("%d warnings (-first +second):\n%s", warned, diff)
	}
}

// spend has a session continue and pay for one of everything.
func spend(t *testing.T, s *session.Store, id string) {
	t.Helper()
	l, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err = l.Lease(t.Context()); err == nil {
		paid := llm.Usage{Input: 7}
		_, err = harnesstest.Write(t.Context(), l,
			event.Replied{Route: "p/n", Cost: 3, Usage: paid},
			event.Replied{Route: "p/free", Usage: paid, Unpriced: true},
			event.Replied{Route: "p/no", Stop: llm.StopRefusal, Cost: 5, Usage: paid},
			event.Replied{Route: "p/nothing"},
			event.Routed{Route: "p/n", Rule: "hard", Judge: "p/judge", Usage: paid, Cost: 7},
			event.Failed{Cause: llm.KindNoReply, Message: "odd", Route: "p/failed", Usage: paid, Cost: 11},
			event.Judged{Call: "c", Tool: "bash", By: "reviewer p/reviewer", Action: tool.Allow, Cost: 13, Consulted: []llm.Consulted{{Usage: paid}}},
			event.Judged{Call: "d", Tool: "bash", By: "rule", Action: tool.Allow},
			event.Ended{Call: "c", Outcome: event.OutcomeOK, Cost: 17},
			event.Compacted{Route: "p/n", Usage: paid, Cost: 19},
			event.Kept{Reason: "no", Usage: paid, Cost: 23})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWithoutParts removes the parts of bodies, which everything else of an event does not need.
func TestWithoutParts(t *testing.T) {
	for _, b := range testkit.Bodies() {
		bare := reflect.New(reflect.TypeOf(b)).Elem()
		bare.Set(reflect.ValueOf(b))
		if parts := bare.FieldByName("Parts"); parts.IsValid() && parts.Type() == reflect.TypeFor[llm.Parts]() {
			parts.SetZero()
		}
		line, err := event.Encode(event.Event{Seq: 12, Session: "s", Body: b})
		if err != nil {
			t.Fatal(err)
		}
		got, err := event.Decode(cost.WithoutParts(slices.Clone(line)))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(bare.Interface(), got.Body); diff != "" {
			t.Errorf("%s\n%s", line, diff)
		}
		for n := range line {
			cost.WithoutParts(line[:n]) // does not panic
		}
	}
}
