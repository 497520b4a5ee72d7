package running_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestOpened checks that a session that someone has open is listed as idle until it is closed or the process has ended.
func TestOpened(t *testing.T) {
	r := newTable(t)
	list := func(driven ...running.Driven) (states []string) {
		t.Helper()
		for _, d := range r.WithOpen(t.Context(), driven) {
			states = append(states, d.State+" "+d.What)
			if d.PID != os.Getpid() {
				t.Errorf("process %d", d.PID)
			}
		}
		return states
	}
	if got := list(); len(got) != 0 {
		t.Errorf("nothing was opened: %q", got)
	}
	id := past(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("hello"), event.Stopped{Reason: event.ReasonDone})
	closed := r.Opened(id)
	if got := list(); len(got) != 1 || got[0] != "idle hello" {
		t.Errorf("it is open: %q", got)
	}
	if got := list(running.Driven{ID: id, PID: os.Getpid(), State: running.StateRunning}); len(got) != 1 || got[0] != "running " {
		t.Errorf("it is driven: %q", got)
	}
	closed()
	if got := list(); len(got) != 0 {
		t.Errorf("it is closed: %q", got)
	}
	asks := past(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("hello"), event.Asked{},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "x"}}}, event.Judged{Call: "1", Action: tool.Ask}, event.Waiting{Call: "1"})
	defer r.Opened(asks)()
	left := filepath.Join(r.StateDir, "open", id+"-1.json") // of a process that was killed
	if err := os.WriteFile(left, []byte(`{"Session":"`+id+`","PID":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(r.StateDir, "open", id+"-2.json")
	if err := os.WriteFile(torn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	off := past(t, r, event.Opened{Format: 1, Root: "/w"}, event.Say("cut off"), event.Asked{})
	defer r.Opened(off)()
	defer r.Opened("20260101-000000-gone")()
	if got := list(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"idle cut off", "waiting hello"}) {
		t.Errorf("two are left: %q", got)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Error("what a killed process left stays")
	}
}
