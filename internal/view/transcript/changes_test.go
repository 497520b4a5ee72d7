package transcript_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestUndoneChanges checks which changes are in effect: not undone ones, and again those that were undone and done
// again.
func TestUndoneChanges(t *testing.T) {
	edit := func(call, path string) []event.Body {
		return []event.Body{
			event.Asked{},
			event.Replied{Parts: llm.Parts{llm.Call{ID: call, Name: "note"}}},
			event.Judged{Call: call, Action: tool.Allow},
			event.Checkpoint{ID: "before " + call},
			event.Started{Call: call},
			event.Ended{Call: call, Outcome: event.OutcomeOK, Files: []tool.File{{Path: "/w/" + path, Written: true, Diff: "+" + call + "\n"}}},
			event.Checkpoint{ID: "after " + call, After: true},
		}
	}
	begin := slices.Concat([]event.Body{event.Opened{Root: "/w"}, event.Say("go")}, edit("one", "a"), edit("two", "b"), edit("three", "d/c"))
	undone := event.Restored{To: "before two", Before: "u1", After: "u2", Files: []string{"b", "d/c"}}
	for name, c := range map[string]struct {
		then []event.Body
		want string
	}{
		"nothing":      {nil, "one two three"},
		"undone":       {[]event.Body{undone}, "one"},
		"redone":       {[]event.Body{undone, event.Restored{To: "u1", Before: "u3", After: "u4", Files: []string{"b", "d/c"}}}, "one two three"},
		"one kept":     {[]event.Body{event.Restored{To: "before two", Before: "u1", After: "u2", Files: []string{"d/c"}, Kept: 1}}, "one two"},
		"all undone":   {[]event.Body{event.Restored{To: "before one", Before: "u1", After: "u2", Files: []string{"a", "b", "d/c"}}}, ""},
		"then another": {append([]event.Body{undone}, edit("four", "b")...), "one four"},
	} {
		var changes transcript.Changes
		for i, b := range slices.Concat(begin, c.then) {
			changes.Apply(event.Event{Seq: uint64(i) + 1, Session: "s", Body: b})
		}
		var got []string
		for _, change := range changes.All {
			got = append(got, strings.Trim(change.Diff, "+\n"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
