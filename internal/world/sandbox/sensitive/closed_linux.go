package sensitive

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Closed lists the places in the workspace that can't be changed.
func (w *Workspace) Closed(box tool.Box, found []Place) []Place {
	git := filepath.Join(w.Root, ".git")
	var out []Place
	for _, s := range found {
		if s.Guard != places.Frozen && s.Guard != places.Guarded && !s.Blind || s.Guard == places.Guarded && paths.InsideAny(box.Write, s.Path) {
			continue
		}
		if info, err := os.Lstat(s.Path); box.Git && !w.copied() && s.Path == git && err == nil && info.IsDir() {
			out = append(out, gitInsides(git)...)
			continue
		}
		out = append(out, s)
		if s.Bare {
			for _, inner := range gitInsides(filepath.Dir(s.Path)) {
				inner.Via = s.Path
				out = append(out, inner)
			}
		}
	}
	out = append(out, w.gitNamed(git)...)
	outside, _ := w.gitOutside(box)
	out = append(out, outside...)
	for _, dir := range GitDirsElsewhere(w.Root) {
		if text.Inside(w.Root, dir) {
			out = append(out, Place{Path: dir, Guard: places.Frozen})
		}
	}
	return out
}

// PinnedFolders lists the folders that must not be renamed, since closed places in them would move with them:
// the repository if its inside is open, and the folders above nested ones.
func (w *Workspace) PinnedFolders(box tool.Box, found []Place) []string {
	_, out := w.gitOutside(box)
	git := filepath.Join(w.Root, ".git")
	if info, err := os.Lstat(git); box.Git && !w.copied() && err == nil && info.IsDir() {
		out = append(out, git)
		for _, s := range gitInsides(git) {
			out = w.FoldersAbove(out, s.Path)
		}
	}
	for _, s := range append(w.gitNamed(git), found...) {
		// A place that is secret only by its location would no longer be secret elsewhere.
		if s.Guard == places.Frozen || s.Guard == places.Guarded && s.Via != "" || s.Guard == places.Secret && !s.Named {
			out = w.FoldersAbove(out, s.Path)
		}
	}
	return out
}

// FoldersAbove adds the folders between the workspace, or one of its further folders, and a path.
func (w *Workspace) FoldersAbove(list []string, path string) []string {
	tops := w.Folders()
	for dir := filepath.Dir(path); !slices.Contains(tops, dir) && paths.InsideAny(tops, dir); dir = filepath.Dir(dir) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}
