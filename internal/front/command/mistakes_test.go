//go:build linux

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesAtATerminal checks that a folder in which no session could begin is reported at the start, and that the
// last session, if not named, is deleted only after a question.
func TestMistakesAtATerminal(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	s := newTerminal(t, h, 250, 24)
	path := filepath.Join(h.work, ".inspan", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mode = \"auto\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Types("inspan")
	s.Shows("a project can't set mode", "Correct it with: inspan config edit --project")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	h.does(t, 0, "run", "say: hello")
	s.Clears()
	s.Types("inspan sessions rm last")
	s.Shows("Delete the session 20", "? [y/N]")
	s.Types("n")
	s.Clears()
	if out := h.does(t, 0, "sessions", "list"); !strings.Contains(out, "hello") {
		t.Fatalf("no was not heard: %s", out)
	}
	s.Types("inspan sessions rm last")
	s.Shows("[y/N]")
	s.Types("y")
	s.Shows("removed 20")
}
