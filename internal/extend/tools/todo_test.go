package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/tool"
)

func TestTodoRefusesWhatIsNoList(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	item := func(text, state string) args { return args{"text": text, "state": state} }
	many := make([]any, 51)
	for i := range many {
		many[i] = item(fmt.Sprint("item ", i), "open")
	}
	for want, items := range map[string][]any{
		`state: "later" is none of open, doing, done`: {item("a", "later")},
		"item 2 has no text":                          {item("a", "open"), item(" \n", "open")},
		"more than one item is doing":                 {item("a", "doing"), item("b", "doing")},
		"51 items are too many":                       many,
		"has 600 bytes":                               {item(strings.Repeat("x", 600), "open")},
	} {
		s.fails("todo", args{"items": items}, want)
	}
}

// TestTodoReplacesTheList checks that the list a call gives is the result's, and that an empty one is not none.
func TestTodoReplacesTheList(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for args, want := range map[string][]tool.Todo{
		`{"items":[{"text":" read\tit ","state":"done"},{"text":"mend it","state":"doing"}]}`: {
			{Text: "read it", State: tool.TodoDone},
			{Text: "mend it", State: tool.TodoDoing},
		},
		`{"items":[]}`: {},
	} {
		res, err := s.tools["todo"].Run(t.Context(), &tool.Call{Name: "todo", Args: []byte(args), Env: s.env})
		if err != nil || res.Todo == nil {
			t.Fatal(res, err)
		}
		if diff := cmp.Diff(want, res.Todo); diff != "" {
			t.Error(diff)
		}
	}
}

// TestQuestionIsWhatIsAsked checks the person's view of a question, and that a missing answer is an error for the
// model.
func TestQuestionIsWhatIsAsked(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	a := args{"question": "which?", "options": []string{"this", "that"}}
	if e := s.effects("ask_user", a); len(e) != 1 || e[0] != (tool.Effect{Kind: tool.Question, Text: "which?"}) {
		t.Errorf("effects %+v", e)
	}
	tl, c := s.call("ask_user", a)
	if got, err := tl.Preview(t.Context(), c); err != nil || got != "which?\n1. this\n2. that" {
		t.Errorf("preview %q, %v", got, err)
	}
	c.Answer = ""
	if _, err := tl.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "gave no answer") {
		t.Errorf("without an answer: %v", err)
	}
}
