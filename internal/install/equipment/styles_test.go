package equipment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/equipment"
)

// TestStyles checks that built-in styles have texts, that a file takes the place of one, next to the settings before
// those of Claude Code, and that an unknown name is refused with the names there are.
func TestStyles(t *testing.T) {
	home, settings := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for path, text := range map[string]string{
		filepath.Join(settings, "output-styles", "concise.md"):     "---\ndescription: mine\n---\nBe brief.",
		filepath.Join(home, ".claude", "output-styles", "bard.md"): "Answer in verse.",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &equipment.Set{Installation: &config.Installation{ConfigPath: filepath.Join(settings, "config.toml")}}
	warn := func(w string) { t.Error(w) }
	var names []string
	for _, style := range s.Styles(warn) {
		names = append(names, style.Name)
	}
	if got, want := strings.Join(names, " "), "bard concise default explanatory learning"; got != want {
		t.Errorf("styles %q, want %q", got, want)
	}
	for name, want := range map[string]string{"": "", "default": "", "Concise": "Be brief.", "bard": "Answer in verse."} {
		if got, err := s.Style(name, warn); got != want || err != nil {
			t.Errorf("style %q is %q, %v; want %q", name, got, err, want)
		}
	}
	if text, err := s.Style("learning", warn); !strings.Contains(text, "Help the person learn") || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := s.Style("curt", warn); err == nil || !strings.Contains(err.Error(), "use one of bard, concise,") {
		t.Errorf("an unknown style: %v", err)
	}
}
