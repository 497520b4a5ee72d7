package router_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// opinion is a judge that always says the same, or fails.
type opinion struct {
	vendor
	says  string
	fails *llm.Error
}

func (o *opinion) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		_, _ = o.next(req)
		if o.fails != nil {
			yield(llm.Chunk{}, o.fails)
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say(o.says), Stop: llm.StopEnd, Usage: llm.Usage{Input: 200, Output: 1}}}, nil)
	}
}

// TestJudge checks the decisions of a small model that judges, what it is not asked, and that its words are paid for
// once.
func TestJudge(t *testing.T) {
	goesOn := llm.Request{Session: "s", Messages: []llm.Message{
		{Role: llm.User, Parts: llm.Say("Design how editors can work without a network")},
		{Role: llm.Assistant, Parts: llm.Say("This is how: ...")},
		{Role: llm.User, Parts: llm.Say("yes, do it")},
	}}
	failing := say("List the files")
	failing.Work.Failing = 6
	private := say("ACME-1: look into it, please, and tell us what is wrong")
	judged := say("Write a compiler for the language of our customers")
	judged.Work.Judged = "easy"
	for _, tt := range []struct {
		name  string
		judge *opinion
		local bool
		req   llm.Request
		want  string // route
		asked int
	}{
		{"hard", &opinion{says: "9"}, true, say("What is in main.go?"), "cloud", 1},
		{"easy", &opinion{says: "I would say: 1"}, true, say("Write a compiler for the language of our customers"), "local", 1},
		{"no number", &opinion{says: "hard!"}, true, say("Write a compiler for the language of our customers"), "cloud", 1},
		{"fails", &opinion{fails: &llm.Error{Kind: llm.KindOverloaded}}, true, say("Write a compiler for the language of our customers"), "cloud", 1},
		{"goes on", &opinion{says: "9"}, true, goesOn, "cloud", 1},
		{"stuck", &opinion{says: "0"}, true, failing, "cloud", 0},
		{"was judged", &opinion{says: "9"}, true, judged, "local", 0},
		{"private, at home", &opinion{says: "1"}, true, private, "local", 1},
		{"private", &opinion{says: "1"}, false, private, "local", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := usual()
			m.Private = []string{"ACME-[0-9]+"}
			tt.judge.info = llm.Info{Provider: "p", Model: "tiny"}
			m.Judge = &router.Route{Name: "judge", Model: tt.judge, Local: tt.local}
			paid := 0
			for range 2 { // as it is sent again
				for chunk, err := range m.Stream(t.Context(), tt.req) {
					if err != nil {
						t.Fatal(err)
					}
					if chunk.Routed == nil {
						continue
					}
					if got := chunk.Routed.Info.Provider; got != tt.want {
						t.Errorf("%s answers: %s", got, chunk.Routed.Reason)
					}
					if chunk.Routed.Judge != nil {
						paid++
					}
				}
			}
			if asked := tt.judge.count(); asked < tt.asked || tt.asked == 0 && asked > 0 || paid > asked {
				t.Errorf("the judge was asked %d times, paid %d times", asked, paid)
			}
			if tt.judge.says == "9" && tt.asked == 1 && (tt.judge.count() != 1 || paid != 1) {
				t.Errorf("the same task was judged %d times, and paid for %d times", tt.judge.count(), paid)
			}
			for _, req := range tt.judge.asked {
				if text := req.Messages[0].Parts.Text(); req.Purpose != "judge" ||
					!strings.Contains(text, tt.req.Messages[len(tt.req.Messages)-1].Parts.Text()) {
					t.Errorf("the judge reads %q", text)
				}
			}
		})
	}
}
