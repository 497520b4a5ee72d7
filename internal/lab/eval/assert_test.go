package eval_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/lab/eval"
)

// TestAsserts runs test cases of promptfoo, whose descriptions begin with the outcome. The scripted model says what the
// variable says.
func TestAsserts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cases := []struct{ outcome, answer, assert string }{
		{"passed", "Paris", "{type: equals, value: Paris}"},
		{"failed", "paris", "{type: equals, value: Paris}"},
		{"passed", `{"a": [1, 2]}`, "{type: equals, value: {a: [1, 2]}}"},
		{"failed", `{"a": [2, 1]}`, "{type: equals, value: {a: [1, 2]}}"},
		{"passed", "It is Paris.", "{type: contains, value: Paris}"},
		{"failed", "It is paris.", "{type: contains, value: Paris}"},
		{"passed", "It is paris.", "{type: icontains, value: Paris}"},
		{"passed", "It is Rome.", "{type: not-contains, value: Paris}"},
		{"failed", "It is Paris.", "{type: not-contains, value: Paris}"},
		{"passed", "a and b", "{type: contains-all, value: [a, b]}"},
		{"failed", "a and c", "{type: contains-all, value: [a, b]}"},
		{"passed", "a and c", "{type: contains-any, value: [b, c]}"},
		{"passed", "a and c", "{type: contains-any, value: 'b, c'}"},
		{"failed", "a and d", "{type: contains-any, value: [b, c]}"},
		{"passed", "A and B", "{type: icontains-all, value: [a, b]}"},
		{"failed", "A and D", "{type: icontains-any, value: [b, c]}"},
		{"passed", "Yes, it is", "{type: starts-with, value: 'Yes'}"},
		{"failed", "No. Yes", "{type: starts-with, value: 'Yes'}"},
		{"passed", "in 2026", "{type: regex, value: '20\\d\\d$'}"},
		{"failed", "in 26", "{type: regex, value: '20\\d\\d$'}"},
		{"passed", `{"n": 1}`, "{type: is-json}"},
		{"failed", `{"n": 1} so`, "{type: is-json}"},
		{"passed", `{"n": 1}`, "{type: is-json, value: {type: object, properties: {n: {type: number}}, required: [n]}}"},
		{"failed", `{"m": 1}`, "{type: is-json, value: {type: object, properties: {n: {type: number}}, required: [n]}}"},
		{"passed", `{x} is {"n": 1} so`, "{type: contains-json, value: {type: object, required: [n]}}"},
		{"failed", `{x} is {"m": 1} so`, "{type: contains-json, value: {type: object, required: [n]}}"},
		{"passed", "cheap", "{type: cost, threshold: 0.01}"},
		{"failed", "late", "{type: latency, threshold: 0}"},
		{"failed", "Paris", "{type: contains, value: Paris}, {type: contains, value: Rome}"},
		{"passed", "Berlin", "{type: contains, value: '{{answer}}'}"},
	}
	var file strings.Builder
	file.WriteString("description: cities\nproviders: [openai:gpt-4o]\nprompts: ['say: {{ answer }}']\n" +
		"defaultTest:\n  assert: [{type: not-contains, value: nowhere}]\ntests:\n")
	for n, one := range cases {
		fmt.Fprintf(&file, "  - description: %s %d\n    vars: {answer: '%s'}\n    assert: [%s]\n", one.outcome, n, one.answer, one.assert)
	}
	b.suite = filepath.Join(b.dir, "promptfooconfig.yaml")
	b.put("promptfooconfig.yaml", file.String())
	got := b.run()
	if len(got) != len(cases) {
		t.Errorf("%d trials, want %d", len(got), len(cases))
	}
	for key, one := range got {
		if !strings.Contains(key, string(one.Outcome)) || one.Outcome == eval.Failed && !strings.HasPrefix(one.Reason, "it does not hold: ") {
			t.Errorf("%s: %+v", key, one)
		}
	}
}

