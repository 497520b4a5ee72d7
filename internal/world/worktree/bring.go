package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Included is the file of a repository that lists, in the format of .gitignore, ignored files that a copy also
// gets.
const Included = ".worktreeinclude"

// Bounds on the unlisted ignored folders that a copy gets. Listed files have mostIncluded times as much.
const (
	mostBrought  = 512 << 20 // bytes
	mostFiles    = 50_000
	mostIncluded = 8 // times as much
	mostBringing = time.Minute
)

// ignored is a file or folder that git ignores, relative to the top of a work tree; a folder ends with a slash.
type ignored struct {
	path   string
	listed bool // in [Included]
	size   int64
	files  int
}

// bring gives a copy files that git ignores in the workspace and tests may need: those listed in [Included], and
// folders within the bounds, such as installed packages and build output. It returns the lists of copied and
// omitted files. The copy gets its own files, so nothing written there reaches the workspace.
func (s *Store) bring(ctx context.Context, t Tree) (lent, missing []string, err error) {
	list, err := s.ignored(ctx, t.repo)
	if err != nil {
		return nil, nil, err
	}
	from, err := os.OpenRoot(t.repo.top)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = to.Close() }()
	within := cmp.Or(s.Within, mostBringing)
	limited, done := context.WithTimeoutCause(ctx, within, fmt.Errorf("copying was over after %s", within))
	defer done()
	for i := range list {
		list[i].measure(limited, from)
	}
	// Listed ones come first, then the smaller ones.
	slices.SortStableFunc(list, func(a, b ignored) int {
		if a.listed != b.listed {
			return map[bool]int{true: -1, false: 1}[a.listed]
		}
		return cmp.Compare(a.size, b.size)
	})
	size, many := map[bool]int64{false: mostBrought, true: mostBrought * mostIncluded}, map[bool]int{false: mostFiles, true: mostFiles * mostIncluded}
	for _, one := range list {
		why := ""
		switch {
		case one.files < 0:
			why = "a repository of its own"
		case !one.listed && !strings.HasSuffix(one.path, "/"):
			continue // a log or a key, for example; a person can list it
		case one.size > size[one.listed] || one.files > many[one.listed]:
			why = fmt.Sprintf("%d MiB in %d files", one.size>>20, one.files)
		default:
			if err := one.copyTo(limited, from, to); err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			missing = append(missing, t.repo.below(one.path)+" ("+why+")")
			continue
		}
		size[one.listed], many[one.listed] = size[one.listed]-one.size, many[one.listed]-one.files
		lent = append(lent, t.repo.below(one.path))
	}
	return lent, missing, ctx.Err()
}

// ignored lists what git ignores in a work tree. A folder that is ignored completely is one entry.
func (s *Store) ignored(ctx context.Context, repo repository) ([]ignored, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--directory", "--no-empty-directory"}
	all, _, err := s.git(ctx, repo.dir, repo.top, nil, append(args, "--exclude-standard")...)
	if err != nil {
		return nil, err
	}
	var list []ignored
	include := filepath.Join(repo.top, Included)
	if info, err := os.Lstat(include); err == nil && info.Mode().IsRegular() {
		listed, _, err := s.git(ctx, repo.dir, repo.top, nil, append(args, "--exclude-from="+include)...)
		if err != nil {
			return nil, err
		}
		for _, name := range split(listed) {
			list = append(list, ignored{path: name, listed: true})
		}
	}
	for _, name := range split(all) {
		if !slices.ContainsFunc(list, func(o ignored) bool { return o.path == name }) {
			list = append(list, ignored{path: name})
		}
	}
	return list, nil
}

// measure determines the size. A negative number of files means a repository of its own.
func (i *ignored) measure(ctx context.Context, from *os.Root) {
	_ = fs.WalkDir(from.FS(), path.Clean(i.path), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll // nothing will be copied
		case err != nil:
			return nil //nolint:nilerr // copying reports the error
		case d.Name() == ".git":
			i.files = -1
			return fs.SkipAll
		case i.files > mostFiles*mostIncluded:
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			i.size += info.Size()
		}
		i.files++
		return nil
	})
}

// copyTo copies it completely or not at all. Links stay links. It reads and writes nothing through links that
// lead outside.
func (i *ignored) copyTo(ctx context.Context, from, to *os.Root) error {
	top := path.Clean(i.path)
	if err := to.MkdirAll(filepath.FromSlash(path.Dir(top)), 0o755); err != nil {
		return err
	}
	_, err := to.Lstat(filepath.FromSlash(top))
	isNew := errors.Is(err, fs.ErrNotExist)
	if err = i.copyTree(ctx, from, to, top); err != nil && isNew {
		err = errors.Join(err, to.RemoveAll(filepath.FromSlash(top)))
	}
	return err
}

func (i *ignored) copyTree(ctx context.Context, from, to *os.Root, top string) error {
	return fs.WalkDir(from.FS(), top, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at := filepath.FromSlash(name)
		switch {
		case d.IsDir():
			err = to.Mkdir(at, info.Mode().Perm()|0o700)
		case info.Mode().Type() == fs.ModeSymlink:
			link, bad := from.Readlink(at)
			if err = bad; err == nil {
				err = to.Symlink(link, at)
			}
		case info.Mode().IsRegular():
			err = copyFile(from, to, at, info.Mode().Perm())
		}
		if errors.Is(err, fs.ErrExist) { // it is tracked, or was listed twice
			err = nil
		}
		return err
	})
}

func copyFile(from, to *os.Root, name string, mode fs.FileMode) (err error) {
	r, err := from.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	if info, err := r.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a file any more", name))
	}
	w, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
