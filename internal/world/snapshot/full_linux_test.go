package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cramp makes a folder a file system of 4 MiB.
func cramp(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("may not mount:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

func TestDiskOfTheStoreIsFull(t *testing.T) {
	s := newStore(t)
	cramp(t, s.Dir)
	lay(t, s.Root, map[string]string{"a": "1"})
	take(t, s)
	for _, size := range []int{5 << 20, bigObject - 1} {
		for i := range 6 {
			lay(t, s.Root, map[string]string{string(rune('b' + i)): noise(size)})
		}
		if _, err := s.Take(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if intact(t, s) != 1 {
			t.Fatal("not intact")
		}
		for i := range 6 {
			must(t, os.Remove(filepath.Join(s.Root, string(rune('b'+i)))))
		}
	}
	take(t, s)
}

func TestDiskOfTheWorkspaceIsFull(t *testing.T) {
	s := newStore(t)
	cramp(t, s.Root)
	lay(t, s.Root, map[string]string{"a": noise(1 << 20), "b": noise(1 << 20), "c": noise(bigObject / 2)})
	want := state(t, s.Root)
	span := during(t, s, func() {
		for _, name := range []string{"a", "b", "c"} {
			must(t, os.Remove(filepath.Join(s.Root, name)))
		}
	})
	filler := filepath.Join(s.Root, "filler")
	must(t, os.WriteFile(filler, []byte(strings.Repeat("x", 5<<19)), 0o644))
	_, err := s.Restore(t.Context(), span.Before, []Span{span}, false)
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrUnfinished) {
		t.Fatal(err)
	}
	must(t, os.Remove(filler))
	r, err := s.Recover(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, state(t, s.Root)); diff != "" || len(r.Kept) > 0 {
		t.Fatal(diff, r.Kept)
	}
}
