//go:build unix

package role_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/role"
)

// TestPipes holds that nothing waits for a pipe that nobody writes to.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.md": define("a", "x")})
	for _, name := range []string{"pipe.md", "folder"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skip("no pipes here: ", err)
		}
	}
	roles, warnings := role.Find([]role.Folder{{dir, "user"}, {filepath.Join(dir, "folder"), "user"}})
	if len(roles) != 5 {
		t.Errorf("%d roles", len(roles))
	}
	holds(t, warnings, []string{"it is no folder"})
}
