package policy

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestRegistries checks what the rule for package registries allows: fetches by commands, and nothing else.
func TestRegistries(t *testing.T) {
	rules := func(list ...string) (out []Rule) {
		for _, text := range list {
			action, text, _ := strings.Cut(text, " ")
			r, err := ParseRule(tool.Action(action), text, "")
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	run := tool.Effect{Kind: tool.Execute, Text: "x"}
	to := func(host string) tool.Effect { return tool.Effect{Kind: tool.Network, Text: host, FromArgument: true} }
	for _, tc := range []struct {
		rule    string
		effects []tool.Effect
		want    tool.Action
	}{
		{"allow registries", []tool.Effect{run, to("registry.npmjs.org")}, tool.Allow},
		{"allow registries", []tool.Effect{run, to("pypi.org:443"), to("files.pythonhosted.org")}, tool.Allow},
		{"allow registries", []tool.Effect{run, to("pypi.org"), to("evil.example")}, tool.Ask},
		{"allow registries", []tool.Effect{run, to("notpypi.org")}, tool.Ask},
		{"allow registries", []tool.Effect{run, to("*")}, tool.Ask},
		{"allow registries", []tool.Effect{to("pypi.org")}, tool.Ask}, // no command
		{"allow registries(nexus.example:8081)", []tool.Effect{run, to("nexus.example:8081")}, tool.Allow},
		{"allow registries(nexus.example:8081)", []tool.Effect{run, to("nexus.example:9000")}, tool.Ask},
	} {
		call := &tool.Call{Name: "bash", Mode: tool.ModeAuto, Env: tool.Env{Walls: tool.Walls{Workspace: true, Read: true, Hosts: true}}}
		v, err := Policy{Rules: rules(tc.rule)}.Judge(t.Context(), call, tc.effects)
		if err != nil || v.Action != tc.want {
			t.Errorf("%s: %v: %s (%s), %v", tc.rule, tc.effects, v.Action, v.Reason, err)
		}
	}
	open, only, named := Registries(rules("allow registries", "allow registries(a.example)", "deny network(pypi.org)", "allow network(crates.io)"))
	has := func(list []string, host string) bool {
		return strings.Contains(" "+strings.Join(list, " ")+" ", " "+host+" ")
	}
	if has(open, "pypi.org") || !has(open, "crates.io") || has(only, "crates.io") || !has(only, "a.example") || strings.Join(named, " ") != "a.example" {
		t.Errorf("%v, %v, %v", open, only, named)
	}
	if open, _, _ := Registries(rules("allow registries", "deny network")); len(open) > 0 {
		t.Errorf("all of the network is denied, and these are open: %v", open)
	}
	for _, text := range []string{"registries(https://x/y)", "registries(a b)"} {
		if _, err := ParseRule(tool.Allow, text, ""); err == nil {
			t.Errorf("%s can be read", text)
		}
	}
	if _, err := ParseRule(tool.Deny, "registries", ""); err == nil {
		t.Error("it denies")
	}
}
