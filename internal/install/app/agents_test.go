package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestModelsOfAgents checks that a file which came with a repository can't choose to whom its content is sent, and that
// a person's own can.
func TestModelsOfAgents(t *testing.T) {
	a := New(&config.Installation{Config: config.Config{Agents: config.Agents{Small: "p/small"}}})
	for _, tc := range []struct{ asked, kind, source, want string }{
		{"", "", "user", "p/own"},
		{"", "inherit", "project", "p/own"},
		{"", "small", "project", "p/small"},
		{"", "haiku", "user", "p/small"},
		{"", "opus", "user", "p/own"},
		{"", "gpt-5", "project", "p/own"},
		{"", "evil/model", "project", "p/own"},
		{"", "evil", "project", "p/own"},
		{"", "other/model", "user", "other/model"},
		{"third/model", "evil", "project", "third/model"},
	} {
		o := subagent.Order{Model: tc.asked, Route: "p/own", Role: skill.Role{Model: tc.kind, Source: tc.source}}
		if got := a.childModel(o); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// TestMessageAnswers checks that a message answers the one question that the session puts to the person, is refused
// where there are several, and waits after an approval.
func TestMessageAnswers(t *testing.T) {
	asks := func(id string) inspan.Question {
		return inspan.Question{Seq: 7, Raised: event.Raised{ID: id, Tool: "ask_user", Effects: []tool.Effect{{Kind: tool.Question}}}}
	}
	said := event.Said{Parts: llm.Say("blue"), By: "inspan send", Message: "k"}
	for _, tc := range []struct {
		open []inspan.Question
		want event.Body
	}{
		{nil, said},
		{[]inspan.Question{{Seq: 3, Raised: event.Raised{ID: "c", Tool: "bash"}}}, said},
		{[]inspan.Question{asks("q")}, event.Decided{Call: "q", Question: 7, Allow: true, Answer: "blue", By: "inspan send", Message: "k"}},
		{[]inspan.Question{asks("q"), asks("r")}, nil},
	} {
		got, err := answered(inspan.Status{Session: "s", Raised: tc.open}, said)
		if diff := cmp.Diff(tc.want, got); diff != "" || (tc.want == nil) != (err != nil) {
			t.Errorf("%v: %v\n%s", tc.open, err, diff)
		}
		if err != nil && !strings.Contains(err.Error(), "inspan send --allow q | r s") {
			t.Error(err)
		}
	}
}
