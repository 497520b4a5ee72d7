package sandbox

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/tool"
)

// Sensitive places that don't exist yet can't be closed by a mount without
// leaving an empty file in the workspace. So they are taken away when they
// appear: the well-known ones at the top at once, all others when the command
// and its descendants have ended.
//
// In between a program outside of the box can meet them. What it then does is
// no worse than what it would do for a person who typed the same, and the box
// can't start such a program; but a prompt of a shell that asks git for the
// state of a nested repository can come in time. Also taken away is what a
// person makes in the workspace while a box is open: it is kept and named.

// appeared lists the sensitive places that are there now and were not, or were
// others.
func (b *boxes) appeared(box tool.Box, before []seen) []spot {
	found, err := b.scanner(b.root).scan()
	if err != nil {
		return nil
	}
	old := make(map[seen]bool)
	for _, s := range before {
		old[s] = true
	}
	var out []spot
	for _, s := range b.closedPlaces(box, found) {
		if st, ok := stampOf(s.Path); ok && !old[seen{s.Path, st.dev, st.ino}] && !b.others(s.Path, before) {
			out = append(out, s)
		}
	}
	return out
}

// others reports whether a place can only have been changed from outside of the
// box, as by an editor that puts a new file in the place of an old one: it was
// there when the box was made, so it was closed, and no folder on the way to it
// could be exchanged.
func (b *boxes) others(path string, before []seen) bool {
	return filepath.Dir(path) == b.root && slices.ContainsFunc(before, func(s seen) bool { return s.Path == path })
}

// takeAway moves a place out of the workspace, or renames it if that can't be
// done, and says so.
func (b *boxes) takeAway(s spot) string {
	why := b.o.Map.Of(s.Path).Why
	if why == "" {
		why = "decides what others run"
	}
	to := s.Path + ".refused-" + rand.Text()[:8]
	if b.o.State != "" {
		dir := filepath.Join(b.o.State, "quarantine", rand.Text())
		if os.MkdirAll(dir, 0o700) == nil {
			kept := filepath.Join(dir, filepath.Base(s.Path))
			if os.Rename(s.Path, kept) == nil {
				return "took away " + s.Path + ", as it " + why + "; it is kept as " + kept
			}
			_ = os.Remove(dir)
		}
	}
	if err := os.Rename(s.Path, to); err != nil {
		return "could not take away " + s.Path + ", although it " + why + ": " + err.Error()
	}
	return "renamed " + s.Path + ", as it " + why + ", to " + filepath.Base(to)
}

// spotAt judges one name in the workspace as the scanner does.
func (b *boxes) spotAt(path string) (spot, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return spot{}, false
	}
	guard := b.o.Map.Of(path).Guard
	if info.IsDir() {
		guard = b.o.Map.Of(path + "/x").Guard
	}
	return spot{path, guard}, guard == places.Frozen || guard == places.Guarded
}
