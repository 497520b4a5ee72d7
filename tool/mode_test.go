package tool_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestModes checks that every mode has a description and passes, and that any other is refused with the nearest one.
func TestModes(t *testing.T) {
	for _, m := range tool.Modes() {
		if m.Doc() == "" || m.Check() != nil {
			t.Errorf("mode %s: %q, %v", m, m.Doc(), m.Check())
		}
	}
	if err := tool.Mode("").Check(); err != nil {
		t.Errorf("an open mode: %v", err)
	}
	for _, m := range []tool.Mode{"yoloo", "YOLO", " plan", "plan\n"} {
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), "plan, ask, edit, auto or yolo") ||
			!strings.Contains(err.Error(), "did you mean ") {
			t.Errorf("%q: %v", m, err)
		}
	}
}
