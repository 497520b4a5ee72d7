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
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
)

// Unused is something that was kept for sessions, and that none needs once the stale ones are gone.
type Unused struct {
	What string // what it is, for people
	Path string
	Size int64 // bytes

	of string // workspace of a worktree
}

// Rest selects the things to look for besides sessions.
type Rest struct {
	Trees  *worktree.Store // copies of subagents; nil if there are none
	Age    time.Duration   // of the retention: a cache that does not name its workspace is removed at this age; 0 means never
	Before time.Time       // later changes are kept
}

// Unused lists what can be removed with stale sessions: the worktrees of their subagents, and checkpoints and
// caches of workspaces in which no other session has worked. It leaves out anything whose owner is unclear.
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

// roots returns the workspaces of the sessions that stay. Known is false if one of them may have worked
// anywhere.
func roots(list []store.Info, goes map[string]bool) (used map[string]bool, known bool) {
	used = map[string]bool{}
	for _, info := range list {
		if goes[kin.Lead(info.ID)] {
			continue
		}
		if info.Root == "" && info.Damage != nil {
			return nil, false
		}
		used[info.Root] = true
	}
	return used, true
}

// Discard deletes what is still unused after the stale sessions are gone, and calls told for each.
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
		default: // something has begun to use it
			continue
		}
		if err = errors.Join(err, bad); bad == nil {
			told(u)
		}
	}
	return err
}

// discard deletes a folder, after renaming it so that no one finds it meanwhile.
func discard(path string) error {
	aside := filepath.Join(filepath.Dir(path), ".old-"+filepath.Base(path))
	if err := errors.Join(os.RemoveAll(aside), os.Rename(path, aside)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(aside), os.RemoveAll(sandbox.CacheRoot(path)))
}

// worktrees returns the copies in which subagents of stale sessions worked. A copy with unmerged changes stays.
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
		of := original(info, at)
		if !goes[kin.Lead(info.ID)] || of == "" || dir == "" || seen[dir] || rest.holds(used, dir) {
			continue
		}
		seen[dir] = true
		if unmerged, err := rest.Trees.Unmerged(ctx, of, dir); err != nil || unmerged {
			continue
		}
		if size, newest, err := measure(dir); err == nil && newest.Before(rest.Before) {
			out = append(out, Unused{What: "worktree of a session", Path: dir, Size: size, of: of})
		}
	}
	return out
}

// holds reports whether one of the workspaces is in a copy.
func (rest Rest) holds(used map[string]bool, dir string) bool {
	for root := range used {
		if rest.Trees.Copy(root) == dir {
			return true
		}
	}
	return false
}

// checkpoints returns the checkpoint stores of workspaces without sessions.
func (t *Table) checkpoints(used map[string]bool, rest Rest) []Unused {
	names := map[string]bool{}
	for root := range used {
		names[filepath.Base(t.CheckpointDir(root))] = true
	}
	dir := filepath.Dir(t.CheckpointDir(""))
	return unused(dir, "checkpoints of a workspace", func(name string) (bool, time.Time) { return !names[name], rest.Before })
}

// caches returns the folders in which commands of a workspace keep fetched and built files.
func (t *Table) caches(used map[string]bool, rest Rest) []Unused {
	dir := filepath.Join(t.StateDir, "cache")
	return unused(dir, "caches of commands", func(name string) (bool, time.Time) {
		root, err := keep.Read(sandbox.CacheRoot(filepath.Join(dir, name)))
		if err != nil { // from an earlier version
			return rest.Age > 0, time.Now().Add(-rest.Age)
		}
		return !used[string(root)], rest.Before
	})
}

// unused lists the folders in dir that goes accepts, unless they have changed since a time.
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

// measure returns the size of everything below a folder, and its latest change.
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
