package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeniedPlacesAreClosed holds that a rule which denies a place holds inside of
// commands too, whose effects can't be known.
func TestDeniedPlacesAreClosed(t *testing.T) {
	v := newVictim(t)
	put := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(v.work+"/private/plan", "HIDDENPLAN")
	put(v.work+"/made/by-hand", "KEPTASITIS")
	put(v.home+"/.config/inspan/config.toml", "deny = ['read(private/**)', 'write(made/**)']\n")
	v.run("auto", []string{
		"bash: cat private/plan", "bash: cat pri*/plan", "bash: f=private/plan; cat $f", "bash: grep -r HIDDEN .", `bash: python3 -c "print(open('private/plan').read())"`,
		"bash: echo x > made/by-hand", "bash: f=made; echo x > $f/by-hand", `bash: python3 -c "open('made/by-hand','w')"`, "bash: rm -rf made; mkdir -p made; echo x > made/new", "bash: mv made other",
	})
	if strings.Contains(v.said, "HIDDENPLAN") {
		t.Error("a command has read what a rule denies")
	}
	if raw, err := os.ReadFile(v.work + "/made/by-hand"); string(raw) != "KEPTASITIS" {
		t.Errorf("a command has changed what a rule denies: %q, %v", raw, err)
	}
}
