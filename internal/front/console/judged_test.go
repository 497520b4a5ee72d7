package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// rewriter is a hook that gives calls other arguments.
type rewriter struct{ args json.RawMessage }

func (r rewriter) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	if p.Moment != tool.BeforeCall {
		return tool.Outcome{}, nil
	}
	return tool.Outcome{Action: tool.Ask, By: "hook h", Args: r.args}, nil
}

// TestAsksAboutWhatWillRun checks that a person decides on the call as a judge has changed it, even after a
// restart.
func TestAsksAboutWhatWillRun(t *testing.T) {
	ran := ""
	sh := tool.New("sh", "runs", func(_ context.Context, _ *tool.Call, in struct {
		Command string `json:"command"`
		Outside bool   `json:"outside,omitempty"`
	},
	) (tool.Result, error) {
		ran = in.Command
		return tool.Text("ran"), nil
	})
	sh.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "run\n\x1b it"}}, nil
	}
	written := llm.Call{Name: "sh", Args: json.RawMessage(`{"command":"as written"}`)}
	log := event.NewMemory("s")
	agent := inspan.Agent{
		Model: &script.Model{Steps: []script.Step{{Parts: llm.Parts{written}}, {Parts: llm.Say("Done.")}}}, Tools: []tool.Tool{sh},
		Hooks: []tool.Hook{rewriter{json.RawMessage(`{"command":"as judged","outside":true}`)}},
	}
	for i, typed := range []string{"", "y\n"} {
		s, err := agent.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		var inputs []event.Body
		var out, errs bytes.Buffer
		c := &console.Console{Out: &out, Err: &errs}
		if i == 0 {
			inputs = append(inputs, event.Say("go"))
		} else {
			c.Person = console.NewPerson(c, strings.NewReader(typed), &errs)
		}
		c.Run(t.Context(), s, inputs...)
		if w := s.Status().Waiting; i == 0 && (len(w) != 1 || !strings.Contains(string(w[0].Call.Args), "as judged")) {
			t.Fatalf("waiting: %+v", w)
		}
		if got := errs.String(); i == 1 && (!strings.Contains(got, "    $ as judged\n    {\"outside\":true}\n    would run\\x0a\\x1b it\n") ||
			!strings.Contains(got, `(it would run \x1b it)`) ||
			!strings.Contains(got, "▸ sh as judged\n") || strings.Contains(got, "as written")) {
			t.Error(got)
		}
		s.Close()
	}
	if ran != "as judged" {
		t.Errorf("%q ran", ran)
	}
}

// Past events do not drive the terminal any more than current ones.
func TestShowIsHarmless(t *testing.T) {
	evil := "a\x1b[2J\u202eb\n"
	var out, errs bytes.Buffer
	c := &console.Console{Out: &out, Err: &errs}
	bodies := []event.Body{
		event.Say(evil),
		event.Routed{Route: evil, Rule: evil, Reason: evil},
		event.Routed{Route: evil, Rule: evil, Reason: "the second time"},
		event.Routed{Route: evil, From: evil, Error: evil},
		event.Replied{Parts: llm.Parts{llm.Text{Text: evil}, llm.Call{ID: "1", Name: evil, Args: json.RawMessage(`{}`)}}},
		event.Judged{Call: "1", Tool: evil + "tool", Args: json.RawMessage(`{"command":"judged"}`)},
		event.Started{Call: "1"},
		event.Failed{Message: evil, Retry: 2},
		event.Ended{Call: "1", Outcome: event.Outcome(evil), Parts: llm.Say(evil), Files: []tool.File{{Path: evil, Diff: evil}}},
		event.Switched{Route: evil, Mode: tool.Mode(evil)},
		event.Steered{Origin: event.OriginPerson, Parts: llm.Say(evil)},
		event.Hooked{Action: tool.Deny, By: evil, Reason: evil},
		event.Stopped{Reason: event.Reason(evil), Detail: evil},
	}
	err := c.Show(func(yield func(event.Event, error) bool) {
		for i, b := range bodies {
			if !yield(event.Event{Seq: uint64(i + 1), Body: b}, nil) {
				return
			}
		}
	}, false)
	got := out.String() + errs.String()
	if err != nil || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%v: %q", err, got)
	}
	if !strings.Contains(got, "tool judged\n") || strings.Contains(got, "the second time") ||
		!strings.Contains(got, "retrying in 2.0 s\n") {
		t.Errorf("%q", got)
	}
}
