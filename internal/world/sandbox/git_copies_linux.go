package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/world/sandbox/gitcopies"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/sensitive"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// overlays reports whether boxes write copies of git directories.
func (b *boxes) overlays() bool {
	return b.engine == nil && b.o.Pool != nil && b.o.Pool.overlays()
}

// flattened reports whether a box could not be built for its copies: not every file system can be
// below an overlay. From then on the boxes of this workspace find git directories closed.
func (k *supervised) flattened(err error) bool {
	if len(k.order.Copies) == 0 || !errors.Is(err, tool.ErrNoBox) || !strings.Contains(err.Error(), walls.OverlayStep) || k.boxes.flat.Swap(true) {
		return false
	}
	k.order, k.outside, k.copies, k.undo = protocol.Order{}, nil, nil, nil
	return true
}

// gitCopies lists the git directories that a box is to have copies of: that of the repository
// which the workspace is in, and those of repositories in the workspace.
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
		inner := slices.ContainsFunc(list, func(other string) bool { return other != dir && tool.Inside(other, dir) })
		if err == nil && info.IsDir() && !inner && !slices.Contains(out, walls.Copy{Path: dir}) {
			out = append(out, walls.Copy{Path: dir})
		}
	}
	return out
}

// mostCopies is how many repositories a box has copies of.
const mostCopies = 8

// copyGit makes the folders for what a box changes in git directories, and holds these as they are.
func (k *supervised) copyGit() error {
	for i, c := range k.order.Copies {
		dir, err := k.boxes.temp.MakeOverlay(c.Path)
		if err != nil {
			return err
		}
		k.undo = append(k.undo, func() { _ = paths.RemoveAll(dir) })
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

// takeOverGit takes over what the box has left in its copies, and tells what not.
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
