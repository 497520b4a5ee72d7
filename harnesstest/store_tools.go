package harnesstest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// storeTools checks that specs of tools, which are large and shared by many sessions, are read back unchanged:
// in another process, in a child, in a fork, in a snapshot, and when others are gone.
func storeTools(t *testing.T, h house) {
	tools := []llm.ToolSpec{
		{Name: "read", Description: strings.Repeat("reads <a> file & \"says\" so ", 40), Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "x", Description: "small", Schema: json.RawMessage(`{}`)},
		{Name: "write", Description: strings.Repeat("writes \u2028 a file ", 40), Schema: json.RawMessage(`{"type":"object"}`)},
	}
	snapshot, err := json.Marshal(map[string]any{"Tools": tools, "System": []string{`the text "tools":[] itself`}})
	if err != nil {
		t.Fatal(err)
	}
	bodies := []event.Body{
		event.Opened{Format: event.Format, Root: "/w"},
		event.Switched{Route: "p/m", Tools: tools},
		event.Compacted{Why: loop.CompactAsked, Snapshot: snapshot},
		event.Switched{Tools: tools[:1]},
		event.Rewound{To: 2, Of: 4, Snapshot: snapshot},
	}
	first := h.create(t, bodies...)
	want := logRead(t, first, 0)
	child, _, err := h.store.Child(t.Context(), first.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	leased(t, child, bodies...)
	fork, err := h.store.Fork(t.Context(), first.ID(), 3)
	if err != nil {
		t.Fatal(err)
	}
	leased(t, fork, bodies[3:]...)
	same := func(l store.Log, most int) {
		t.Helper()
		for i, e := range logRead(t, h.open(t, l.ID()), 0)[:most] {
			if diff := cmp.Diff(want[i].Body, e.Body); diff != "" {
				t.Errorf("event %d of %s (-want +got):\n%s", i+1, l.ID(), diff)
			}
		}
	}
	logSame(t, logRead(t, h.open(t, first.ID()), 0), want)
	same(child, 5)
	same(fork, 3)
	if start, err := h.open(t, first.ID()).Start(t.Context()); start != 4 || err != nil {
		t.Errorf("Start: %d, %v; want behind event 4", start, err)
	}
	if err := errors.Join(first.Close(), child.Close(), h.store.Remove(t.Context(), first.ID())); err != nil {
		t.Fatal(err)
	}
	same(fork, 3)
}
