package sensitive

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Sensitive places that don't exist yet can't be closed by a mount without leaving an empty file in the
// workspace. So they are removed when they appear: the well-known ones at the top at once, all others when the
// command and its descendants have ended.
//
// In between a program outside of the box can find them. Then it does nothing worse than for a person who had
// created them, and the box can't start such a program. New repositories are hidden, or files in them that name
// programs are removed at once: see new_repositories_linux.go of the sandbox. A sensitive place that a person
// creates in the workspace while a box is open is also removed: it is preserved elsewhere and reported.

// OpenFolders opens the folders that a box writes in and that are swept.
func (w *Workspace) OpenFolders(box tool.Box) []paths.Folder {
	var out []paths.Folder
	for _, path := range append(w.Folders(), w.GitWritable(box)...) {
		if folder, err := paths.OpenFolder(path); err == nil {
			out = append(out, folder)
		}
	}
	return out
}

// Intruder is a place to remove, with its identity when it was judged.
type Intruder struct {
	Place
	Is paths.Identity
}

// Appeared lists the current sensitive places that did not exist or were others before. Theirs reports places
// that were put there from outside.
func (w *Workspace) Appeared(box tool.Box, before []paths.Identity, held []paths.Folder, theirs func(string) bool) []Intruder {
	found, _ := w.Find(false)
	old := make(map[paths.Identity]bool)
	for _, s := range before {
		old[s] = true
	}
	worktrees, made := w.NewWorktrees(box), w.newRepositories(found, before)
	list := slices.DeleteFunc(w.Closed(box, found), func(s Place) bool {
		return slices.ContainsFunc(made, func(git string) bool { return ofRepository(git, s) })
	})
	for _, git := range made {
		list = append(list, Unsafe(git)...)
	}
	var out []Intruder
	for _, s := range list {
		is, ok := paths.Identify(held, s.Path)
		if !ok || old[is] || worktrees[s.Path] || theirs(s.Path) {
			continue
		}
		if s.Via != "" { // if that is new, it is removed, and this is unchanged
			if via, ok := paths.Identify(held, s.Via); !ok || !old[via] {
				continue
			}
		}
		out = append(out, Intruder{Place: s, Is: is})
	}
	return out
}

// ChangedOutside reports whether a place can only have been changed from outside of the box, for example by an
// editor that replaces the file: it existed when the box was created, so it was closed, and no folder on the
// way to it could be exchanged.
func (w *Workspace) ChangedOutside(path string, before []paths.Identity) bool {
	return slices.Contains(w.Folders(), filepath.Dir(path)) && slices.ContainsFunc(before, func(s paths.Identity) bool { return s.Path == path && !s.Link })
}

// TakeAway moves a place out of the workspace, or renames it if that fails, and returns a message. A place that
// changed since it was judged is left alone.
func (w *Workspace) TakeAway(f Intruder, held []paths.Folder) string {
	folder, err := paths.ParentOf(held, f.Path)
	if err != nil {
		return "could not take away " + f.Path + ", although it " + w.why(f.Place) + ": " + err.Error()
	}
	defer func() { _ = unix.Close(folder) }()
	if is, ok := paths.IdentifyIn(folder, f.Path); !ok || is != f.Is {
		return "could not take away " + f.Path + ", although it " + w.why(f.Place) + ": it keeps changing"
	}
	name := filepath.Base(f.Path)
	if f.Blind {
		_ = unix.Fchmodat(folder, name, 0o700, unix.AT_SYMLINK_NOFOLLOW) // otherwise it can't be moved
	}
	if kept, ok := w.quarantine(folder, name); ok {
		return "took away " + f.Path + ", as it " + w.why(f.Place) + "; it is kept as " + kept
	}
	to := name + ".refused-" + rand.Text()[:8]
	if err := unix.Renameat2(folder, name, folder, to, unix.RENAME_NOREPLACE); err != nil {
		return "could not take away " + f.Path + ", although it " + w.why(f.Place) + ": " + err.Error()
	}
	return "renamed " + f.Path + ", as it " + w.why(f.Place) + ", to " + to
}

// quarantine moves a name of an open folder to a folder that is not in use.
func (w *Workspace) quarantine(folder int, name string) (kept string, ok bool) {
	if w.State == "" {
		return "", false
	}
	dir := filepath.Join(w.State, "quarantine", rand.Text())
	if os.MkdirAll(dir, 0o700) != nil {
		return "", false
	}
	kept = filepath.Join(dir, name)
	if unix.Renameat2(folder, name, unix.AT_FDCWD, kept, unix.RENAME_NOREPLACE) != nil {
		_ = os.Remove(dir)
		return "", false
	}
	return kept, true
}

func (w *Workspace) why(s Place) string {
	if s.Why != "" {
		return s.Why
	}
	if why := w.Places.Of(s.Path).Why; why != "" {
		return why
	}
	return "decides what others run"
}

// Judge judges one name in the workspace as the scanner does.
func (w *Workspace) Judge(path string) (Place, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return Place{}, false
	}
	guard := w.Places.Of(path).Guard
	if info.IsDir() {
		guard = w.Places.Of(path + "/x").Guard
	}
	return Place{Path: path, Guard: guard}, guard == places.Frozen || guard == places.Guarded
}

// TakeAwayAll removes all intruders and returns messages, a single one for many places with the same name.
func (w *Workspace) TakeAwayAll(list []Intruder, held []paths.Folder) []string {
	var out []string
	count := make(map[string]int)
	last := make(map[string]string)
	for _, f := range list {
		text := w.TakeAway(f, held)
		name := filepath.Base(f.Path)
		if count[name]++; count[name] <= mostAlike {
			out = append(out, text)
			continue
		}
		last[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		out = append(out, fmt.Sprintf("so with %d more places named %s; the last: %s", count[name]-mostAlike, name, last[name]))
	}
	return out
}

// mostAlike bounds the places of one name that are reported one by one.
const mostAlike = 3
