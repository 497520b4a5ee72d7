package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// listing are the files of a work tree, as paths with slashes below its top.
type listing struct {
	have []string // to be recorded as they are now
	gone []string // that the index knows and that are not there any more
	left []string // that are not recorded
}

// paths lists what a work tree has: what its index knows, and what is new and not
// ignored.
func (s *Store) paths(ctx context.Context, dir, top string) (listing, error) {
	known, _, err := s.git(ctx, dir, top, nil, "ls-files", "-z", "--stage")
	if err != nil {
		return listing{}, err
	}
	fresh, _, err := s.git(ctx, dir, top, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return listing{}, err
	}
	var l listing
	w := walker{top: top, dirs: map[string]bool{".": true}}
	for _, entry := range split(known) {
		mode, path, ok := strings.Cut(entry, "\t")
		switch {
		case !ok || strings.HasPrefix(mode, "160000 "): // a submodule stays what it is
		case w.file(path) != nil:
			l.have = append(l.have, path)
		default:
			l.gone = append(l.gone, path)
		}
	}
	l.have, l.gone = slices.Compact(l.have), slices.Compact(l.gone) // conflicts stand there up to three times
	for _, path := range split(fresh) {
		switch info := w.file(path); {
		case strings.HasSuffix(path, "/") || info == nil || info.Mode().IsRegular() && info.Size() > MaxFile:
			l.left = append(l.left, path)
		default:
			l.have = append(l.have, path)
		}
	}
	return l, nil
}

// split takes apart what git writes with -z.
func split(out []byte) []string {
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// walker looks at files and never through symbolic links.
type walker struct {
	top  string
	dirs map[string]bool // whether a path is a folder
}

// file is what is at a path; nil if that is neither a file nor a symbolic link.
func (w walker) file(path string) fs.FileInfo {
	path = filepath.FromSlash(path)
	if !w.dir(filepath.Dir(path)) {
		return nil
	}
	info, err := os.Lstat(filepath.Join(w.top, path))
	if err != nil || !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink {
		return nil
	}
	return info
}

func (w walker) dir(path string) bool {
	is, looked := w.dirs[path]
	if !looked {
		info, err := os.Lstat(filepath.Join(w.top, path))
		is = err == nil && info.IsDir() && w.dir(filepath.Dir(path))
		w.dirs[path] = is
	}
	return is
}

// record makes a commit of the files at top, in an index of its own that begins as
// the one in dir.
func (s *Store) record(ctx context.Context, repo repository, dir, top string, l listing) (commit string, err error) {
	parent, _, err := s.git(ctx, dir, top, nil, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	args := []string{"commit-tree", "-m", "The workspace"}
	if err == nil {
		args = append(args, "-p", strings.TrimSpace(string(parent)))
	}
	own, err := s.scratch(repo, dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	for _, step := range []struct {
		paths []string
		args  []string
	}{
		{l.gone, []string{"update-index", "--force-remove", "-z", "--stdin"}},
		{l.have, []string{"update-index", "--add", "--replace", "-z", "--stdin"}},
	} {
		if len(step.paths) == 0 {
			continue
		}
		if _, _, err := s.git(ctx, own, top, []byte(strings.Join(step.paths, "\x00")+"\x00"), step.args...); err != nil {
			return "", err
		}
	}
	tree, _, err := s.git(ctx, own, top, nil, "write-tree")
	if err != nil {
		return "", err
	}
	out, _, err := s.git(ctx, own, top, nil, append(args, strings.TrimSpace(string(tree)))...)
	return strings.TrimSpace(string(out)), err
}

// scratch makes a folder that git takes for one of a worktree: all but HEAD and the
// index is the repository's.
func (s *Store) scratch(repo repository, dir string) (string, error) {
	top, err := s.folder()
	if err != nil {
		return "", err
	}
	own, err := os.MkdirTemp(top, ".index-")
	if err != nil {
		return "", err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(own, "HEAD"), []byte("ref: refs/heads/inspan\n"), 0o600),
		os.WriteFile(filepath.Join(own, "commondir"), []byte(repo.common+"\n"), 0o600),
		copyIndex(dir, own),
	)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(own))
	}
	return own, nil
}

// copyIndex copies an index with what git knows of the files, so that it need not
// read all of them. It keeps the time: what was changed later than that, git reads.
func copyIndex(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "index" && !strings.HasPrefix(e.Name(), "sharedindex.") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := keep.Read(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		path := filepath.Join(to, e.Name())
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			return err
		}
	}
	return nil
}
