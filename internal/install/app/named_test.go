package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
)

// TestNamed checks which files come with a message that names them, and how much of them: those that read_file reads
// unasked.
func TestNamed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package a\n", "sub/b.md": "two\n", "odd.": "an odd name\n", ".env": "KEY=hunter2\n", "closed.txt": "closed\n", "asked.txt": "asked\n",
		"long": strings.Repeat("a line\n", 10_000), "binary": "\x00\x01\x02", "dot.png": "\x89PNG\r\n\x1a\n...",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := t.TempDir()
	s := app.New(&config.Installation{
		StateDir: state, ConfigPath: filepath.Join(state, "config.toml"),
		Config: config.Config{Deny: []string{"read(closed.txt)"}, Ask: []string{"read(asked.txt)"}},
	}).Permission
	for message, want := range map[string][]string{
		"look at @a.go, and @sub/b.md.":    {": a.go, sub/b.md\n", "\na.go:\n", "package a", "two"},
		"see @odd. and @a.go":              {": odd., a.go\n", "an odd name"},
		"@a.go @a.go":                      {": a.go\n"},
		"@long":                            {": long\n", " bytes left out; read_file shows them]"},
		"a.go":                             nil,
		"mail me@a.go":                     nil,
		"@none @sub @. @ @../nothing":      nil,
		"@.env @closed.txt @asked.txt":     nil,
		"@binary":                          nil,
		"@closed.txt and @a.go, not @.env": {": a.go\n"},
		"like @dot.png, in @a.go":          {": dot.png, a.go\n", "dot.png: image/png"},
	} {
		said, err := s.Named(t.Context(), root, message)
		text := said.Parts.Text()
		if err != nil || (text == "") != (want == nil) || len(text) > 20<<10 || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %.300q, %v", message, text, err)
		}
		image := slices.ContainsFunc(said.Parts, func(p llm.Part) bool { _, is := p.(llm.Image); return is })
		if image != strings.Contains(message, "@dot.png") {
			t.Errorf("%s: an image comes with it: %v", message, image)
		}
		for _, part := range want {
			if !strings.Contains(text, part) || said.Origin.Leads() || said.Origin != event.OriginHarness {
				t.Errorf("%s: no %q in %.300q", message, part, text)
			}
		}
	}
}
