package running

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
)

// Unused is something that was kept for sessions and that none needs once the stale ones are gone.
type Unused struct {
	What string // it is, for people
	Path string
	Size int64 // bytes

	of string // workspace of a worktree
}

// Rest says what to look for beside sessions.
type Rest struct {
	Trees  *worktree.Store // copies of subagents; nil: none
	Age    time.Duration   // of the retention: a cache that does not say of which workspace it is goes when it is so old; 0: never
	Before time.Time       // what has changed since stays
}

// Unused lists what goes with stale sessions: the worktrees of their subagents, and checkpoints and
// caches of workspaces in which no other session has worked. What can't be told to belong to
// nobody stays.
func (t *Table) Unused(ctx context.Context, stale []Stale, rest Rest) ([]Unused, error) {
	list, err := t.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	goes := map[string]bool{}
	for _, s := range stale {
		goes[s.ID] = true
	}
	used, known := roots(list, goes)
	if !known {
		return nil, nil
	}
	out := append(rest.worktrees(ctx, list, goes, used), t.checkpoints(used, rest)...)
	return append(out, t.caches(used, rest)...), ctx.Err()
}

// roots are the workspaces of the sessions that stay. It is not known if one of them may have
// worked anywhere.
func roots(list []store.Info, goes map[string]bool) (used map[string]bool, known bool) {
	used = map[string]bool{}
	for _, info := range list {
		if goes[store.Lead(info.ID)] {
			continue
		}
		if info.Root == "" && info.Damage != nil {
			return nil, false
		}
		used[info.Root] = true
	}
	return used, true
}

// Discard deletes of the unused what is still so, now that the stale sessions are gone, and calls
// told for each that is.
func (t *Table) Discard(ctx context.Context, list []Unused, rest Rest, told func(Unused)) error {
	sessions, err := t.Sessions.List(ctx)
	if err != nil {
		return err
	}
	used, known := roots(sessions, nil)
	if !known {
		return nil
	}
	still := append(t.checkpoints(used, rest), t.caches(used, rest)...)
	for _, u := range list {
		var bad error
		switch {
		case u.of != "" && !rest.holds(used, u.Path):
			bad = rest.Trees.Discard(ctx, u.of, u.Path)
		case slices.ContainsFunc(still, func(s Unused) bool { return s.Path == u.Path }):
			bad = discard(u.Path)
		default: // somebody has begun to use it
			continue
		}
		if err = errors.Join(err, bad); bad == nil {
			told(u)
		}
	}
	return err
}

// discard deletes a folder, which nobody finds meanwhile.
func discard(path string) error {
	aside := filepath.Join(filepath.Dir(path), ".old-"+filepath.Base(path))
	if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(aside), os.RemoveAll(sandbox.CacheRoot(path)))
}

// worktrees are the copies in which subagents of stale sessions worked. One with changes that nobody
// has merged stays.
func (rest Rest) worktrees(ctx context.Context, list []store.Info, goes, used map[string]bool) (out []Unused) {
	if rest.Trees == nil {
		return nil
	}
	at, seen := map[string]string{}, map[string]bool{}
	for _, info := range list {
		at[info.ID] = info.Root
	}
	for _, info := range list {
		dir := rest.Trees.Copy(info.Root)
		if !goes[store.Lead(info.ID)] || info.Parent == "" || dir == "" || seen[dir] || rest.holds(used, dir) {
			continue
		}
		seen[dir] = true
		if unmerged, err := rest.Trees.Unmerged(ctx, at[info.Parent], dir); err != nil || unmerged {
			continue
		}
		if size, newest, err := measure(dir); err == nil && newest.Before(rest.Before) {
			out = append(out, Unused{What: "worktree of a subagent", Path: dir, Size: size, of: at[info.Parent]})
		}
	}
	return out
}

// holds reports whether one of the workspaces lies in a copy.
func (rest Rest) holds(used map[string]bool, dir string) bool {
	for root := range used {
		if rest.Trees.Copy(root) == dir {
			return true
		}
	}
	return false
}

// checkpoints are the stores of states of workspaces in which no session has worked.
func (t *Table) checkpoints(used map[string]bool, rest Rest) []Unused {
	names := map[string]bool{}
	for root := range used {
		names[filepath.Base(t.CheckpointDir(root))] = true
	}
	dir := filepath.Dir(t.CheckpointDir(""))
	return unused(dir, "checkpoints of a workspace", func(name string) (bool, time.Time) { return !names[name], rest.Before })
}

// caches are the folders in which commands of a workspace keep what they fetch and build.
func (t *Table) caches(used map[string]bool, rest Rest) []Unused {
	dir := filepath.Join(t.StateDir, "cache")
	return unused(dir, "caches of commands", func(name string) (bool, time.Time) {
		root, err := keep.Read(sandbox.CacheRoot(filepath.Join(dir, name)))
		if err != nil { // of an earlier version
			return rest.Age > 0, time.Now().Add(-rest.Age)
		}
		return !used[string(root)], rest.Before
	})
}

// unused lists the folders in one that go, if they have not changed since a time.
func unused(dir, what string, goes func(name string) (bool, time.Time)) (out []Unused) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		going, before := goes(e.Name())
		if !e.IsDir() || !going {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if size, newest, err := measure(path); err == nil && newest.Before(before) {
			out = append(out, Unused{What: what, Path: path, Size: size})
		}
	}
	return out
}

// measure returns how large all below a folder is, and when it changed last.
func measure(dir string) (size int64, newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			size += info.Size()
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return size, newest, err
}
