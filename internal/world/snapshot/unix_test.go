//go:build linux || darwin

package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pipe(path string) error { return syscall.Mkfifo(path, 0o644) }

// mortal makes a child run as an unprivileged user who owns the store and the workspace.
func mortal(t *testing.T, s *Store, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return cmd
	}
	const nobody = 65534
	must(t, os.MkdirAll(s.Dir, 0o700))
	for _, dir := range []string{s.Dir, s.Root} {
		for path := range state(t, dir) {
			must(t, os.Lchown(filepath.Join(dir, path), nobody, nobody))
		}
	}
	for dir := filepath.Dir(s.Root); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	// The test binary may lie where only root can go.
	binary := filepath.Join(filepath.Dir(s.Root), "test")
	if _, err := os.Stat(binary); err != nil {
		data, err := os.ReadFile(os.Args[0])
		must(t, err, os.WriteFile(binary, data, 0o755))
	}
	cmd.Path = binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

func say(t *testing.T, s *Store, what string, n int, args ...string) []string {
	t.Helper()
	out, err := mortal(t, s, command(s, what, n, args...)).Output()
	if err != nil && n == 0 {
		t.Fatalf("%s: %v: %s", what, err, out)
	}
	return strings.Fields(string(out))
}

func TestUnreadable(t *testing.T) {
	s := newStore(t)
	path := func(p string) string { return filepath.Join(s.Root, p) }
	lay(t, s.Root, map[string]string{"file": "1", "dir/x": "2", "list/x": "3", "always": "4", "fine": "5"})
	must(t, os.Chmod(path("always"), 0))
	want := state(t, s.Root)
	before := say(t, s, "take", 0)
	must(t, os.Chmod(path("file"), 0), os.Chmod(path("dir"), 0), os.Chmod(path("list"), 0o444))
	after := say(t, s, "take", 0)
	if before[1] != "1" || after[1] != "4" {
		t.Fatal("left out:", before, after)
	}
	list, err := s.Diff(t.Context(), before[0], after[0])
	must(t, err)
	if diff := cmp.Diff(map[string]Kind{"file": Edit, "dir": ChangeMod, "list": ChangeMod}, kinds(list)); diff != "" {
		t.Fatal(diff)
	}
	if kept := say(t, s, "restore", 0, before[0], after[0])[2]; kept != "0" {
		t.Error("kept", kept)
	}
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" {
		t.Error(diff)
	}
}

// TestReadOnlyFolders restores in folders that may not be written to, and is
// killed at it.
func TestReadOnlyFolders(t *testing.T) {
	for _, n := range []int{0, 16, 18, 20, 22, 24, 26, 28, 30, 32} {
		t.Run(fmt.Sprint("killed at ", n), func(t *testing.T) {
			s := newStore(t)
			path := func(p string) string { return filepath.Join(s.Root, p) }
			lay(t, s.Root, map[string]string{"d/edited": "1", "d/e/deleted": "2", "gone/x/y": "3"})
			lock := func(mode os.FileMode, dirs ...string) {
				for _, dir := range dirs {
					must(t, os.Chmod(path(dir), mode))
				}
			}
			lock(0o555, "d/e", "d", "gone/x", "gone")
			want := state(t, s.Root)
			before := say(t, s, "take", 0)
			lock(0o755, "d", "d/e", "gone", "gone/x")
			must(t, os.Remove(path("d/e/deleted")), os.RemoveAll(path("gone")))
			lay(t, s.Root, map[string]string{"d/edited": "one", "d/e/new": "x", "made/x": "y"})
			lock(0o555, "d/e", "d", "made")
			after := say(t, s, "take", 0)
			if out := say(t, s, "restore", n, before[0], after[0]); (len(out) == 0) != (n > 0) {
				t.Fatal("killed or not:", out)
			}
			say(t, s, "recover", 0)
			if diff := cmp.Diff(want, state(t, s.Root)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
