package tools

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// maxIgnoreFile is how much of an ignore file is read, in bytes.
const maxIgnoreFile = 1 << 20

// A tree walks directories as git sees them: without .git and ignored files. Symbolic links are entries and
// never followed.
type tree struct {
	files tool.Files
	top   string // directory the ignore rules start from
}

// folder is one directory of a tree.
type folder struct {
	path    string
	rules   *places.Ignores // of the directories above, and once listed its own
	entries []fs.DirEntry   // sorted by name, without ignored ones
}

// openTree returns the tree that contains dir and the directory itself. Rules count from the top of the git
// repository, or else of the workspace. It does not matter whether dir itself is ignored: the caller asked for
// it.
func openTree(ctx context.Context, c *tool.Call, dir string) (tree, folder, error) {
	t := tree{files: c.Env.Files, top: topOf(ctx, c, dir)}
	rules := (*places.Ignores)(nil).Add("", t.read(ctx, filepath.Join(t.top, ".git", "info", "exclude")))
	var above []string
	for d := dir; d != t.top && d != filepath.Dir(d); d = filepath.Dir(d) {
		above = append(above, filepath.Dir(d))
	}
	slices.Reverse(above)
	for _, d := range above {
		rules = rules.Add(t.rel(d), t.read(ctx, filepath.Join(d, ".gitignore")))
	}
	f, err := t.list(ctx, dir, rules)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(ctx, c, dir, err)
	}
	return t, f, err
}

// topOf returns the directory that ignore rules of dir start from.
func topOf(ctx context.Context, c *tool.Call, dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if f, err := c.Env.Files.Open(ctx, filepath.Join(d, ".git")); err == nil {
			f.Close()
			return d
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	if dir == c.Env.Root || strings.HasPrefix(dir, c.Env.Root+string(filepath.Separator)) {
		return c.Env.Root
	}
	return dir
}

// Below calls visit for each regular file below a resolved folder that file tools see, in the order of their
// paths, and stops at its error. Ignored files are omitted. Unread is the number of unreadable folders below
// it.
func Below(ctx context.Context, c *tool.Call, dir string, visit func(path string) error) (unread int, err error) {
	t, top, err := openTree(ctx, c, dir)
	if err != nil {
		return 0, err
	}
	return t.walk(ctx, top, func(path string, e fs.DirEntry) error {
		if !e.Type().IsRegular() {
			return nil
		}
		return visit(path)
	})
}

// read returns an ignore file, or nothing: an unreadable one ignores nothing, as in git.
func (t tree) read(ctx context.Context, path string) []byte {
	f, err := t.files.Open(ctx, path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	return data
}

// rel returns a path in the form of ignore rules.
func (t tree) rel(path string) string {
	rel, err := filepath.Rel(t.top, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// list reads a directory. Rules are those of the directories above.
func (t tree) list(ctx context.Context, dir string, rules *places.Ignores) (folder, error) {
	entries, err := readDir(ctx, t.files, dir)
	if err != nil {
		return folder{}, err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		rules = rules.Add(t.rel(dir), t.read(ctx, filepath.Join(dir, ".gitignore")))
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == ".git" || rules.Ignored(t.rel(filepath.Join(dir, e.Name())), e.IsDir())
	})
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return folder{path: dir, rules: rules, entries: entries}, nil
}

// walk calls visit for every file below f, in order, and stops at its error. An unreadable directory is
// skipped, and counted.
func (t tree) walk(ctx context.Context, f folder, visit func(path string, e fs.DirEntry) error) (unread int, err error) {
	for _, e := range f.entries {
		if err := ctx.Err(); err != nil {
			return unread, err
		}
		path := filepath.Join(f.path, e.Name())
		if !e.IsDir() {
			if err := visit(path, e); err != nil {
				return unread, err
			}
			continue
		}
		sub, err := t.list(ctx, path, f.rules)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			unread++
			continue
		}
		if err != nil {
			return unread, err
		}
		n, err := t.walk(ctx, sub, visit)
		unread += n
		if err != nil {
			return unread, err
		}
	}
	return unread, nil
}
