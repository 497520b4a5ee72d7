package examples

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs every example as a person would, without any key.
func TestExamples(t *testing.T) {
	want := map[string][]string{
		"01-hello":    {"Hello from the harness.", "stopped: done"},
		"02-provider": {"script/commands says: Everything around a model"},
		"03-tool":     {"The sum is 42."},
		"04-events":   {"1 opened", "stopped", "$0.00645"},
		"05-resume":   {"a life\n  working on one\na life\n  working on two\nstopped: done"},
		"06-fork":     {"trunk:  The map it is.", "branch: The slice it is.", "two sessions: true"},
		"08-mcp":      {"There were two herons. <nil>"},
		"07-child":    {"I have asked.", "session: say: It is in cart.go.", "session: call: ask_another"},
	}
	dirs, err := filepath.Glob("[0-9]*")
	if err != nil || len(dirs) != len(want) {
		t.Fatalf("examples %v, %v: want %d", dirs, err, len(want))
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			bin := filepath.Join(t.TempDir(), "example")
			if out, err := exec.Command("go", "build", "-o", bin, "./"+dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			cmd := exec.Command(bin)
			cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, w := range want[dir] {
				if !strings.Contains(string(out), w) {
					t.Errorf("output lacks %q:\n%s", w, out)
				}
			}
		})
	}
}
