package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
)

// special are the permission bits that a restore preserves.
const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// applier executes a journal. All its steps can be repeated.
type applier struct {
	s    *Store
	ctx  context.Context
	v    *vault
	j    *journal
	root *os.Root
	kept map[string]string // path to reason
}

func (a *applier) run(again bool) error {
	root, err := os.OpenRoot(a.s.Root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	a.root = root
	for _, c := range a.j.locked {
		a.quietly(c, a.unlock)
	}
	if again {
		a.sweep()
	}
	for _, c := range slices.Backward(a.j.todo) {
		if !c.vacates() {
			continue
		}
		if err := a.each(c, a.remove); err != nil {
			return err
		}
	}
	for n, c := range a.j.todo {
		if _, kept := a.kept[c.path]; kept || c.to.kind == nothing {
			continue
		}
		if err := a.each(c, func(at spot, c change) error { return a.put(at, n, c) }); err != nil {
			return err
		}
	}
	if err := a.modes(); err != nil {
		return err
	}
	return a.sync()
}

// vacates reports whether a path must be removed before its new content can be created.
func (c change) vacates() bool {
	return c.from.kind != nothing && (c.to.kind == nothing || (c.from.class() == isDir) != (c.to.class() == isDir))
}

// Reasons why a path can't be changed after all.
var (
	errSince    = errors.New(whySince) // neither its old nor its new state
	errParent   = errors.New(whyParent)
	errNoFolder = errors.New(whyNoFolder)
)

// each executes a step on a path. On errors that concern only the path, the path is kept; other errors are
// returned.
func (a *applier) each(c change, do func(spot, change) error) error {
	at, err := a.spot(c.path)
	if err == nil {
		err = do(at, c)
		at.close()
	}
	switch {
	case err == nil, c.to.kind == nothing && (errors.Is(err, errParent) || errors.Is(err, errNoFolder)):
		return nil // without its folder the path is gone
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, errDamaged), errors.Is(err, errAbsent):
		return fmt.Errorf("%q: %w", c.path, err)
	case errors.Is(err, syscall.ENOTEMPTY):
		a.kept[c.path] = whyHolds
	default:
		a.kept[c.path] = err.Error()
	}
	return nil
}

// quietly executes a step on a path, and ignores errors.
func (a *applier) quietly(c change, do func(spot, change) error) {
	if at, err := a.spot(c.path); err == nil {
		_ = do(at, c)
		at.close()
	}
}

// done returns the changed and the kept paths.
func (a *applier) done() Plan {
	p := plan{kept: a.j.kept, todo: map[string]change{}}
	for _, c := range a.j.todo {
		if why, kept := a.kept[c.path]; kept {
			c.why = why
			p.kept = append(p.kept, c)
		} else {
			p.todo[c.path] = c
		}
	}
	return p.public()
}

// spot is a name in an open folder.
type spot struct {
	dir  *os.Root
	name string
}

func (p spot) close() { _ = p.dir.Close() }

// spot opens the folder of a path, never through a symbolic link.
func (a *applier) spot(path string) (spot, error) {
	dir, err := a.root.OpenRoot(".")
	if err != nil || path == "" {
		return spot{dir, "."}, err
	}
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		info, err := dir.Lstat(name)
		if err == nil && !info.IsDir() {
			err = errNoFolder
		}
		var sub *os.Root
		if err == nil {
			sub, err = enter(dir, name, info)
		}
		_ = dir.Close()
		if errors.Is(err, fs.ErrNotExist) {
			err = errParent
		}
		if err != nil {
			return spot{}, err
		}
		dir = sub
	}
	return spot{dir, names[len(names)-1]}, nil
}

// look returns the entry at a spot. It doesn't read folders.
func (a *applier) look(at spot) (entry, fs.FileInfo, error) {
	info, err := at.dir.Lstat(at.name)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, nil, nil
	}
	if err != nil {
		return entry{}, nil, err
	}
	e := entry{name: at.name, perm: perm(info)}
	w := &scan{s: a.s, ctx: a.ctx, to: &dry{}}
	switch info.Mode().Type() {
	case 0:
		e, _ = w.read(at.dir, info, e)
	case fs.ModeDir:
		e.kind = isDir
	case fs.ModeSymlink:
		var f found
		w.link(at.dir, at.name, &f)
		e = f.entry
	default:
		e.kind = isUnknown
	}
	return e, info, w.err
}

// was reports whether a path is in its state before the restore.
func (c change) was(now entry) bool {
	if c.from.class() == isDir && now.kind == isDir {
		return now.perm == c.from.perm || now.perm == c.from.perm|ownerAll // opened up for the restore
	}
	return now.same(c.from)
}

// unlock makes a folder writable.
func (a *applier) unlock(at spot, c change) error {
	info, err := at.dir.Lstat(at.name)
	if err != nil || !info.IsDir() || perm(info) != c.from.perm {
		return err
	}
	return a.chmod(at, info, c.from.perm|ownerAll)
}

