package app

import (
	"testing"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/internal/subagent"
)

// TestModelsOfAgents holds that a file which came with a repository can't choose to
// whom its content is sent, and that a person's own can.
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
