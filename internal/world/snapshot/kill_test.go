package snapshot

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"
)

// scene is a workspace in which an agent did a bit of everything.
func scene(t testing.TB) (s *Store, span Span, before, after map[string]string) {
	t.Helper()
	s = newStore(t)
	big := strings.Repeat("big", bigObject/2)
	lay(t, s.Root, map[string]string{
		"edited": "1", "deleted": "2", "mode": "3", "to-dir": "4", "to-link": "5", "dir-to-file/x/y": "6", "dir-to-link/x": "7",
		"link": "-> a", "link-to-file": "-> b", "empty/": "", "gone/deep/er/x": "8", "big": big, "stays/x": "9", "locked/x": "10",
		"locked/y": "11",
	})
	path := func(p string) string { return filepath.Join(s.Root, p) }
	must(t, os.Chmod(path("locked"), 0o555))
	before = state(t, s.Root)
	span = during(t, s, func() {
		must(t, os.Chmod(path("mode"), 0o700), os.Chmod(path("locked"), 0o755))
		for _, p := range []string{
			"deleted", "to-dir", "to-link", "dir-to-file",
			"dir-to-link", "link", "link-to-file", "empty", "gone", "locked/y",
		} {
			must(t, os.RemoveAll(path(p)))
		}
		lay(t, s.Root, map[string]string{
			"edited": "one", "to-dir/x": "4", "to-link": "-> c", "dir-to-file": "6", "dir-to-link": "-> x", "link": "-> other", "link-to-file": "f",
			"new/a/b": "n", "new/c/": "", "new-link": "-> z", "big": big + "!", "locked/x": "ten",
		})
		must(t, os.Chmod(path("locked"), 0o555), os.Chmod(path("new"), 0o500))
	})
	return s, span, before, state(t, s.Root)
}

// twin copies a scene.
func twin(t testing.TB, s *Store) *Store {
	t.Helper()
	top := resolved(t, t.TempDir())
	to := &Store{Dir: filepath.Join(top, "store"), Root: filepath.Join(top, "work")}
	for from, to := range map[string]string{s.Dir: to.Dir, s.Root: to.Root} {
		duplicate(t, from, to)
	}
	return to
}

func duplicate(t testing.TB, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	must(t, err)
	switch {
	case info.IsDir():
		must(t, os.Mkdir(to, 0o700))
		list, err := os.ReadDir(from)
		must(t, err)
		for _, e := range list {
			duplicate(t, filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
		must(t, os.Chmod(to, info.Mode()))
	case info.Mode().IsRegular():
		data, err := os.ReadFile(from)
		must(t, err, os.WriteFile(to, data, 0o600), os.Chmod(to, info.Mode()))
	default:
		target, err := os.Readlink(from)
		must(t, err, os.Symlink(target, to))
	}
}

// intact checks that all checkpoints can be read whole and that nothing of
// ours lies in the workspace, and returns how many there are.
func intact(t testing.TB, s *Store) int {
	t.Helper()
	list, err := s.List(t.Context())
	must(t, err)
	for _, c := range list {
		must(t, s.Check(t.Context(), c.ID))
	}
	return len(list)
}

// few is how many kills a sweep may leave out between two that it does.
func few() int {
	if testing.Short() || testkit.Race {
		return 5
	}
	return 1
}

func TestRestoreIsKilledAnywhere(t *testing.T) {
	s, span, want, now := scene(t)
	untouched, forward := 0, 0
	for n := 1; ; n += few() {
		c := twin(t, s)
		_, killed := run(t, c, "restore", n, span.Before, span.After)
		for again := 1; killed && n%3 == 0 && again < 40; again += 6 { // kill the recovery too
			run(t, c, "recover", again)
		}
		r, err := c.Recover(t.Context())
		must(t, err)
		got := state(t, c.Root)
		switch {
		case cmp.Equal(got, want):
			forward++
		case r == nil && killed && cmp.Equal(got, now):
			untouched++
		default:
			t.Fatal(n, r != nil, cmp.Diff(want, got))
		}
		if r != nil {
			if len(r.Kept) > 0 || len(r.Changes) == 0 {
				t.Fatal(n, "recovered, but", r.Plan)
			}
			restore(t, c, r.Before, false, Span{r.Before, r.After})
			if diff := cmp.Diff(now, state(t, c.Root)); diff != "" {
				t.Fatal(n, "undone:", diff)
			}
		}
		intact(t, c)
		if !killed {
			break
		}
	}
	if untouched < 3/few() || forward < 10 {
		t.Fatal("the sweep killed too little:", untouched, forward)
	}
}

func TestTakeIsKilledAnywhere(t *testing.T) {
	s, _, _, _ := scene(t)
	lay(t, s.Root, map[string]string{"fresh": "1", "large": strings.Repeat("x", bigObject), "more/x": "2"})
	now := state(t, s.Root)
	for n := 1; ; n += few() {
		c := twin(t, s)
		_, killed := run(t, c, "take", n)
		if count := intact(t, c); count != 2 && count != 3 || !killed && count != 3 {
			t.Fatal(n, killed, count)
		}
		id := take(t, c)
		if left, err := os.ReadDir(c.path(tmpName)); err != nil || len(left) > 0 {
			t.Fatal(n, left, err)
		}
		must(t, c.Check(t.Context(), id), os.RemoveAll(filepath.Join(c.Root, "more")))
		restore(t, c, id, false, Span{id, take(t, c)})
		if diff := cmp.Diff(now, state(t, c.Root)); diff != "" {
			t.Fatal(n, diff)
		}
		if !killed {
			break
		}
	}
}

func TestCleanIsKilledAnywhere(t *testing.T) {
	s, span, _, _ := scene(t)
	must(t, s.Remove(t.Context(), span.Before))
	for n := 1; ; n++ {
		c := twin(t, s)
		_, killed := run(t, c, "clean", n, span.After)
		if count := intact(t, c); count != 1 {
			t.Fatal(n, killed, count)
		}
		_, err := c.Clean(t.Context())
		must(t, err)
		intact(t, c)
		if !killed {
			break
		}
	}
}

// TestRealKills kills from outside, at random moments.
func TestRealKills(t *testing.T) {
	s, span, want, now := scene(t)
	rounds := 60 / few()
	for round := range rounds {
		c := twin(t, s)
		cmd := command(c, "restore", 0, span.Before, span.After)
		must(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(rand.IntN(40_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // whether it was killed or done
		timer.Stop()
		_, err := c.Recover(t.Context())
		must(t, err)
		if got := state(t, c.Root); !cmp.Equal(got, want) && !cmp.Equal(got, now) {
			t.Fatal(round, cmp.Diff(want, got))
		}
		intact(t, c)
	}
}
