package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// closedError is the reason why a place is closed. It is an [fs.ErrPermission].
type closedError struct{ place places.Place }

func (e closedError) Error() string {
	way := ""
	if e.place.Named {
		way = "; a call that names the file itself can be approved"
	}
	return "tools may not touch this: it " + e.place.Why + way
}
func (e closedError) Unwrap() error { return fs.ErrPermission }

// mayOpen judges an open file by its location and content after it was opened, so that concurrent changes can't
// circumvent it.
func (f *files) mayOpen(file *os.File, path string) (fs.File, error) {
	if !Guards(f.guard) {
		return file, nil
	}
	var read []byte
	m := f.guard
	m.Look = func(at string) (content places.Content) {
		content, _, read = f.look.lookInto(file, at)
		return content
	}
	at := f.temp.inSession(paths.Location(file, path))
	place := f.place(m, at)
	switch {
	case place.Named && slices.Contains(slices.Concat(f.pass.Read, f.pass.Write), at):
		return file, nil
	case place.Guard == places.Secret:
		return nil, &fs.PathError{Op: "open", Path: path, Err: closedError{place}}
	case read != nil:
		return readFile{file, bytes.NewReader(read)}, nil
	}
	return file, nil
}

// place returns how these files treat a path.
func (f *files) place(m places.Map, path string) places.Place {
	if f.pass.All {
		m = m.Unguarded()
	}
	return m.Of(path)
}

// mayChange judges a path before it is written or removed.
func (f *files) mayChange(path string) error {
	path = f.temp.inSession(path) // the path that the call was judged by
	place := f.place(f.guard, path)
	if place.Guard != places.Secret && place.Guard != places.Frozen || place.Named && slices.Contains(f.pass.Write, path) {
		return nil
	}
	return &fs.PathError{Op: "change", Path: path, Err: closedError{place}}
}

// isOwn reports whether a file about to be written is the session's own: new, or its own before.
func (f *files) isOwn(path string) bool {
	content := f.Look(path)
	return content == places.ContentNone || content == places.ContentOwn
}

// mayRemove judges everything in a folder.
func (f *files) mayRemove(path string) error {
	return filepath.WalkDir(path, func(below string, _ fs.DirEntry, err error) error {
		if err != nil || strings.Contains(below, "/node_modules/") {
			return nil //nolint:nilerr // an unreadable folder can't be removed either
		}
		return f.mayChange(below)
	})
}

// heldPath is a path whose folder was judged and can't be exchanged any more.
type heldPath struct {
	path   string // to use instead of the true path
	folder *os.File
	true   string // of the folder
}

// holdFolder opens the folder of a path, judges the path by the folder's location, and returns a path through
// the open folder, if the system has such paths. Without a map nothing is held.
func (f *files) holdFolder(path string, c tool.Change) (heldPath, error) {
	if !Guards(f.guard) && !c.Exact {
		return heldPath{path: path}, nil
	}
	if err := f.mayChange(path); err != nil {
		return heldPath{}, err
	}
	dir := filepath.Dir(path)
	if !c.Remove && (c.IfDigest == "" || c.IfDigest == tool.NoFile) {
		if err := makeDirs(dir); err != nil {
			return heldPath{}, err
		}
	}
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// Not looked up again: it could be a link by now.
		if c.IfDigest != "" {
			err = tool.ErrChanged
		}
		return heldPath{}, &fs.PathError{Op: "change", Path: path, Err: keep.Bare(err)}
	}
	if err != nil {
		return heldPath{}, err
	}
	h := heldPath{path: paths.PathIn(folder, filepath.Base(path), path), folder: folder, true: paths.Location(folder, dir)}
	if c.Exact && h.true != dir {
		return heldPath{}, errors.Join(moved(path), folder.Close())
	}
	err = f.mayChange(filepath.Join(h.true, filepath.Base(path)))
	if err == nil && c.Remove {
		err = f.mayRemove(filepath.Join(h.true, filepath.Base(path)))
	}
	if err != nil {
		return heldPath{}, errors.Join(err, folder.Close())
	}
	return h, nil
}

// moved returns the error that a path leads elsewhere than when it was judged.
func moved(path string) error {
	return &fs.PathError{Op: "change", Path: path, Err: fmt.Errorf("a link leads elsewhere by now: %w", tool.ErrChanged)}
}

func (h heldPath) release() {
	if h.folder != nil {
		h.folder.Close()
	}
}

// truePath puts the true path into an error.
func (h heldPath) truePath(err error) error {
	if err == nil || h.folder == nil {
		return err
	}
	from := filepath.Dir(h.path)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		pe.Path = strings.Replace(pe.Path, from, h.true, 1)
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		le.Old, le.New = strings.Replace(le.Old, from, h.true, 1), strings.Replace(le.New, from, h.true, 1)
	}
	return err
}

// Guards reports whether a map was configured.
func Guards(m places.Map) bool {
	return m.Root != "" || m.Home != "" || m.Settings != "" || len(m.State)+len(m.Apart) > 0 || len(m.Open) > 0
}
