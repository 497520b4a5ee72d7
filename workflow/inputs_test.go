package workflow_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/inspan/inspan/workflow"
)

// TestTypedInputs checks that a misspelled input is named, and that other words are the only missing text.
func TestTypedInputs(t *testing.T) {
	w, err := workflow.Parse("fix.yaml", []byte(`name: fix
inputs:
  task: {type: string}
  rounds: {type: integer, default: 3}
steps: [{id: a, kind: agent, prompt: "${inputs.task}"}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want map[string]any
		err  string
	}{
		{"task=it rounds=2", map[string]any{"task": "it", "rounds": 2.0}, ""},
		{"mend it", map[string]any{"task": "mend it"}, ""},
		{"mend a=b", map[string]any{"task": "mend a=b"}, ""},
		{"task=a=b", map[string]any{"task": "a=b"}, ""},
		{"tsk=it", nil, `fix has no input "tsk"; did you mean "task"?`},
		{"goal=it", nil, `fix has no input "goal"; there are rounds, task`},
		{"mend round=2", nil, `fix has no input "round"; did you mean "rounds"?`},
		{"task=it more", nil, `fix has no input "more"`},
	} {
		got, err := w.Typed(strings.Fields(c.args))
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && (err != nil || !maps.Equal(got, c.want)) {
			t.Errorf("%s: %v, %v", c.args, got, err)
		}
	}
}
