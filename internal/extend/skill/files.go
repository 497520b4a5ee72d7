package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Folder is a place for files for agents by others: skills, each in a folder with a SKILL.md, or markdown files
// that are commands or roles.
type Folder struct {
	Path   string // may be missing; empty means none
	Source string // for people: "project" if it came with the workspace, "user", "plugin NAME"
	// The rest is for skills. Prefix is put before their names, as "NAME:" for a plugin.
	Prefix string
	Only   []string // the subfolders that count; nil means all
	// Root is the value of ${CLAUDE_PLUGIN_ROOT} and ${INSPAN_PLUGIN_ROOT} in instructions. Empty means none.
	Root string
	// Within is a folder around Path that no link leads out of, such as the repository. Empty means Path.
	Within string
}

// place is a folder of skills, or the built-in skills.
type place struct {
	Folder
	builtin bool
}

// open returns the folder as a file system that no link leads out of, and its absolute path.
func (p *place) open() (files fs.FS, path string, end func(), err error) {
	if p.builtin {
		files, err := fs.Sub(builtins, "builtin")
		return files, "", func() {}, err
	}
	path, err = filepath.Abs(p.Path)
	if err != nil {
		return nil, "", nil, err
	}
	bound, dir := path, "."
	if rel, err := filepath.Rel(p.Within, path); p.Within != "" && err == nil && filepath.IsLocal(rel) {
		bound, dir = p.Within, rel
	}
	root, err := keep.OpenFolder(bound)
	if err != nil {
		return nil, "", nil, err
	}
	if _, err := root.Stat(dir); err != nil {
		_ = root.Close()
		return nil, "", nil, err
	}
	return rooted{root, dir}, path, func() { _ = root.Close() }, nil
}

// rooted is a folder in a root whose files open without blocking. No link leads out of the root.
type rooted struct {
	root *os.Root
	dir  string // relative to the root
}

func (r rooted) at(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r rooted) Open(name string) (fs.File, error) {
	f, err := keep.OpenFile(r.root, r.at(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (r rooted) Stat(name string) (fs.FileInfo, error) { return r.root.Stat(r.at(name)) }

func (r rooted) Lstat(name string) (fs.FileInfo, error) { return r.root.Lstat(r.at(name)) }

func (r rooted) ReadLink(name string) (string, error) { return r.root.Readlink(r.at(name)) }

// names is list for a whole folder if only names and kinds of entries are needed.
func names(files fs.FS, most int) (entries []fs.DirEntry, more bool, err error) {
	r, ok := files.(rooted)
	if !ok {
		return list(files, ".", most)
	}
	f, err := keep.OpenNames(filepath.Join(r.root.Name(), r.dir))
	if err != nil {
		return nil, false, err
	}
	return first(f, most)
}

// list returns the first entries of a folder, sorted by name.
func list(files fs.FS, at string, most int) (entries []fs.DirEntry, more bool, err error) {
	f, err := files.Open(at)
	if err != nil {
		return nil, false, err
	}
	return first(f, most)
}

// first is list for an open folder, which it closes.
func first(f fs.File, most int) (entries []fs.DirEntry, more bool, err error) {
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, false, keep.ErrNoFolder
	}
	entries, err = dir.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(entries) > most; more {
		entries = entries[:most]
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// listed is a file in a folder.
type listed struct {
	path string // with slashes, relative to that folder
	size int64
}

// walk lists the files of a folder and its subfolders, up to a depth and a number of entries; more says that
// some were left out. Links and names that begin with a dot are ignored.
func walk(files fs.FS, depth, most int) (out []listed, more bool, err error) {
	var in func(dir string, depth int) error
	in = func(dir string, depth int) error {
		entries, cut, err := list(files, dir, most)
		most -= len(entries)
		more = more || cut
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			switch info, failed := e.Info(); {
			case failed != nil || strings.HasPrefix(e.Name(), "."):
			case e.IsDir() && depth > 1:
				err = errors.Join(err, in(at, depth-1))
			case info.Mode().IsRegular():
				out = append(out, listed{at, info.Size()})
			}
		}
		return err
	}
	err = in(".", depth)
	slices.SortStableFunc(out, func(a, b listed) int { return strings.Compare(a.path, b.path) })
	return out, more, err
}

// readAll reads a file of at most so many bytes.
func readAll(files fs.FS, at string, most int) ([]byte, fs.FileInfo, error) {
	f, err := files.Open(at)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := usable(f, "it", most)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil {
		err = fits(data, most)
	}
	return data, info, err
}

// usable returns an error for anything but a file of at most so many bytes. The error uses name.
func usable(f fs.File, name string, most int) (fs.FileInfo, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a file", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", name)
	case info.Size() > int64(most):
		return nil, fmt.Errorf("%s has %s, more than %s", name, text.Count(int(info.Size()), "byte"), text.Thousands(most))
	}
	return info, nil
}

// fits returns an error for more than so many bytes.
func fits(data []byte, most int) error {
	if len(data) <= most {
		return nil
	}
	return fmt.Errorf("it has more than %s", text.Count(most, "byte"))
}

// shelf holds what was found under each name while folders are searched, and the warnings about the rest. Names
// are case-insensitive.
type shelf struct {
	kind     string // the word for its things: "skill"
	first    map[string]spot
	warnings []string
}

// spot is where something was found.
type spot struct {
	path string // empty if it is built in
	info fs.FileInfo
}

func (s *shelf) warn(format string, args ...any) {
	s.warnings = append(s.warnings, text.Line(fmt.Sprintf(format, args...)))
}

// put reports whether a name was still free, and takes it. It warns about a thing that hides another, unless both
// are the same file or the other is built in.
func (s *shelf) put(name string, at spot) bool {
	key := strings.ToLower(name)
	first, taken := s.first[key]
	switch {
	case !taken:
		if s.first == nil {
			s.first = map[string]spot{}
		}
		s.first[key] = at
	case at.path != "" && !os.SameFile(first.info, at.info):
		s.warn("the %s %s in %s is hidden by that in %s", s.kind, name, at.path, first.path)
	}
	return !taken
}
