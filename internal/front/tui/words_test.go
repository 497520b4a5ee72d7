package tui

import (
	"encoding/json"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestAsksAboutWhatWillRun checks that a person decides on the call as a judge has changed it, with all its
// arguments.
func TestAsksAboutWhatWillRun(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "call", Args: json.RawMessage(`{"name":"sh","args":{"command":"written"}}`)}}},
		event.Judged{
			Call: "1", Action: tool.Ask, Tool: "sh",
			Args: json.RawMessage(`{"command":"rewritten\nin two","outside":true}`),
		}, event.Waiting{Call: "1"}))
	got := m.View().Content
	if !strings.Contains(got, "? sh asks") || !strings.Contains(got, "    $ rewritten\n      in two\n    {\"outside\":true}\n") ||
		strings.Contains(got, "written\"") {
		t.Error(got)
	}
}

// TestHooksAndPruningAreTold checks that changes of the conversation are shown.
// TestColumnsTakeTheRoomThereIs checks that text with a long first column gets one line where the screen is wide.
func TestColumnsTakeTheRoomThereIs(t *testing.T) {
	const text = "up\tone line up\nbackspace, ctrl+h, shift+backspace\tdelete a character"
	for width, want := range map[int][]string{
		120: {"up                                  one line up", "backspace, ctrl+h, shift+backspace  delete a character"},
		80: {
			"up                          one line up", "backspace, ctrl+h, shift+backspace", "                            delete a character",
		},
	} {
		if diff := cmp.Diff(want, columns(look{width: width}, text)); diff != "" {
			t.Errorf("%d: %s", width, diff)
		}
	}
}

func TestHooksAndPruningAreTold(t *testing.T) {
	got := plain(t, event.Say("go"), event.Hooked{Moment: tool.PromptSaid, By: "hook h", Action: tool.Deny, Reason: "not now"},
		event.Hooked{Moment: tool.PromptSaid, Text: "mind\nthe gap"}, event.Pruned{Before: 12345, After: 678})
	for _, want := range []string{
		"! hook h says no: not now", "· told the model: mind the gap",
		"· old results were cut short, from about 12,345 to 678 tokens",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestRewindIsPlannedInWords(t *testing.T) {
	r := &running.Way{To: 7, Plan: snapshot.Plan{
		Changes: []snapshot.Change{
			{Path: "a\x1b[2J", Kind: snapshot.Create},
			{Path: "b", Kind: snapshot.Delete},
			{Path: "c", Kind: snapshot.ChangeMod, Mode: 0o755},
			{Path: "d", Kind: snapshot.Retype},
			{Path: "e", Kind: snapshot.Edit},
		},
		Kept: []snapshot.Change{{Path: "f", Why: "changed since"}},
	}}
	want := []string{
		`a\x1b[2J comes back`, "b is removed, because the agent created it", "c gets its permissions back: -rwxr-xr-x", "d returns to its earlier state",
		"e gets its content back",
		"f stays: changed since", "the conversation returns to event 7",
	}
	if diff := cmp.Diff(want, r.Lines(false)); diff != "" {
		t.Error(diff)
	}
	if got := r.Lines(true)[5]; got != "f is overwritten, where that is possible: changed since" {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"no file changes"}, (&running.Way{}).Lines(false)); diff != "" {
		t.Error(diff)
	}
}

// TestQuestionOfAnyTool checks that a question is shown that is not in the arguments.
func TestQuestionOfAnyTool(t *testing.T) {
	m := still(t, 80, 24, look{noColor: true}, events(event.Say("go"), event.Asked{},
		event.Replied{Parts: llm.Parts{llm.Call{ID: "1", Name: "poll", Args: json.RawMessage(`{}`)}}},
		event.Judged{Call: "1", Action: tool.Ask, Effects: []tool.Effect{{Kind: tool.Question}}}, event.Waiting{
			Call:    "1",
			Preview: "which\x1b?",
		}))
	if got := m.View().Content; !strings.Contains(got, "? poll\n  which\\x1b?\n") {
		t.Error(got)
	}
	see(m)
	m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
	if got := m.View().Content; !strings.Contains(got, "Please answer") || len(m.talk.decided) > 0 {
		t.Error(got)
	}
}

// TestNoAnswerRaisesNoLimit checks that neither Enter alone nor other text raises a limit.
func TestNoAnswerRaisesNoLimit(t *testing.T) {
	m := still(t, 80, 24, look{}, nil)
	a := &ask{of: m.questions, limit: &event.Stopped{}, limits: &event.Limits{Turns: 2}, at: -1}
	for _, written := range []string{"", "maybe"} {
		a.reply.insert(atomsOf(written)...)
		if cmd := a.answer(); cmd != nil || a.problem == "" || m.questions.refused != nil {
			t.Errorf("%q: problem %q", written, a.problem)
		}
	}
	a.reply.insert(atomsOf("no")...)
	if a.answer(); m.questions.refused != a.limit {
		t.Error("no does not refuse it")
	}
}

func TestJobsAreWhatWasStarted(t *testing.T) {
	var bodies []event.Body
	for id, args := range map[string]string{
		"1": `{"command":"serve","background":true}`, "2": `{"command":"ls"}`,
		"3": `{"command":"cat","background":false}`,
	} {
		bodies = append(bodies, event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: "bash", Args: json.RawMessage(args)}}},
			event.Started{Call: id}, event.Ended{Call: id, Outcome: event.OutcomeOK})
	}
	if diff := cmp.Diff([]string{"serve"}, still(t, 80, 24, look{}, events(bodies...)).talk.view.jobs); diff != "" {
		t.Error(diff)
	}
}
