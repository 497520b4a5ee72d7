package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/app"
)

// TestDeniedPlacesAreClosed checks that a rule which denies a place holds inside of commands too, whose effects can't
// be known.
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
		"bash: cat private/plan", "bash: cat pri*/plan", "bash: f=private/plan; cat $f", "bash: grep -r HIDDEN .",
		`bash: python3 -c "print(open('private/plan').read())"`,
		"bash: echo x > made/by-hand", "bash: f=made; echo x > $f/by-hand", `bash: python3 -c "open('made/by-hand','w')"`,
		"bash: rm -rf made; mkdir -p made; echo x > made/new", "bash: mv made other",
	})
	if strings.Contains(v.said, "HIDDENPLAN") {
		t.Error("a command has read what a rule denies")
	}
	if raw, err := os.ReadFile(v.work + "/made/by-hand"); string(raw) != "KEPTASITIS" {
		t.Errorf("a command has changed what a rule denies: %q, %v", raw, err)
	}
}

// TestLinksToOurFolders keeps tools from inspan's own files under every name that they have.
func TestLinksToOurFolders(t *testing.T) {
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(at, link); err != nil {
		t.Skip(err)
	}
	t.Setenv("INSPAN_CONFIG_DIR", filepath.Join(link, "config"))
	t.Setenv("INSPAN_STATE_DIR", filepath.Join(link, "state"))
	for name, text := range map[string]string{"config/config.toml": "model = \"script/commands\"\n", "state/logins/x.json": "the token"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := app.Load("")
	if err != nil {
		t.Fatal(err)
	}
	prompt := ""
	for _, dir := range []string{at, link} {
		prompt += fmt.Sprintf("call: read_file {\"path\":%q}\ncall: write_file {\"path\":%q,\"content\":\"x\"}\n",
			filepath.Join(dir, "state/logins/x.json"), filepath.Join(dir, "config/new.toml"))
	}
	got := says(t, a, app.Options{Mode: "yolo", Unattended: true}, t.TempDir(), prompt)
	if len(got) != 4 {
		t.Errorf("%q", got)
	}
	for _, text := range got {
		if !strings.HasPrefix(text, "denied") {
			t.Error(text)
		}
	}
}
