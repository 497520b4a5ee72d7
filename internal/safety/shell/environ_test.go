package shell_test

import (
	"testing"

	"github.com/inspan/inspan/internal/safety/shell"
)

// TestIsName checks which names a shell's variables can have.
func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "_": true, "a_1": true, "API_KEY": true, "": false, "1A": false, "A-B": false, "A B": false, "A=B": false, "Ä": false,
	} {
		if shell.IsName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
