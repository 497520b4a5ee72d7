package setup_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/setup"
)

// TestHowToUpdate checks that the way to update is the way in which the program was installed.
func TestHowToUpdate(t *testing.T) {
	bin, other := t.TempDir(), t.TempDir()
	t.Setenv("GOBIN", bin)
	for program, want := range map[string]string{
		filepath.Join(bin, "inspan"):   "go install github.com/inspan/inspan/cmd/inspan@latest",
		filepath.Join(other, "inspan"): "scripts/install --dir " + other,
	} {
		got := setup.HowToUpdate(program)
		container := strings.Contains(got, "container") && program != filepath.Join(bin, "inspan")
		if !strings.Contains(got, want) && !container {
			t.Errorf("%s: %s", program, got)
		}
	}
}
