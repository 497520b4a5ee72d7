package policy_test

import (
	"testing"

	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// TestSwallowed checks which of two rules has no effect next to the other.
func TestSwallowed(t *testing.T) {
	type rule struct {
		action tool.Action
		text   string
	}
	for _, c := range []struct {
		first, second rule
		want          int // the rule that is swallowed; -1: none is
	}{
		{rule{tool.Deny, "bash"}, rule{tool.Allow, "bash(ls *)"}, 1},
		{rule{tool.Allow, "bash"}, rule{tool.Deny, "bash(ls *)"}, -1},
		{rule{tool.Deny, "bash(git *)"}, rule{tool.Allow, "bash(git status)"}, 1},
		{rule{tool.Allow, "bash(git push)"}, rule{tool.Ask, "bash(git *)"}, 0},
		{rule{tool.Deny, "bash(git push)"}, rule{tool.Deny, "bash(git push *)"}, 0},
		{rule{tool.Deny, "bash(git push)"}, rule{tool.Deny, "bash(git push)"}, 1},
		{rule{tool.Deny, "bash(git push *)"}, rule{tool.Allow, "bash(git *)"}, -1},
		{rule{tool.Deny, "read(src/**)"}, rule{tool.Ask, "read(src/a.go)"}, 1},
		{rule{tool.Deny, "read(src/**)"}, rule{tool.Ask, "read(src2/a.go)"}, -1},
		{rule{tool.Deny, "read(src/**)"}, rule{tool.Ask, "read(src/../x)"}, -1},
		{rule{tool.Deny, "write(**)"}, rule{tool.Allow, "write(/etc/x)"}, -1},
		{rule{tool.Deny, "write(**)"}, rule{tool.Allow, "write(docs/**)"}, 1},
		{rule{tool.Deny, "write"}, rule{tool.Allow, "write(/etc/x)"}, 1},
		{rule{tool.Deny, "network(*.x.org)"}, rule{tool.Allow, "network(a.x.org)"}, 1},
		{rule{tool.Deny, "network(*.x.org)"}, rule{tool.Allow, "network(y.org)"}, -1},
		{rule{tool.Deny, "mcp__a__*"}, rule{tool.Allow, "mcp__a__get"}, 1},
		{rule{tool.Deny, "*"}, rule{tool.Allow, "read"}, -1},
	} {
		var rules []policy.Rule
		for _, r := range []rule{c.first, c.second} {
			read, err := policy.ParseRule(r.action, r.text, "user")
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, read)
		}
		got := policy.Swallowed(rules)
		_, is := got[c.want]
		if c.want >= 0 && (len(got) != 1 || !is || got[c.want] != 1-c.want) || c.want < 0 && len(got) > 0 {
			t.Errorf("%v, %v: %v, want %d", c.first, c.second, got, c.want)
		}
	}
}

// TestTry checks that each rule is tried on a call.
func TestTry(t *testing.T) {
	p := policy.Policy{Map: here()}
	for _, text := range []string{"bash(touch *)", "bash(rm *)", "write"} {
		r, err := policy.ParseRule(tool.Deny, text, "user")
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	got := p.Try(call("bash", "ask"), typed("touch x"))
	if len(got) != 3 || !got[0].Matches || got[1].Matches || !got[2].Matches {
		t.Errorf("%+v", got)
	}
}
