package transcript_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// anyBody is a random body in a log, or a transient one. It uses few ids, so that events refer to each other.
func anyBody(r *rand.Rand) event.Body {
	id := fmt.Sprint(r.IntN(4))
	n := uint64(r.IntN(60))
	text := []string{"", "a", "some words", "\n", "zwölf\x1b[2J"}[r.IntN(5)]
	exit := r.IntN(2)
	bodies := []event.Body{
		event.Say(text),
		event.Said{},
		event.Said{Parts: llm.Say(text), Origin: event.OriginAgent},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Say(text)},
		event.Asked{},
		event.Delta{Text: text},
		event.Delta{Reasoning: text},
		event.Delta{Void: true},
		event.Delta{Call: &llm.CallDelta{Name: id, Args: text}},
		event.Replied{Parts: llm.Parts{llm.Reasoning{Text: text}, llm.Text{Text: text}, bash(id), bash(id + "x")}, Cost: 1, Unpriced: exit == 1},
		event.Failed{Message: text, Retry: float64(exit), Cost: 1},
		event.Routed{Route: id, Rule: text},
		event.Routed{Route: id, From: text},
		event.Judged{Call: id, Args: json.RawMessage(`{"command":"y"}`), Effects: []tool.Effect{{Kind: tool.Write, Path: text}}, Cost: 1},
		event.Judged{Call: id + "x"},
		event.Waiting{Call: id, Preview: text},
		event.Decided{Call: id, Question: n, Allow: exit == 0},
		event.Decided{Call: id, By: text},
		event.Started{Call: id},
		event.Progress{Call: id, Text: text},
		event.Progress{Text: text},
		event.Progress{Call: id, Text: text, Wait: 1},
		event.Ended{Call: id, Exit: &exit, Files: []tool.File{{Path: text, Written: exit == 1}}},
		event.Ended{Call: id + "x", Outcome: event.OutcomeDenied},
		event.Spawned{Child: "s." + id},
		event.Raised{ID: id, Child: "s." + id, Of: n},
		event.Raised{ID: id, Call: id},
		event.Returned{Child: "s." + id, Cost: 1},
		event.Forked{From: id},
		event.Rewound{To: n},
		event.Switched{Route: text, Mode: tool.Mode(id)},
		event.Compacted{After: exit},
		event.Kept{Cost: 1},
		event.Stopped{Reason: event.ReasonDone},
		event.Cancelled{},
		event.Paused{Message: text},
		event.Claimed{},
		event.Note{Text: text},
		event.Unknown{Name: id},
	}
	return bodies[r.IntN(len(bodies))]
}

// anyLog is a log with transient events. It ends with a stop, so nothing is in progress.
func anyLog(seed uint64) (events []event.Event) {
	r := rand.New(rand.NewPCG(seed, 1))
	var seq uint64
	for range 20 + r.IntN(60) {
		b := anyBody(r)
		e := event.Event{Time: time.Unix(int64(seq), 0), Session: "s", Body: b}
		switch b.(type) {
		case event.Delta, event.Progress:
		default:
			seq++
			e.Seq = seq
		}
		events = append(events, e)
	}
	return append(events, event.Event{Seq: seq + 1, Time: time.Unix(int64(seq), 0), Body: event.Stopped{Reason: event.ReasonDone}})
}

// TestAnyOrder checks, for logs that no driver writes, that nothing breaks, that transient events leave nothing behind,
// and that open items are on the lists of current ones.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(500) {
		events := anyLog(seed)
		f, items := folded(events)
		g, again := folded(slices.DeleteFunc(slices.Clone(events), event.Event.Transient))
		for _, c := range slices.Concat(f.Now.Running, g.Now.Running) {
			t.Fatalf("seed %d: %s runs after the stop", seed, c.Call.ID)
		}
		if diff := gocmp.Diff(items, again, public()); diff != "" {
			t.Fatalf("seed %d: items: %s", seed, diff)
		}
		if diff := gocmp.Diff(g.Spent, f.Spent); diff != "" {
			t.Fatalf("seed %d: spent: %s", seed, diff)
		}
		for _, item := range items {
			if q, ok := item.(*transcript.Question); ok && q.Closed == slices.Contains(f.Now.Questions, q) {
				t.Fatalf("seed %d: question %s: closed %v", seed, q.ID, q.Closed)
			}
		}
	}
}
