//go:build unix

package skill_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/extend/skill"
)

// TestNoPipes checks that a pipe without a writer blocks nothing.
func TestNoPipes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.md": define("a", "x")})
	for _, name := range []string{"pipe.md", "folder"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skip("no pipes here: ", err)
		}
	}
	roles, warnings := skill.Roles([]skill.Folder{in(dir, "user"), in(filepath.Join(dir, "folder"), "user")})
	if len(roles) != 5 {
		t.Errorf("%d roles", len(roles))
	}
	holds(t, "warnings", warnings, []string{"it is not a folder"})
	commands, warnings := skill.Commands([]skill.Folder{in(dir, "user"), in(filepath.Join(dir, "folder"), "user")})
	if len(commands) != 1 {
		t.Errorf("%d commands", len(commands))
	}
	holds(t, "warnings", warnings, []string{"it is not a folder"})
}
