package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

func ask(t *testing.T, m llm.Model, messages ...llm.Message) (*llm.Reply, error) {
	t.Helper()
	for chunk, err := range m.Stream(t.Context(), llm.Request{Messages: messages, Session: "s"}) {
		if err != nil {
			return nil, err
		}
		if chunk.Reply != nil {
			return chunk.Reply, nil
		}
	}
	t.Fatal("no reply")
	return nil, nil
}

func user(text string) llm.Message { return llm.Message{Role: llm.User, Parts: llm.Say(text)} }
func assistant(parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.Assistant, Parts: parts}
}

func TestParse(t *testing.T) {
	m, err := script.Parse([]byte("-- reply --\nreason: hm\nI look.\nTwice.\nread: a.go\ncall: edit_file {\"x\":1}\nusage: 10 2 3\n" +
		"-- reply --\nfail: 429 x2\nstop: refusal\nNo.\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []script.Step{
		{Parts: llm.Parts{
			llm.Reasoning{Text: "hm"},
			llm.Text{Text: "I look.\nTwice."},
			llm.Call{Name: "read_file", Args: json.RawMessage(`{"path":"a.go"}`)},
			llm.Call{Name: "edit_file", Args: json.RawMessage(`{"x":1}`)},
		}, Usage: llm.Usage{Input: 10, Output: 2, CacheRead: 3}},
		{Parts: llm.Parts{llm.Text{Text: "(refusal)"}, llm.Text{Text: "No."}}, Stop: llm.StopRefusal, Fail: 429, Times: 2},
	}
	if diff := cmp.Diff(want, m.Steps); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefusesNonsense(t *testing.T) {
	for _, text := range []string{
		"", "no files", "-- other --\nx", "-- reply --\ncall: t {", "-- reply --\nfail: many",
		"-- reply --\ndelay: soon", "-- reply --\nusage: 1 2 3 4",
	} {
		if _, err := script.Parse([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// The place in the script follows from the conversation alone.
func TestScriptGoesOnWhereTheConversationIs(t *testing.T) {
	m, err := script.Parse([]byte("-- reply --\nOne.\n-- reply --\nTwo.\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, m, user("x"), assistant(llm.Text{Text: "One."}), user("y"))
	if err != nil || r.Parts.Text() != "Two." || r.Stop != llm.StopEnd {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCommandsInThePrompt(t *testing.T) {
	var m script.Model
	prompt := user("please\nsay: First.\nbash: go test ./...\nread: a.go\n+ read: b.go\nfail: 500\n")
	r, err := ask(t, &m, prompt)
	if err != nil {
		t.Fatal(err)
	}
	if calls := r.Parts.Calls(); r.Parts.Text() != "First." || len(calls) != 1 ||
		string(calls[0].Args) != `{"command":"go test ./..."}` || r.Stop != llm.StopCalls {
		t.Errorf("first reply %+v", r)
	}
	r, err = ask(t, &m, prompt, assistant(r.Parts...), user(""))
	if err != nil || len(r.Parts.Calls()) != 2 {
		t.Errorf("second reply %+v, %v", r, err)
	}
	two := []llm.Message{prompt, assistant(llm.Text{Text: "a"}), user(""), assistant(llm.Text{Text: "b"}), user("")}
	var e *llm.Error
	if _, err = ask(t, &m, two...); !errors.As(err, &e) || e.Status != 500 || e.Kind != llm.KindTransient {
		t.Errorf("third reply: %v", err)
	}
	if r, err = ask(t, &m, two...); err != nil || r.Parts.Text() != "Done." {
		t.Errorf("after the failure: %+v, %v", r, err)
	}
	r, err = ask(t, &m, append(two, assistant(llm.Text{Text: "c"}), user("thanks"))...)
	if err != nil || r.Parts.Text() != "Done: 3 steps." {
		t.Errorf("at the end: %+v, %v", r, err)
	}
}

func TestHelpWithoutCommands(t *testing.T) {
	r, err := ask(t, &script.Model{}, user("hello"))
	if err != nil || !strings.Contains(r.Parts.Text(), "bash: COMMAND") {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = ask(t, &script.Model{}, user("call: x {"))
	if err != nil || !strings.Contains(r.Parts.Text(), "not JSON") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script.Model{Steps: []script.Step{{Parts: llm.Say("late"), Delay: time.Hour}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range m.Stream(ctx, llm.Request{}) {
			if e := llm.AsError(err); e == nil || e.Kind != llm.KindCancelled {
				t.Errorf("error %v", err)
			}
		}
		if _, err := ask(t, m); err != nil {
			t.Error(err)
		}
	})
}

func TestDeltasAddUpToTheReply(t *testing.T) {
	m := &script.Model{Steps: []script.Step{{Parts: llm.Say("some words in a row")}}}
	var text string
	var reply *llm.Reply
	for chunk, err := range m.Stream(t.Context(), llm.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		text += chunk.Text
		reply = chunk.Reply
	}
	if reply == nil || text != reply.Parts.Text() || !reply.Usage.Estimated {
		t.Errorf("deltas %q, reply %+v", text, reply)
	}
}

// TestModel runs the suite on the offline model, with a script for every reply of the suite. It has no wire, so tests
// of a wire do not apply.
func TestModel(t *testing.T) {
	harnesstest.TestModel(t, harnesstest.ModelParams{
		New: func(_ *testing.T, turns ...harnesstest.Turn) harnesstest.Fake {
			m := &script.Model{}
			for _, turn := range turns {
				m.Steps = append(m.Steps, script.Step{Parts: turn.Parts, Stop: turn.Stop, Usage: turn.Usage})
			}
			return harnesstest.Fake{Model: m}
		},
		Without: []string{"timeout", "cut", "late-error", "again", "broken-arguments", "foreign-reasoning", "odd-history", "cancel"},
	})
}
