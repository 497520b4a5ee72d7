package corpus_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/corpus"
	"github.com/inspan/inspan/llm"
)

// TestAnswerIsToTheLastQuestion checks that an answer counts for the question that was worked on, also where the run
// was stopped in between, and for no later one.
func TestAnswerIsToTheLastQuestion(t *testing.T) {
	answer := func(id, text string) []event.Body {
		raw, err := json.Marshal(corpus.Answer{Verified: true, Answer: text})
		if err != nil {
			t.Fatal(err)
		}
		return []event.Body{
			event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: corpus.AnswerTool, Args: json.RawMessage("{}")}}, Stop: llm.StopCalls},
			event.Ended{Call: id, Outcome: event.OutcomeOK, Parts: llm.Say(string(raw))},
		}
	}
	type run = [][]event.Body
	done, stopped := event.Stopped{Reason: event.ReasonDone}, event.Stopped{Reason: event.ReasonBudget}
	one, two := event.Say("one?"), event.Say("two?")
	for name, tc := range map[string]struct {
		log  run
		want string
	}{
		"answered":            {run{{one}, answer("a", "one"), {done}}, "one"},
		"corrected":           {run{{one}, answer("a", "none"), answer("b", "one"), {done}}, "one"},
		"stopped, gone on":    {run{{one}, answer("a", "one"), {stopped, event.Said{}, done}}, "one"},
		"another question":    {run{{one}, answer("a", "one"), {done, two, done}}, ""},
		"both":                {run{{one}, answer("a", "one"), {done, two}, answer("b", "two"), {done}}, "two"},
		"asked meanwhile":     {run{{one, two}, answer("a", "one"), {done}}, ""},
		"answered meanwhile":  {run{{one, two}, answer("a", "one"), {done}, answer("b", "two"), {done}}, "two"},
		"said beside the run": {run{{one}, answer("a", "one"), {event.Steered{Origin: event.OriginPerson, Parts: llm.Say("in short")}, done}}, "one"},
	} {
		bodies := append([]event.Body{event.Opened{Format: event.Format, Root: "/w"}}, slices.Concat(tc.log...)...)
		got, err := corpus.Answered(t.Context(), nil, func(yield func(event.Event, error) bool) {
			for i, body := range bodies {
				if !yield(event.Event{Seq: uint64(i + 1), Session: "s", Body: body}, nil) {
					return
				}
			}
		})
		if err != nil || (got == nil) != (tc.want == "") || got != nil && got.Answer != tc.want {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, tc.want)
		}
	}
}
