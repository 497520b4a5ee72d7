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

// listing is the files of a work tree, as slash paths relative to its top.
type listing struct {
	have []string // to record in their current state
	gone []string // in the index, but missing
	left []string // not recorded
	// submodules that are checked out, with a slash at the end; their content is not recorded
	submodules []string
}

// paths lists the files of a work tree: those in the index, and new ones that are not ignored.
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
		case strings.HasPrefix(mode, "160000 "): // it is left unchanged
			if _, err := os.Lstat(filepath.Join(top, filepath.FromSlash(path), ".git")); err == nil {
				l.submodules = append(l.submodules, path+"/")
			}
		case !ok:
		case w.file(path) != nil:
			l.have = append(l.have, path)
		default:
			l.gone = append(l.gone, path)
		}
	}
	l.have, l.gone = slices.Compact(l.have), slices.Compact(l.gone) // conflicts are listed up to three times
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

// split splits git output with -z.
func split(out []byte) []string {
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// walker examines files, never through symbolic links.
type walker struct {
	top  string
	dirs map[string]bool // caches whether a path is a folder
}

// file returns the metadata of a path; nil if it is neither a file nor a symbolic link.
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

// record creates a commit of the files at top, with a temporary index that starts as a copy of the one in dir.
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

// scratch creates a git folder as for a worktree: only HEAD and the index are its own.
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

// copyIndex copies an index with git's cached file metadata, so that git need not read all files. It preserves
// the time, since git reads files that changed later.
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
