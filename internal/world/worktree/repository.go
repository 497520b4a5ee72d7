package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/shell"
)

// repository is the location of a repository's parts, for a workspace; see gitrepository-layout(5).
type repository struct {
	top    string // of the work tree
	prefix string // the workspace relative to top; "." if it is the same
	dir    string // of this work tree: contains its index
	common string // shared with other work trees: settings, objects
}

// open finds the repository of a workspace and verifies that its settings are harmless.
func open(root string) (repository, error) {
	top := filepath.Clean(root)
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		if top == filepath.Dir(top) {
			return repository{}, fmt.Errorf("%w: %s", ErrNoRepository, root)
		}
		top = filepath.Dir(top)
	}
	r := repository{top: top, dir: filepath.Join(top, ".git")}
	var err error
	if r.prefix, err = filepath.Rel(top, filepath.Clean(root)); err != nil {
		return r, err
	}
	if text, err := readLine(r.dir); err == nil {
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if !ok {
			return r, fmt.Errorf("%s is not understood", r.dir)
		}
		r.dir = absolute(top, to)
	}
	r.common = r.dir
	switch text, err := readLine(filepath.Join(r.dir, "commondir")); {
	case err == nil:
		r.common = absolute(r.dir, text)
	case !errors.Is(err, fs.ErrNotExist):
		return r, err
	}
	return r, r.inert()
}

// Inert returns nil if no setting of a folder's repository makes git run a program. Call it before inspan runs
// git in a folder where an agent has worked.
func Inert(root string) error {
	_, err := open(root)
	return err
}

// inert returns nil if no setting of the repository makes git run a program.
func (r repository) inert() error {
	for _, path := range []string{
		filepath.Join(r.common, "config"),
		filepath.Join(r.common, "config.worktree"), filepath.Join(r.dir, "config.worktree"),
	} {
		text, err := keep.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = shell.GitInert(string(text))
		}
		if err != nil {
			return fmt.Errorf("git is not run in %s: %w", r.top, err)
		}
	}
	return nil
}

// admin returns git's folder for the worktree at a place; empty if there is none.
func (r repository) admin(at string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(r.common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		dir := filepath.Join(r.common, "worktrees", e.Name())
		to, err := readLine(filepath.Join(dir, "gitdir"))
		if err == nil && filepath.Clean(filepath.FromSlash(absolute(dir, to))) == filepath.Join(at, ".git") {
			return dir, nil
		}
	}
	return "", nil
}

// readLine reads a file with one line, such as a path.
func readLine(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	text, err := keep.Read(path)
	return strings.TrimRight(string(text), "\r\n"), err
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// git runs git on a repository and the work tree, with options that keep it from running programs they name.
func (s *Store) git(ctx context.Context, dir, work string, stdin []byte, args ...string) (out []byte, code int, err error) {
	all := append([]string{
		"--git-dir=" + dir, "--work-tree=" + work, "--no-optional-locks", "--literal-pathspecs",
		"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false", "-c", "core.safecrlf=false",
		"-c", "user.name=inspan", "-c", "user.email=inspan@localhost", "-c", "gc.auto=0",
	}, args...)
	out, code, err = s.Git(ctx, work, stdin, all...)
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, code, err
}
