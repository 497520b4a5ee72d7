package running_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/tool"
)

// opening is the beginning of a session whose run is in progress.
func opening(task string) []event.Body {
	return []event.Body{event.Opened{Format: event.Format, Root: "/w"}, event.Say(task), event.Asked{Turn: 1, Route: "p/m"}}
}

// asking is a session whose run waits for an approval.
func asking(task string) []event.Body {
	return append(opening(task), event.Replied{Parts: asks(), Route: "p/m", Cost: 0.25}, event.Judged{Call: "c", Action: tool.Ask},
		event.Waiting{Call: "c"})
}

// seen finds the row of a session.
func seen(t *testing.T, rows []running.Row, id string) running.Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r running.Row) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("no row of %s in %+v", id, rows)
	}
	return rows[i]
}

// TestBoard checks the states of sessions by the list of the store alone, and with their logs.
func TestBoard(t *testing.T) {
	r := newTable(t)
	ended := func(task string, why event.Stopped) string { return past(t, r, append(opening(task), why)...) }
	done := ended("finish", event.Stopped{Reason: event.ReasonDone})
	failed := ended("fail", event.Stopped{Reason: event.ReasonMaxTurns, Detail: "3 of 3"})
	cancelled := ended("cancel", event.Stopped{Reason: event.ReasonCancelled})
	broken := ended("broken", event.Stopped{Reason: event.ReasonDone})
	if err := os.WriteFile(filepath.Join(r.SessionsDir(), broken, "log.jsonl"), []byte("{\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := past(t, r, opening("cut off")...)
	left := past(t, r, asking("left alone")...)
	works := held(t, r, opening("work")...)
	asks := held(t, r, asking("ask")...)
	child, _, err := r.Sessions.Child(t.Context(), works.ID(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()

	b := r.NewBoard()
	defer b.Close()
	rows, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stand := func() map[string]running.Standing {
		out := map[string]running.Standing{}
		for _, row := range rows {
			out[row.ID] = row.Standing
		}
		return out
	}
	want := map[string]running.Standing{
		done: running.StandsDone, failed: running.StandsFailed, cancelled: running.StandsIdle, broken: running.StandsFailed,
		cut: running.StandsIdle, left: running.StandsIdle, works.ID(): running.StandsRunning, asks.ID(): running.StandsRunning,
	}
	if diff := cmp.Diff(want, stand()); diff != "" {
		t.Errorf("by the list (-want +got):\n%s", diff)
	}
	var open, all []string
	for _, row := range rows {
		if all = append(all, row.ID); row.Open {
			open = append(open, row.ID)
		}
	}
	if len(open) != 4 {
		t.Errorf("open are %v", open)
	}
	rows = b.Look(t.Context(), open...)
	want[left], want[asks.ID()] = running.StandsWaiting, running.StandsWaiting
	if diff := cmp.Diff(want, stand()); diff != "" {
		t.Errorf("by their logs (-want +got):\n%s", diff)
	}
	if first := []string{rows[0].ID, rows[1].ID}; !slices.Contains(first, left) || !slices.Contains(first, asks.ID()) {
		t.Errorf("what waits is not first: %v", first)
	}
	if row := seen(t, rows, asks.ID()); row.Cost != 0.25 || row.Words != "bash asks" || len(row.Questions) != 1 || row.Stale {
		t.Errorf("%+v", row)
	}
	if row := seen(t, rows, works.ID()); row.Agents != 1 {
		t.Errorf("%+v", row)
	}
	rows = b.Look(t.Context(), all...)
	if row := seen(t, rows, failed); row.Words != "max turns: 3 of 3" || !row.Known {
		t.Errorf("%+v", row)
	}
	if row := seen(t, rows, broken); row.Words == "" || row.Stale {
		t.Errorf("%+v", row)
	}
}

// TestBoardFollows checks that the board shows new events of a driven session, and that an answered question
// disappears.
func TestBoardFollows(t *testing.T) {
	r := newTable(t)
	log := held(t, r, asking("ask")...)
	b := r.NewBoard()
	defer b.Close()
	look := func() running.Row {
		t.Helper()
		rows, err := b.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if row := seen(t, rows, log.ID()); !row.Stale {
			return row
		}
		return seen(t, b.Look(t.Context(), log.ID()), log.ID())
	}
	if row := look(); row.Standing != running.StandsWaiting {
		t.Errorf("%+v", row)
	}
	more := func(bodies ...event.Body) {
		t.Helper()
		if _, err := harnesstest.Write(t.Context(), log, bodies...); err != nil {
			t.Fatal(err)
		}
	}
	more(event.Decided{Call: "c", Allow: true, By: "the user"}, event.Started{Call: "c"})
	if row := look(); row.Standing != running.StandsRunning || len(row.Questions) > 0 {
		t.Errorf("%+v", row)
	}
	if err := log.Release(); err != nil { // as a process does between two runs
		t.Fatal(err)
	}
	if row := look(); row.Standing != running.StandsRunning {
		t.Errorf("it is given up at once: %+v", row)
	}
	if row := look(); row.Standing != running.StandsIdle {
		t.Errorf("nobody drives it: %+v", row)
	}
}

// TestBoardSearches finds text in a session and in those that work for it.
func TestBoardSearches(t *testing.T) {
	r := newTable(t)
	id := past(t, r, append(opening("look at the heron"), event.Stopped{Reason: event.ReasonDone})...)
	past(t, r, append(opening("look at the egret"), event.Stopped{Reason: event.ReasonDone})...)
	child, _, err := r.Sessions.Child(t.Context(), id, "a")
	if err == nil {
		err = child.Lease(t.Context())
	}
	if err == nil {
		_, err = harnesstest.Write(t.Context(), child, event.Opened{Format: event.Format, Parent: id}, event.Say("find the (owl"))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	b := r.NewBoard()
	defer b.Close()
	for text, want := range map[string]map[string]string{
		"HERON": {id: "look at the heron"}, "(owl": {id: "find the (owl"}, "stork": {},
	} {
		if got, err := b.Search(t.Context(), text); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
