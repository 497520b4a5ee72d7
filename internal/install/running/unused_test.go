package running_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/snapshot"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

// TestUnused checks that worktrees, checkpoints and caches go with the last session that needs them, and none that
// another session, or something that has just begun, may need.
func TestUnused(t *testing.T) {
	r := newTable(t)
	rest := running.Rest{Trees: trees(t), Before: time.Now().Add(-time.Hour)}
	gone, kept := repository(t), repository(t)
	done := event.Stopped{Reason: event.ReasonDone}
	stale := past(t, r, event.Opened{Format: 1, Root: gone}, event.Say("stale"), done)
	stays := past(t, r, event.Opened{Format: 1, Root: kept}, event.Say("stays"), event.Pinned{On: true}, done)
	also := past(t, r, event.Opened{Format: 1, Root: kept}, event.Say("stale too"), done)
	unmerged := past(t, r, event.Opened{Format: 1, Root: gone}, event.Say("stale three"), done)
	copies := map[string]string{}
	for _, parent := range []struct{ id, root string }{{stale, gone}, {stays, kept}, {unmerged, gone}} {
		tree, err := rest.Trees.Make(t.Context(), parent.root, parent.id)
		if err != nil {
			t.Fatal(err)
		}
		if copies[parent.id] = tree.Root; parent.id == unmerged {
			fill(t, filepath.Join(tree.Root, "work.txt"), "not merged yet")
		}
		log, _, err := r.Sessions.Child(t.Context(), parent.id, "call")
		if err == nil {
			err = log.Lease(t.Context())
		}
		if err == nil {
			_, err = harnesstest.Write(t.Context(), log, event.Opened{Format: 1, Root: tree.Root, Parent: parent.id}, event.Say("work"), done)
		}
		if err != nil || log.Close() != nil {
			t.Fatal(err)
		}
	}
	// A session without a parent works in a copy too.
	apart, err := rest.Trees.Make(t.Context(), gone, "apart")
	if err != nil {
		t.Fatal(err)
	}
	alone := past(t, r, event.Opened{Format: 1, Root: apart.Root, Labels: map[string]string{running.CopyLabel: gone}}, event.Say("apart"), done)
	var paths []string
	for _, root := range []string{gone, kept} {
		s := &snapshot.Store{Dir: filepath.Join(r.StateDir, "snapshots", tool.Digest([]byte(root))), Root: root}
		if _, err := s.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		cache := filepath.Join(r.StateDir, "cache", filepath.Base(root))
		fill(t, filepath.Join(cache, "go-build", "x"), "built")
		fill(t, sandbox.CacheRoot(cache), root)
		paths = append(paths, s.Dir, cache)
	}
	list := []running.Stale{{Info: info(t, r, stale)}, {Info: info(t, r, also)}, {Info: info(t, r, unmerged)}, {Info: info(t, r, alone)}}

	if got, err := r.Unused(t.Context(), list, rest); err != nil || len(got) > 0 {
		t.Errorf("all has just changed: %+v, %v", got, err)
	}
	rest.Before = time.Now().Add(time.Hour)
	want := []string{rest.Trees.Copy(copies[stale]), rest.Trees.Copy(apart.Root), paths[0], paths[1]}
	slices.Sort(want[:2])
	got, err := r.Unused(t.Context(), list, rest)
	slices.SortFunc(got[:min(2, len(got))], func(a, b running.Unused) int { return strings.Compare(a.Path, b.Path) })
	if err != nil || !slices.Equal(where(got), want) {
		t.Errorf("%q, %v; want %q", where(got), err, want)
	}
	for _, u := range got {
		if u.Size == 0 || u.What == "" {
			t.Errorf("%+v", u)
		}
	}
	// While the sessions exist, the files that they need do too.
	discarded := func() (out []string) {
		t.Helper()
		if err := r.Discard(t.Context(), got, rest, func(u running.Unused) { out = append(out, u.Path) }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := discarded(); len(out) > 0 {
		t.Errorf("discarded %q", out)
	}
	for _, id := range []string{stale, unmerged, alone} {
		if err := r.Sessions.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if out := discarded(); !slices.Equal(out, want) {
		t.Errorf("discarded %q, want %q", out, want)
	}
	for path, there := range map[string]bool{want[0]: false, want[1]: false, want[2]: false, want[3]: false, copies[stays]: true, copies[unmerged]: true, paths[2]: true, paths[3]: true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
	if out, err := git(t.Context(), gone, "worktree", "list"); err != nil || bytes.Count(out, []byte("\n")) != 2 {
		t.Errorf("git still knows of %q, %v", out, err)
	}
}

// TestUnusedOfUnknown checks that nothing goes while a session is there that may have worked anywhere, and that a cache
// of an unknown workspace goes by the age of the retention alone.
func TestUnusedOfUnknown(t *testing.T) {
	r := newTable(t)
	cache := filepath.Join(r.StateDir, "cache", "0123")
	fill(t, filepath.Join(cache, "x"), "built")
	rest := running.Rest{Before: time.Now().Add(time.Hour)}
	if got, err := r.Unused(t.Context(), nil, rest); err != nil || len(got) > 0 {
		t.Errorf("without an age: %+v, %v", got, err)
	}
	rest.Age = time.Nanosecond
	if got, err := r.Unused(t.Context(), nil, rest); err != nil || !slices.Equal(where(got), []string{cache}) {
		t.Errorf("with an age: %+v, %v", got, err)
	}
	fill(t, filepath.Join(r.StateDir, "sessions", "20200101-000000-aaaa", "log.jsonl"), "no log at all\n")
	if got, err := r.Unused(t.Context(), nil, rest); err != nil || len(got) > 0 {
		t.Errorf("beside a damaged session: %+v, %v", got, err)
	}
}

// trees keeps worktrees with the git of this machine.
func trees(t *testing.T) *worktree.Store {
	t.Helper()
	return &worktree.Store{Dir: t.TempDir(), Git: func(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, int, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
		out, err := cmd.Output()
		return out, cmd.ProcessState.ExitCode(), err
	}}
}

// repository is a workspace with a commit.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(root, "a.txt"), "a")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "a"}} {
		if out, err := git(t.Context(), root, args...); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	return root
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

func fill(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func where(list []running.Unused) (out []string) {
	for _, u := range list {
		out = append(out, u.Path)
	}
	return out
}
