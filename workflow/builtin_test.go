package workflow_test

import (
	"bytes"
	"testing"

	"github.com/inspan/inspan/workflow"
)

// TestBuiltIn holds that what is built in passes its own checks, under the name of its file, and is short.
func TestBuiltIn(t *testing.T) {
	n := 0
	for name, data := range workflow.BuiltIn() {
		n++
		w, err := workflow.Parse(name+".yaml", data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if lines := bytes.Count(data, []byte("\n")); w.Name != name || lines >= 60 || w.Description == "" {
			t.Errorf("%s is called %s and has %d lines", name, w.Name, lines)
		}
	}
	if n < 4 {
		t.Errorf("there are %d", n)
	}
}
