package journeys_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// TestQuestionWaits checks that a question waits for the person in every mode, and that no rule answers it.
func TestQuestionWaits(t *testing.T) {
	for _, mode := range tool.Modes() {
		a := inspan.Agent{
			Model: scripted(t, `call: ask_user {"question":"which bird?","options":["heron","egret"]}`, "done"), Tools: core("ask_user"), Mode: mode,
			Env: tool.Env{Root: "/w"}, Rules: []inspan.Rule{{Action: tool.Allow, Text: "ask_user"}, {Action: tool.Allow, Text: "external"}},
		}
		log := event.NewMemory("s")
		s, err := a.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		drivenTo(t, s, said("go"))
		w := s.Status().Waiting
		if len(w) != 1 || !w[0].IsQuestion || len(w[0].Rules) > 0 || w[0].Preview != "which bird?\n1. heron\n2. egret" {
			t.Fatalf("%s: waiting: %+v", mode, w)
		}
		// Another driver can have the answer.
		again, err := a.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		ended := bodiesOf[event.Ended](drivenTo(t, again, event.Decided{Call: w[0].Call.ID, Allow: true, By: "ann", Answer: "a kingfisher"}))
		if len(ended) != 1 || ended[0].Outcome != event.OutcomeOK || ended[0].Parts.Text() != "The person answers: a kingfisher" {
			t.Errorf("%s: %+v", mode, ended)
		}
		if again.Status().Untrusted {
			t.Errorf("%s: what the person answers counts as text from elsewhere", mode)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	a := inspan.Agent{
		Model: scripted(t, `call: ask_user {"question":"which?"}`, "done"), Tools: core("ask_user"), Mode: "yolo",
		Unattended: true, Env: tool.Env{Root: "/w"},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	ended := bodiesOf[event.Ended](drivenTo(t, s, said("go")))
	if len(ended) != 1 || ended[0].Outcome != event.OutcomeDenied || !strings.Contains(ended[0].Parts.Text(), "decide yourself") {
		t.Errorf("%+v", ended)
	}
}

// TestTodoOutlivesCompaction checks that the list is carried as it is, and not by a summary.
func TestTodoOutlivesCompaction(t *testing.T) {
	m := &longWork{t: t, window: 60_000, turns: 60, summary: record}
	a := longAgent(m)
	a.Tools = append(a.Tools, core("todo")...)
	asks := callOnce{m, "todo", `{"items":[{"text":"watch the egret","state":"done"},{"text":"ring the HERON","state":"doing"}]}`}
	a.Model = &asks
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Say(order))
	if len(bodiesOf[event.Compacted](events)) < 2 {
		t.Fatal("nothing was compacted")
	}
	text := ""
	for _, msg := range m.asked[len(m.asked)-1].Messages {
		text += msg.Parts.Text()
	}
	if !strings.Contains(text, "- [done] watch the egret\n- [doing] ring the HERON") {
		t.Errorf("the list is gone: %.3000s", text)
	}
}
