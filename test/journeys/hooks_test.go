package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func always(out tool.Outcome) func(tool.Point) (tool.Outcome, error) {
	return func(tool.Point) (tool.Outcome, error) { return out, nil }
}

func TestHooksRunAtEachMoment(t *testing.T) {
	h := &hook{}
	var l ledger
	a := inspan.Agent{
		Model: scripted(t, `call: note {"word":"a"}`, "done"), Tools: []tool.Tool{l.writer()}, Mode: "yolo",
		Env: tool.Env{Root: "/w"}, Hooks: []tool.Hook{h},
	}
	log := event.NewMemory("s")
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, said("go"))
	drivenTo(t, s, said("and on"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, again, said("more"))
	want := []string{
		"session_start new", "prompt", "before_call", "after_call", "stop done", "prompt", "stop done", "session_end",
		"session_start resumed", "prompt", "stop done",
	}
	if !slices.Equal(h.at, want) {
		t.Errorf("moments %q, want %q", h.at, want)
	}
}

// TestHookJudges checks the possible verdicts of a hook: it can answer the mode's question, and overrule nothing
// stricter.
func TestHookJudges(t *testing.T) {
	allow, ask, deny := always(tool.Outcome{Action: tool.Allow, By: "hook h"}), always(tool.Outcome{
		Action: tool.Ask,
		By:     "hook h",
	}), always(tool.Outcome{Action: tool.Deny, By: "hook h", Reason: "not now"})
	rewrites := func(tool.Point) (tool.Outcome, error) {
		return tool.Outcome{Action: tool.Allow, By: "hook h", Args: json.RawMessage(`{"word":"better"}`)}, nil
	}
	for _, tc := range []struct {
		name string
		mode tool.Mode
		rule inspan.Rule
		hook func(tool.Point) (tool.Outcome, error)
		want tool.Action
		runs string
	}{
		{"allows what the mode asks", "ask", inspan.Rule{}, allow, tool.Allow, "note a"},
		{"asks about what the mode allows", "yolo", inspan.Rule{}, ask, tool.Ask, ""},
		{"denies", "yolo", inspan.Rule{}, deny, tool.Deny, ""},
		{"fails", "yolo", inspan.Rule{}, func(tool.Point) (tool.Outcome, error) { return tool.Outcome{}, errors.New("broken") }, tool.Deny, ""},
		{"no match for a rule that asks", "ask", inspan.Rule{Action: tool.Ask, Text: "note"}, allow, tool.Ask, ""},
		{"no match for a rule that denies", "ask", inspan.Rule{Action: tool.Deny, Text: "note"}, allow, tool.Deny, ""},
		{"no match for plan mode", "plan", inspan.Rule{}, allow, tool.Deny, ""},
		{"rewrites", "ask", inspan.Rule{}, rewrites, tool.Allow, "note better"},
		{"has no opinion", "ask", inspan.Rule{}, nil, tool.Ask, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var l ledger
			a := inspan.Agent{
				Model: scripted(t, `call: note {"word":"a"}`, "done"), Tools: []tool.Tool{l.writer()}, Mode: tc.mode, Env: tool.Env{Root: "/w"},
				Hooks: []tool.Hook{&hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){tool.BeforeCall: tc.hook}}},
			}
			if tc.rule.Text != "" {
				a.Rules = []inspan.Rule{tc.rule}
			}
			s, err := a.Open(t.Context(), event.NewMemory("s"))
			if err != nil {
				t.Fatal(err)
			}
			judged := bodiesOf[event.Judged](drivenTo(t, s, said("go")))
			if len(judged) != 1 || judged[0].Action != tc.want || strings.Join(l.runs, ",") != tc.runs {
				t.Errorf("judged %+v, ran %q", judged, l.runs)
			}
		})
	}
}

