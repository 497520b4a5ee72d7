package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/tool"
)

// strictness orders actions.
func strictness(a tool.Action) int {
	return slices.Index([]tool.Action{tool.Allow, tool.Ask, tool.Deny}, a)
}

// calls are calls that sessions make, and some that they should not.
func calls() [][]tool.Effect {
	out := [][]tool.Effect{
		nil,
		{read("/w/a")},
		{read("/etc/hosts")},
		{read("/home/ann/.ssh/id_rsa")},
		{read("/w/.env")},
		{read("/home/ann/.local/state/inspan/x")},
		{write("/w/a")},
		{write("/w/.git/hooks/pre-commit")},
		{write("/w/.env")},
		{write("/srv/x")},
		{write("/etc/passwd")},
		{write("/home/ann/.bashrc")},
		{write("/home/ann/.config/inspan/config.toml")},
		{host("example.com")},
		{asked("example.com")},
		{host("*")},
		{host("")},
		{{Kind: tool.External}},
		{{Kind: tool.External, Text: "send mail"}},
		{{Kind: tool.Keep, Text: "make serve"}},
		{{Kind: tool.Question, Text: "Which?"}},
		{{Kind: "of a later version"}},
		{{}},
	}
	for _, line := range []string{
		"ls", "cat /etc/hosts", "cat ~/.ssh/id_rsa", "go test ./...", "rm -rf build", "mkdir -p a/b", "git status", "git push",
		"curl https://example.com", "make", "sudo ls",
		"echo x > a", "echo x > /etc/x", "npm test && npm publish", "bash -c 'npm publish'", "$x", "ls && (",
	} {
		out = append(out, typed(line))
	}
	return out
}

// rules are some of every kind.
func someRules() []string {
	return []string{
		"bash(npm *)", "bash(npm publish)", "bash(git push *)", "bash(go test *)", "bash", "read", "read(/etc/**)", "read(.env)", "write",
		"write(/srv/**)", "write(a)",
		"network", "network(example.com)", "keep", "keep(make serve)", "bash(ls)", "bash(make)",
	}
}

// drawn are rules at random, in an order at random.
func drawn(t *testing.T, r *rand.Rand, actions ...tool.Action) []policy.Rule {
	t.Helper()
	var out []policy.Rule
	for range r.IntN(4) {
		text := someRules()[r.IntN(len(someRules()))]
		parsed, err := policy.ParseRule(actions[r.IntN(len(actions))], text, "user")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out = append(out, parsed)
	}
	return out
}

// TestLaws checks relations between verdicts, for random calls, modes and rules.
func TestLaws(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all, modes := calls(), tool.Modes()
	for range 2_000 {
		c := call("bash", modes[random.IntN(len(modes))])
		one, two := all[random.IntN(len(all))], all[random.IntN(len(all))]
		rules := drawn(t, random, tool.Allow, tool.Ask, tool.Deny)
		verdict := func(effects []tool.Effect, rules []policy.Rule) tool.Action {
			return judge(t, policy.Policy{Map: here(), Rules: rules}, c, effects).Action
		}
		got := verdict(one, rules)
		if strictness(got) < 0 {
			t.Fatalf("%+v in mode %s: %q", one, c.Mode, got)
		}
		shuffled := slices.Clone(rules)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other := verdict(one, shuffled); other != got {
			t.Fatalf("%+v in mode %s: %s by %+v, and %s in another order", one, c.Mode, got, rules, other)
		}
		more := append(slices.Clone(rules), drawn(t, random, tool.Ask, tool.Deny)...)
		if strictness(verdict(one, more)) < strictness(got) {
			t.Fatalf("%+v in mode %s: %s by %+v, and less with more that asks and denies: %+v", one, c.Mode, got, rules, more)
		}
		if more = append(slices.Clone(rules), drawn(t, random, tool.Allow)...); strictness(verdict(one, more)) > strictness(got) {
			t.Fatalf("%+v in mode %s: %s by %+v, and more strictly with more that allows: %+v", one, c.Mode, got, rules, more)
		}
		if slices.ContainsFunc(one, func(e tool.Effect) bool { return e.Kind == tool.Execute }) {
			continue // what follows would be the command's
		}
		both := slices.Concat(one, two)
		if together := verdict(both, rules); strictness(together) < max(strictness(got), strictness(verdict(two, rules))) {
			t.Fatalf("%+v and %+v in mode %s by %+v: %s together", one, two, c.Mode, rules, together)
		}
	}
}

// TestProposalsAllow checks that the rules proposed for a call allow it, and nothing that is denied.
func TestProposalsAllow(t *testing.T) {
	for _, mode := range tool.Modes() {
		for _, effects := range calls() {
			c := call("bash", mode)
			p := policy.Policy{Map: here()}
			before := judge(t, p, c, effects).Action
			proposed := policy.Proposals(p.Findings(c, effects))
			if len(proposed) > 0 && before != tool.Ask {
				t.Errorf("%+v in mode %s: %s, and yet %q is proposed", effects, mode, before, proposed)
			}
			for _, text := range proposed {
				parsed, err := policy.ParseRule(tool.Allow, text, "session")
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				p.Rules = append(p.Rules, parsed)
			}
			if after := judge(t, p, c, effects).Action; len(proposed) > 0 && after != tool.Allow {
				t.Errorf("%+v in mode %s: %q is proposed, and then it is %s", effects, mode, proposed, after)
			}
			for _, other := range calls() {
				if judge(t, policy.Policy{Map: here()}, c, other).Action == tool.Deny && judge(t, p, c, other).Action != tool.Deny {
					t.Errorf("%q, proposed for %+v in mode %s, opens %+v", proposed, effects, mode, other)
				}
			}
		}
	}
}
