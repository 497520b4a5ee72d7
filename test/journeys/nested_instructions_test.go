package journeys_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
)

// TestInstructionsOfASubtree checks that the instructions for a part of the workspace are added once, after the
// results, when it is first touched, and again after a compaction has removed them.
func TestInstructionsOfASubtree(t *testing.T) {
	m := &longWork{t: t, window: 60_000, turns: 60, summary: record}
	agent := longAgent(m)
	asked := map[string]int{}
	agent.Dynamic.Instructions = func(p string) []event.Added {
		asked[p]++
		return []event.Added{{Where: event.PlaceTail, Source: path.Dir(p) + "/AGENTS.md", Text: "MAGPIE rules"}}
	}
	s, err := agent.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Say(order))
	var since []string
	for _, e := range events {
		switch e.Body.Kind() {
		case "added", "compacted":
			since = append(since, e.Body.Kind())
		}
	}
	// The one folder is asked for at once, and again after each compaction.
	want := []string{"added"}
	for len(want) < len(since) {
		want = append(want, "compacted", "added")
	}
	if len(since) < 3 || !slices.Equal(since, want) {
		t.Errorf("order of events: %v", since)
	}
	for i, req := range m.asked[1:] {
		text := ""
		for _, msg := range req.Messages {
			text += msg.Parts.Text()
		}
		if n := strings.Count(text, "MAGPIE rules"); n > 1 {
			t.Fatalf("request %d holds them %d times", i+2, n)
		}
	}
	if len(asked) > 4 {
		t.Errorf("asked for %d paths of one folder", len(asked))
	}
}