// TestAssertsThatAreNotRead checks that a configuration is refused if a condition of it can't be checked, because
// the case would pass without it.
func TestAssertsThatAreNotRead(t *testing.T) {
	b := newBench(t)
	b.suite = filepath.Join(b.dir, "c.yaml")
	const good = "prompts: ['{{q}}']\ntests:\n  - vars: {q: x}\n    assert: [{type: contains, value: y}]\n"
	for _, one := range []struct{ from, to, want string }{
		{"type: contains", "type: similar", "similar: this type is not read here"},
		{"type: contains", "type: javascript", "javascript: this type"},
		{"type: contains", "type: not-cost, threshold: 1", "can't be negated"},
		{"type: contains, value: y", "type: cost", "needs a threshold"},
		{"value: y", "value: y, weight: 2", "the key weight"},
		{"value: y", "value: y, transform: output.x", "the key transform"},
		{"value: y", "value: ''", "not empty"},
		{"value: y", "value: [y, z]", "a list of them for -all"},
		{"type: contains, value: y", "type: regex, value: '('", "missing closing"},
		{"type: contains, value: y", "type: is-json, value: {type: 5}", "schema"},
		{"assert: [{type: contains, value: y}]", "threshold: 0.5", "thresholds of test cases"},
		{"    assert: [{type: contains, value: y}]\n", "", "it has no assert"},
		{"{{q}}", "{{q | upper}}", "templates have only variables"},
		{"{{q}}", "{% if q %}x{% endif %}", "templates have only variables"},
		{"'{{q}}'", "'file://p.txt'", "not a text in this file"},
		{"q: x", "q: 'file://q.txt'", "is a file"},
		{"q: x", "q: [x, y]", "not a text or a number"},
		{"prompts: ['{{q}}']", "prompts: []", "no prompts"},
		{"tests:\n", "scenarios: [{}]\ntests:\n", "scenarios"},
		{good, "prompts: [x]\ntests: file://cases.csv\n", "tests must be a list"},
		{good, "prompts: [x\n", "yaml"},
	} {
		b.put("c.yaml", strings.Replace(good, one.from, one.to, 1))
		if _, err := eval.OpenSuite(b.suite, ""); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %q", one.to, err, one.want)
		}
	}
	b.put("c.yaml", strings.Replace(good, "'{{q}}'", "'{{q}}', {raw: 'so {{ q }}', label: other}", 1))
	if s, err := eval.OpenSuite(b.suite, ""); err != nil || len(s.Tasks) != 2 || s.Tasks[0].Prompt != "x" || s.Tasks[1].Prompt != "so x" {
		t.Errorf("%+v, %v", s, err)
	}
	b.suite = filepath.Join(b.dir, "rows.jsonl")
	b.put("rows.jsonl", `{"id":"a","question":"say: Paris","assert":[{"type":"icontains","value":"paris"},{"type":"cost","threshold":1}]}`+"\n")
	if got := b.run()["a#1"]; got.Outcome != eval.Passed {
		t.Errorf("%+v", got)
	}
}

// TestProgramsGrade checks that a program of a task judges by its exit code or by a score, sees the answer, and can't
// be replaced by the agent.
func TestProgramsGrade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.walls()
	const spec = "[[grader]]\nname = \"g\"\nrequired = true\npass = 0.7\ncommand = [\"sh\", \"$CHECK/g.sh\"]\n"
	for id, one := range map[string]struct{ ask, program string }{
		"passed-by-code":   {"say: hi", "grep -q '\"answer\":\"hi\"'"},
		"failed-by-code":   {"say: ho", "grep -q '\"answer\":\"hi\"'"},
		"passed-by-score":  {"say: hi", `echo '{"score": 0.7, "why": "it is short"}'`},
		"failed-by-score":  {"say: hi", `echo '{"score": 0.6, "why": "it is long"}'`},
		"failed-by-agent":  {"bash: mkdir -p ../check; echo true > ../check/g.sh; echo true > g.sh\nsay: hi", "exit 1"},
		"failed-by-signal": {"say: hi", "kill -9 $$"},
	} {
		b.task(id, spec, one.ask, "true")
		b.put("suite/"+id+"/check/g.sh", one.program+"\n")
	}
	got := b.run()
	for key, one := range got {
		if !strings.HasPrefix(key, string(one.Outcome)) || len(one.Checks) != 1 {
			t.Errorf("%s: %+v", key, one)
		}
	}
	if one := got["failed-by-score#1"]; one.Checks[0].Note != "it is long" || one.Checks[0].Score != 0.6 {
		t.Errorf("%+v", one)
	}
}
