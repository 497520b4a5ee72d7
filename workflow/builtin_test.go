package workflow_test

import (
	"bytes"
	"testing"

	"github.com/inspan/inspan/workflow"
)

// TestBuiltIn checks that every built-in workflow passes its own checks, has the name of its file, and is short.
func TestBuiltIn(t *testing.T) {
	n := 0
	for name, data := range workflow.BuiltIn() {
		n++
		w, err := workflow.Parse(name+".yaml", data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		checksRun(t, name, w.Steps, false)
		if lines := bytes.Count(data, []byte("\n")); w.Name != name || lines >= 60 || w.Description == "" {
			t.Errorf("%s is called %s and has %d lines", name, w.Name, lines)
		}
	}
	if n < 4 {
		t.Errorf("there are %d", n)
	}
}

// checksRun holds that each check of a loop is run in every round, even after an agent that failed.
func checksRun(t *testing.T, name string, steps []workflow.Step, loops bool) {
	t.Helper()
	for i, s := range steps {
		checksRun(t, name, s.Steps, loops || s.Kind == workflow.KindLoop)
		if !loops || s.Kind != workflow.KindCheck {
			continue
		}
		for _, before := range steps[:i] {
			if before.Kind == workflow.KindAgent && before.OnFailure != "continue" {
				t.Errorf("%s: the check %s is not run once the agent %s has failed", name, s.ID, before.ID)
			}
		}
	}
}
