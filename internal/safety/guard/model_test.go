package guard_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// parrot answers always the same.
type parrot struct {
	says  string
	asked int
}

func (p *parrot) Info() llm.Info { return llm.Info{Provider: "test", Model: "parrot"} }

func (p *parrot) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	p.asked++
	return func(yield func(llm.Chunk, error) bool) {
		if !yield(llm.Chunk{Text: p.says}, nil) {
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say(p.says), Stop: llm.StopEnd}}, nil)
	}
}

func TestModelChecks(t *testing.T) {
	checks, err := guard.Compile([]guard.Check{
		{Name: "payroll", On: guard.OnInput, Pattern: `(?i)salary`, Reason: "not with this assistant"},
		{Name: "names", On: guard.OnOutput, Pattern: `Ann`},
	})
	if err != nil {
		t.Fatal(err)
	}
	user := func(text string) llm.Message { return llm.Message{Role: llm.User, Parts: llm.Say(text)} }
	answer := llm.Message{Role: llm.Assistant, Parts: llm.Say("ok")}
	results := llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "1", Parts: llm.Say("the salary")}}}
	for name, tt := range map[string]struct {
		messages []llm.Message
		says     string
		refused  string
		asked    int
	}{
		"fine": {[]llm.Message{user("hello")}, "hi", "", 1},
		"input": {
			[]llm.Message{user("what SALARY has bob")},
			"hi",
			"the check payroll refused what was said: not with this assistant", 0,
		},
		"an earlier input":     {[]llm.Message{user("salary"), answer, user("hello")}, "hi", "", 1},
		"a result is no input": {[]llm.Message{user("hello"), answer, results}, "hi", "", 1},
		"output":               {[]llm.Message{user("hello")}, "it was Ann", "the check names refused the answer", 1},
	} {
		p := &parrot{says: tt.says}
		var last error
		shown := ""
		for chunk, err := range checks.Model(p).Stream(t.Context(), llm.Request{Messages: tt.messages}) {
			last = err
			shown += chunk.Text
		}
		if want := map[bool]string{true: tt.says}[tt.refused == ""]; shown != want {
			t.Errorf("%s: shown %q", name, shown)
		}
		var e *llm.Error
		switch {
		case p.asked != tt.asked:
			t.Errorf("%s: asked %d times", name, p.asked)
		case tt.refused == "" && last != nil:
			t.Errorf("%s: %v", name, last)
		case tt.refused != "" && (!errors.As(last, &e) || e.Kind != llm.KindRefused || e.Message != tt.refused):
			t.Errorf("%s: %v", name, last)
		}
	}
	only, err := guard.Compile([]guard.Check{{Name: "c", On: guard.OnCall, Pattern: "x", Action: tool.Ask}})
	if err != nil {
		t.Fatal(err)
	}
	p := &parrot{}
	if only.Model(p) != llm.Model(p) {
		t.Error("a model is wrapped for nothing")
	}
}