// TestHooksSpeak checks where the texts of hooks go, and what their refusals stop.
func TestHooksSpeak(t *testing.T) {
	var l ledger
	rounds := 0
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){
		tool.SessionStart: always(tool.Outcome{By: "hook a", Text: "It is Tuesday."}),
		tool.PromptSaid: func(p tool.Point) (tool.Outcome, error) {
			if strings.Contains(p.Text, "password") {
				return tool.Outcome{Action: tool.Deny, By: "hook b", Reason: "that is a secret"}, nil
			}
			return tool.Outcome{By: "hook b", Text: "You heard " + p.Text}, nil
		},
		tool.AfterCall: func(p tool.Point) (tool.Outcome, error) {
			return tool.Outcome{By: "hook c", Text: "seen", Result: &tool.Result{Parts: llm.Say("withheld " + p.Call.Name)}}, nil
		},
		tool.RunStop: func(p tool.Point) (tool.Outcome, error) {
			if rounds++; p.Rounds > 0 {
				return tool.Outcome{}, nil
			}
			return tool.Outcome{By: "hook d", Text: "The tests fail."}, nil
		},
	}}
	m := &longWork{t: t, window: 400_000, turns: 2}
	a := inspan.Agent{Model: m, Tools: []tool.Tool{changes(), l.writer()}, Mode: "yolo", Env: tool.Env{Root: "/w"}, Hooks: []tool.Hook{h}}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, said("go"))
	if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone || rounds != 2 {
		t.Fatalf("stopped %+v after %d rounds", st.Stopped, rounds)
	}
	var texts []string
	for _, msg := range m.asked[len(m.asked)-1].Messages {
		for _, part := range msg.Parts {
			switch p := part.(type) {
			case llm.Text:
				texts = append(texts, p.Text)
			case llm.Result:
				texts = append(texts, p.Parts.Text())
			}
		}
	}
	by := func(who, text string) string { return "[hook " + who + " says; it is not the person:]\n" + text }
	// The model answers at every second turn.
	want := []string{
		"go", by("a", "It is Tuesday."), by("b", "You heard go"), "withheld change\n" + by("c", "seen"), "Finished at turn 2.",
		by("d", "The tests fail."), "withheld change\n" + by("c", "seen"),
	}
	if !slices.Equal(texts, want) {
		t.Errorf("the model sees %q\nwant %q", texts, want)
	}
	asked := len(m.asked)
	drivenTo(t, s, said("the password is x"))
	if st := s.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled ||
		st.Stopped.Detail != "hook b: that is a secret" || len(m.asked) != asked {
		t.Errorf("stopped %+v, asked %d times", st.Stopped, len(m.asked)-asked)
	}
}

// TestHooksOfCompaction checks that a hook can prevent a compaction, say what matters, and add to the new conversation.
func TestHooksOfCompaction(t *testing.T) {
	deny, focus := false, ""
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){
		tool.BeforeCompact: func(tool.Point) (tool.Outcome, error) {
			if deny {
				return tool.Outcome{Action: tool.Deny, By: "hook", Reason: "not yet"}, nil
			}
			return tool.Outcome{Text: "the WREN"}, nil
		},
		tool.AfterCompact: always(tool.Outcome{By: "hook", Text: "Mind the wren."}),
	}}
	m := &longWork{t: t, window: 60_000, turns: 13}
	m.summary = func(req llm.Request) (string, error) {
		focus = req.Messages[len(req.Messages)-1].Parts.Text()
		return record(req)
	}
	a := longAgent(m)
	a.Hooks = []tool.Hook{h}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, event.Say(order))
	deny = true
	if kept := bodiesOf[event.Kept](drivenTo(t, s, event.Compact{})); len(kept) != 1 || kept[0].Reason != "hook: not yet" {
		t.Errorf("kept %+v", kept)
	}
	deny = false
	events := drivenTo(t, s, event.Compact{})
	if len(bodiesOf[event.Compacted](events)) != 1 || !strings.Contains(focus, "the WREN") {
		t.Fatalf("%s: focus %.300s", kinds(events), focus)
	}
	drivenTo(t, s, said("on"))
	if text := fmt.Sprint(m.asked[len(m.asked)-1].Messages); !strings.Contains(text, "Mind the wren.") {
		t.Error("what the hook said after the compaction is lost")
	}
}

// TestHooksKnowNoSecrets checks that the results that hooks see contain no secrets.
func TestHooksKnowNoSecrets(t *testing.T) {
	seen, args := "", ""
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){
		tool.AfterCall: func(p tool.Point) (tool.Outcome, error) {
			seen, args = p.Result.Parts.Text(), string(p.Call.Args)
			return tool.Outcome{}, nil
		},
	}}
	leak := tool.New("leak", "Leaks.", func(context.Context, *tool.Call, wordArgs) (tool.Result, error) {
		return tool.Text("it is TOKENVALUE12345678"), nil
	})
	stands := placeholder(t, "TOKENVALUE12345678")
	a := inspan.Agent{
		Model: scripted(t, `call: leak {"word":"x"}`, `call: leak {"word":"`+stands+`"}`, "done"), Tools: []tool.Tool{leak}, Mode: "yolo",
		Env: tool.Env{Root: "/w"}, Hooks: []tool.Hook{h},
		Secrets: inspan.Secrets{Values: func() map[string]string { return map[string]string{"TOKEN": "TOKENVALUE12345678"} }, Key: []byte(testKey)},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, said("go"))
	if args != `{"word":"`+stands+`"}` {
		t.Errorf("the hook saw the arguments %s", args)
	}
	if !strings.Contains(seen, "it is ") || strings.Contains(seen, "TOKENVALUE") {
		t.Errorf("the hook saw %q", seen)
	}
}
