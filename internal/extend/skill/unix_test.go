//go:build unix

package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/extend/skill"
)

// TestPipes checks that a pipe without a writer blocks nothing.
func TestPipes(t *testing.T) {
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a"), "p/x": "x"})
	for _, name := range []string{"p/SKILL.md", "a/pipe", "top"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skip("no pipes here: ", err)
		}
	}
	link(t, "/dev/zero", filepath.Join(dir, "a", "zero"))
	skills, warnings := l.List()
	if got := named(skills); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
	holds(t, "warnings", warnings, []string{"SKILL.md is not a file"})
	holds(t, "problems", skill.Validate(filepath.Join(dir, "p")), []string{"SKILL.md can't be read: it is not a file"})
	for _, name := range []string{"pipe", "zero"} {
		if data, err := l.File("a", name); err == nil {
			t.Errorf("%s: %q", name, data)
		}
	}
	l.Folders = []skill.Folder{{Path: filepath.Join(dir, "top"), Source: "x"}}
	if _, warnings := l.List(); len(warnings) != 1 {
		t.Errorf("%q", warnings)
	}
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	l, dir := library(t, map[string]string{"a/SKILL.md": fmt.Sprintf(simple, "a"), "b/SKILL.md": fmt.Sprintf(simple, "b")})
	if err := os.Chmod(filepath.Join(dir, "b", "SKILL.md"), 0); err != nil {
		t.Fatal(err)
	}
	skills, warnings := l.List()
	if got := named(skills); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
	holds(t, "warnings", warnings, []string{"permission denied"})
}
