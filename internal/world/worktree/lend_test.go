package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLend checks that the lent repository has the history of a branch, including of a shallow clone and from a
// worktree, and nothing else of the repository.
func TestLend(t *testing.T) {
	b := newBench(t)
	b.git("branch", "-M", "main")
	b.write("a.txt", "two\n")
	b.commit()
	b.git("config", "remote.origin.url", "https://evil.test/x")
	b.git("config", "user.name", "mallory")
	shallow := &bench{T: t, root: resolved(t, t.TempDir()), store: b.store}
	shallow.git("clone", "--quiet", "--depth=1", "file://"+b.root, ".")
	tree := &bench{T: t, root: filepath.Join(t.TempDir(), "tree"), store: b.store}
	b.git("worktree", "add", "--quiet", "-b", "side", tree.root)
	for where, c := range map[string]struct {
		b       *bench
		branch  string
		commits int
	}{"repository": {b, "main", 2}, "shallow": {shallow, "main", 1}, "worktree": {tree, "side", 2}} {
		l, err := c.b.store.Lend(t.Context(), c.b.root, c.branch)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		log := strings.Fields(c.b.gitIn(l.Dir, "log", "--format=%H", l.Commit))
		if want := strings.TrimSpace(c.b.git("rev-parse", c.branch)); len(log) != c.commits || log[0] != want {
			t.Errorf("%s: %v, want %d up to %s", where, log, c.commits, want)
		}
		if set := c.b.gitIn(l.Dir, "config", "--list", "--local"); strings.Contains(set, "evil") || strings.Contains(set, "mallory") {
			t.Errorf("%s: settings came along: %s", where, set)
		}
		if _, gone := os.Stat(l.Dir); l.Close() != nil || gone != nil {
			t.Errorf("%s: it is not closed", where)
		}
		if _, err := os.Stat(l.Dir); err == nil {
			t.Errorf("%s: it is still there", where)
		}
	}
	if from, err := b.store.Origin(t.Context(), b.root); err != nil || from != "https://evil.test/x" {
		t.Error(from, err)
	}
}

// TestLendRefuses checks that nothing is lent through which objects of another repository would be read.
func TestLendRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		does func(b *bench)
		says string
	}{
		"alternates": {func(b *bench) {
			put(b.T, filepath.Join(b.root, ".git/objects/info/alternates"), "/srv/secret.git/objects\n")
		}, "borrows"},
		"a link": {func(b *bench) {
			if err := os.Symlink("/srv/secret.git/objects/pack/x.pack", filepath.Join(b.root, ".git/objects/pack/pack-1.pack")); err != nil {
				b.Fatal(err)
			}
		}, "not a regular file"},
		"a program": {func(b *bench) { b.git("config", "core.sshCommand", "touch /tmp/x") }, "git is not run in"},
		"no branch": {func(b *bench) { b.git("branch", "-M", "other") }, "there is no branch main"},
	} {
		b := newBench(t)
		b.git("branch", "-M", "main")
		c.does(b)
		if l, err := b.store.Lend(t.Context(), b.root, "main"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
	}
	if from, err := newBench(t).store.Origin(t.Context(), newBench(t).root); err != nil || from != "" {
		t.Error(from, err)
	}
}
