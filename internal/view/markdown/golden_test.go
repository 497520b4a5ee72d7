package markdown_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/view/markdown"
)

var update = flag.Bool("update", false, "write the golden files anew")

// styles are the ones that golden files show.
func styles() map[string]markdown.Style {
	return map[string]markdown.Style{"dark": {}, "light": {Light: true}, "plain": {NoColor: true}}
}

func TestGoldens(t *testing.T) {
	for _, tc := range []struct {
		file, style string
		width       int
	}{
		{"all.md", "dark", 80},
		{"all.md", "light", 80},
		{"all.md", "plain", 80},
		{"all.md", "plain", 34},
		{"all.md", "plain", 10},
		{"code.md", "dark", 60},
		{"code.md", "plain", 20},
		{"change.diff", "dark", 60},
		{"change.diff", "light", 60},
		{"change.diff", "plain", 60},
		{"change.diff", "plain", 10},
	} {
		name := fmt.Sprintf("%s-%s-%d", strings.TrimSuffix(tc.file, filepath.Ext(tc.file)), tc.style, tc.width)
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", tc.file))
			if err != nil {
				t.Fatal(err)
			}
			show := markdown.Render
			if filepath.Ext(tc.file) == ".diff" {
				show = markdown.Diff
			}
			text := show(string(raw), tc.width, styles()[tc.style])
			check(t, text, tc.width, styles()[tc.style])
			// Escapes are spelt out, so that a golden file can be read anywhere.
			golden(t, filepath.Join("testdata", name+".golden"), strings.ReplaceAll(text, "\x1b", "^")+"\n")
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