func (a *applier) chmod(at spot, info fs.FileInfo, perm uint16) error {
	a.s.step("chmod")
	return at.dir.Chmod(at.name, info.Mode()&special|fs.FileMode(perm))
}

// sweep removes temporary files of an interrupted restore.
func (a *applier) sweep() {
	for n, c := range a.j.todo {
		if c.to.kind != isFile && c.to.kind != isLink {
			continue
		}
		if at, err := a.spot(c.path); err == nil {
			_ = at.dir.Remove(a.j.temp(n))
			at.close()
		}
	}
}

func (a *applier) remove(at spot, c change) error {
	now, _, err := a.look(at)
	switch {
	case err != nil || now.kind == nothing:
		return err
	case c.to.kind != nothing && (now.same(c.to) || c.to.class() == isDir && now.kind == isDir):
		return nil // done before a crash, and more
	case !c.was(now):
		return errSince
	}
	a.s.step("remove")
	return at.dir.Remove(at.name)
}

// put brings a path into its new state, except permissions of folders.
func (a *applier) put(at spot, n int, c change) error {
	now, info, err := a.look(at)
	if err != nil {
		return err
	}
	dir := c.to.class() == isDir
	switch {
	case dir && now.kind == isDir:
		return nil
	case !dir && now.same(c.to):
		return nil
	case c.modeOnly():
		if now.class() != c.from.class() || !now.sameContent(c.from) {
			return errSince
		}
		return a.chmod(at, info, c.to.perm)
	case c.from.kind == nothing || c.vacates():
		info = nil
		if now.kind != nothing {
			return errSince
		}
	case !c.was(now):
		return errSince
	}
	switch c.to.kind {
	case isDir:
		a.s.step("mkdir")
		return at.dir.Mkdir(at.name, fs.FileMode(c.to.perm|ownerAll))
	case isLink:
		return a.link(at, a.j.temp(n), c.to, info)
	}
	return a.write(at, a.j.temp(n), c.to, info)
}

// link creates a symbolic link; info is the file that it replaces, or nil.
func (a *applier) link(at spot, temp string, to entry, info fs.FileInfo) error {
	a.s.step("symlink")
	if info == nil {
		return at.dir.Symlink(to.target, at.name)
	}
	if err := at.dir.Symlink(to.target, temp); err != nil {
		return err
	}
	return a.rename(at, temp, info)
}

// write writes a file; info is the file that it replaces, or nil.
func (a *applier) write(at spot, temp string, to entry, info fs.FileInfo) error {
	a.s.step("create file")
	f, err := at.dir.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	a.s.step("write file")
	err = a.v.writeTo(f, to.sum)
	if err == nil {
		err = f.Chmod(fs.FileMode(to.perm))
	}
	if err == nil && syncEach {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, at.dir.Remove(temp))
	}
	return a.rename(at, temp, info)
}

// rename moves a temporary file to its place.
func (a *applier) rename(at spot, temp string, info fs.FileInfo) error {
	err := a.tryRename(at, temp, info)
	if err != nil {
		err = errors.Join(err, at.dir.Remove(temp))
	}
	return err
}

func (a *applier) tryRename(at spot, temp string, info fs.FileInfo) error {
	a.s.step("rename file")
	now, err := at.dir.Lstat(at.name)
	if info == nil {
		// Unlike a rename, a hard link doesn't replace a file that was created meanwhile.
		if err := at.dir.Link(temp, at.name); err == nil {
			a.s.step("remove temporary file")
			return at.dir.Remove(temp)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return errSince
		}
	} else if err != nil || !os.SameFile(info, now) || keep.StampOf(info) != keep.StampOf(now) {
		return errSince
	}
	return at.dir.Rename(temp, at.name)
}

// modes sets the permissions of folders, the deepest first.
func (a *applier) modes() error {
	dirs := map[string]change{}
	for _, c := range a.j.locked {
		dirs[c.path] = c
	}
	for _, c := range a.j.todo {
		if _, kept := a.kept[c.path]; !kept && c.to.class() == isDir {
			dirs[c.path] = c
		}
	}
	for _, path := range slices.Backward(sorted(dirs)) {
		c := dirs[path]
		if c.from == c.to { // it was opened up, and may be gone
			a.quietly(c, a.mode)
			continue
		}
		if err := a.each(c, a.mode); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) mode(at spot, c change) error {
	info, err := at.dir.Lstat(at.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errSince
	}
	if perm(info) == c.to.perm {
		return nil
	}
	if c.from.class() == isDir && !c.was(entry{kind: isDir, perm: perm(info)}) {
		return errSince
	}
	return a.chmod(at, info, c.to.perm)
}

// sync flushes the workspace to disk before the journal is deleted.
func (a *applier) sync() error {
	f, err := a.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	a.s.step("sync")
	return syncAll(f)
}
