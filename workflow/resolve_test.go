package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/workflow"
)

// TestAllMistakesAtOnce checks that one mistake hides no other, of any kind, and that a consequence of a mistake is
// not reported as another.
func TestAllMistakesAtOnce(t *testing.T) {
	w, err := workflow.Parse("demo.yaml", []byte(`
name: Demo
inputs: {x: {type: strng}, y: [1]}
limits: {time: 5 minutes}
colour: red
steps:
  - {id: a, kind: run, run: 'echo', gate: strict, env: {X: "${inputs.x}"}}
  - {id: b, kind: agnt, prompt: x}
  - {id: c, kind: agent, needs: b, prompt: "${b.text} ${inputs.y.z} ${nothing.text}", retry: {times: 99}, model: no/model}
  - {kind: wait, for: soon}
  - {id: e, kind: tool, tool: no_tool, with: {n: 1e5}}
  - {id: f, kind: check}
  - {id: g, kind: workflow, use: missing}
`), func(name string) (string, []byte, error) { return "", nil, fmt.Errorf("there is no workflow %q", name) })
	machine := workflow.Machine{
		Model: func(name string) error { return fmt.Errorf("no model %s", name) },
		Kinds: []string{"worker"}, Tools: func() []string { return []string{"read_file"} },
	}
	var problems, names workflow.Problems
	if !errors.As(err, &problems) || w == nil || !errors.As(w.Resolve(machine), &names) {
		t.Fatalf("%v, %v", w, err)
	}
	want := []string{
		"2 name", "3 inputs.x", "3 inputs.y", "4 limits.time", "5 colour", "7 steps.a.gate", "8 steps.b.kind", "9 steps.c.needs", "9 steps.c.prompt",
		"9 steps.c.retry.times", "10 steps.4.id", "10 steps.4.for", "11 steps.e.with.n", "12 steps.f.run", "13 steps.g.use",
		"9 steps.c.model", "11 steps.e.tool",
	}
	var got []string
	for _, p := range slices.Concat(problems, names) {
		got = append(got, fmt.Sprint(p.Line, " ", p.Field))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("want %q\ngot  %q\n%v\n%v", want, got, problems, names)
	}
}

// TestResolve checks that every name of a step is looked up, also within groups and in workflows that it uses.
func TestResolve(t *testing.T) {
	inner := "name: inner\nsteps: [{id: in, kind: agent, agent: stranger, prompt: x}]\n"
	w, err := workflow.Parse("demo.yaml", []byte(`
name: demo
steps:
  - {id: a, kind: agent, agent: Reviewer, model: p/m, tools: [read_file, mcp__s__t], prompt: x}
  - {id: b, kind: each, over: [1], steps: [{id: c, kind: agent, tools: [raed_file], prompt: x}]}
  - {id: d, kind: tool, tool: mcp__s__t}
  - {id: e, kind: workflow, use: inner}
  - {id: f, kind: agent, model: p/other, prompt: x}
`), func(string) (string, []byte, error) { return "inner.yaml", []byte(inner), nil })
	if err != nil {
		t.Fatal(err)
	}
	err = w.Resolve(workflow.Machine{
		Kinds: []string{"worker", "reviewer"}, Tools: func() []string { return []string{"read_file"} },
		Model: func(name string) error {
			if name == "p/m" {
				return nil
			}
			return errors.New("no model " + name)
		},
	})
	want := `demo.yaml:5: steps.b.steps.c.tools: there is no tool "raed_file" here; did you mean "read_file"?
demo.yaml:8: steps.f.model: no model p/other; or write small
inner.yaml:2: steps.in.agent: there is no kind of agent "stranger" here; there are worker, reviewer`
	if err == nil || err.Error() != want {
		t.Errorf("want\n%s\ngot\n%v", want, err)
	}
	for _, data := range workflow.BuiltIn() {
		w, err := workflow.Parse("x.yaml", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		known := workflow.Machine{Kinds: []string{"worker"}, Tools: func() []string { return []string{"read_issue"} }}
		if err := w.Resolve(known); err != nil {
			t.Errorf("%s: %v", w.Name, strings.TrimSpace(err.Error()))
		}
	}
}
