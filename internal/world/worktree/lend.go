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

// Lent is a repository of its own that has the history of one branch of a workspace, and nothing else
// that somebody in the workspace has written: no settings, no hooks, no remotes. So git can be given
// what nobody in the workspace may get, such as a token, to push from it.
type Lent struct {
	Dir    string // the repository, bare
	Commit string // at the end of the branch
}

// Close removes it.
func (l *Lent) Close() error { return os.RemoveAll(l.Dir) }

// Lend makes a repository of a branch of the one that the workspace at root is in. The history is not
// copied: it is there as long as the workspace has it.
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

// own reports what would have git read objects that are not the repository's: whoever works in the
// workspace could name what they may not read, and have it pushed.
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

// borrow has git read objects where they are.
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

// shallow tells where the history ends, if not all of it was cloned.
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

// Origin is the address of the remote origin of the repository that the workspace at root is in;
// empty: it has none.
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
