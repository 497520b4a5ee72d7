package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/gitcopies"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// overlays reports whether boxes use copies of git directories.
func (b *boxes) overlays() bool {
	return b.engine == nil && b.o.Pool != nil && b.o.Pool.overlays()
}

// flattened reports whether a box could not be built because of its copies: not every file system can be below
// an overlay. From then on git directories are closed in boxes of this workspace.
func (k *supervised) flattened(err error) bool {
	if len(k.order.Copies) == 0 || !errors.Is(err, tool.ErrNoBox) || !strings.Contains(err.Error(), walls.OverlayStep) || k.boxes.flat.Swap(true) {
		return false
	}
	k.order, k.outside, k.copies, k.undo = protocol.Order{}, nil, nil, nil
	return true
}

// gitCopies lists the git directories that a box gets copies of: that of the workspace's repository, and those
// of repositories in the workspace.
func (b *boxes) gitCopies(box tool.Box, found []sensitive.Place) []walls.Copy {
	if !box.Git || !b.overlays() {
		return nil
	}
	list := sensitive.GitDirs(b.Root)
	for _, s := range found {
		if filepath.Base(s.Path) == ".git" && len(list) < mostCopies {
			list = append(list, s.Path)
		}
	}
	var out []walls.Copy
	for _, dir := range list {
		info, err := os.Lstat(dir)
		inner := slices.ContainsFunc(list, func(other string) bool { return other != dir && text.Inside(other, dir) })
		if err == nil && info.IsDir() && !inner && !slices.Contains(out, walls.Copy{Path: dir}) {
			out = append(out, walls.Copy{Path: dir})
		}
	}
	return out
}

// mostCopies bounds the copied repositories of a box.
const mostCopies = 8

// copyGit creates the overlay folders for git directories, and records their current state.
func (k *supervised) copyGit() error {
	for i, c := range k.order.Copies {
		dir, err := k.boxes.temp.MakeOverlay(c.Path)
		if err != nil {
			return err
		}
		k.undo = append(k.undo, func() { _ = keep.RemoveAll(dir) })
		k.order.Copies[i].Dir = dir
		h, err := gitcopies.Open(c.Path, k.order.Root, dir, k.boxes.gitKinds())
		if err != nil {
			return err
		}
		k.copies = append(k.copies, h)
		k.undo = append(k.undo, h.Close)
	}
	return nil
}

// takeOverGit takes over the box's changes in its copies, and reports those that it rejects.
func (k *supervised) takeOverGit() {
	if len(k.copies) == 0 {
		return
	}
	k.boxes.giving.Lock() // one at a time in a session
	defer k.boxes.giving.Unlock()
	for _, h := range k.copies {
		for _, text := range h.TakeOver() {
			k.outside.refuse(text)
		}
	}
}
