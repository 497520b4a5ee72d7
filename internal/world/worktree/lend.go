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
)

// Lent is a separate repository with the history of one branch of a workspace, and nothing else from it: no
// settings, no hooks, no remotes, so git can push from it with a secret, such as a token, that nothing in the
// workspace may get.
type Lent struct {
	Dir    string // the repository, bare
	Commit string // at the end of the branch
}

// Close removes the repository.
func (l *Lent) Close() error { return os.RemoveAll(l.Dir) }

// Lend creates a repository with a branch of the workspace's repository. The history is not copied: it exists
// as long as the workspace has it.
func (s *Store) Lend(ctx context.Context, root, branch string) (_ *Lent, err error) {
	repo, err := open(root)
	if err != nil {
		return nil, err
	}
	objects := filepath.Join(repo.common, "objects")
	if err := own(objects); err != nil {
		return nil, err
	}
	named := "refs/heads/" + branch + "^{commit}"
	out, _, err := s.git(ctx, repo.dir, repo.top, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", named)
	if err != nil {
		return nil, fmt.Errorf("there is no branch %s: %w", branch, err)
	}
	format, _, err := s.git(ctx, repo.dir, repo.top, nil, "rev-parse", "--show-object-format")
	if err != nil {
		return nil, err
	}
	l := &Lent{Commit: strings.TrimSpace(string(out))}
	if l.Dir, err = os.MkdirTemp("", "inspan-push-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	_, _, err = s.Git(ctx, l.Dir, nil, "init", "--quiet", "--bare", "--template=", "--object-format="+strings.TrimSpace(string(format)), l.Dir)
	if err != nil {
		return nil, fmt.Errorf("git init: %w", err)
	}
	return l, errors.Join(l.borrow(objects), l.shallow(repo.common))
}

// own returns an error if git would read objects outside of the repository. Otherwise an agent in the workspace
// could have files pushed that it may not read.
func own(objects string) error {
	for _, name := range []string{"alternates", "http-alternates"} {
		if _, err := os.Lstat(filepath.Join(objects, "info", name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("the repository borrows objects from another one (objects/info/" + name + "), so inspan does not push from it")
		}
	}
	return filepath.WalkDir(objects, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			err = fmt.Errorf("%s is not a regular file, so inspan does not push from this repository", path)
		}
		return err
	})
}

// borrow lets git read the workspace's objects in place.
func (l *Lent) borrow(objects string) error {
	info := filepath.Join(l.Dir, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	if strings.ContainsAny(objects, "\n\"") {
		return fmt.Errorf("git can't name the folder %q", objects)
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o600)
}

// shallow copies the ends of the history of a shallow clone.
func (l *Lent) shallow(common string) error {
	text, err := keep.Read(filepath.Join(common, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "shallow"), text, 0o600)
}

// Origin returns the address of the remote origin of the workspace's repository; empty means none.
func (s *Store) Origin(ctx context.Context, root string) (string, error) {
	repo, err := open(root)
	if err != nil {
		return "", err
	}
	out, code, err := s.git(ctx, repo.dir, repo.top, nil, "config", "--local", "--no-includes", "--get", "remote.origin.url")
	if code == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}
