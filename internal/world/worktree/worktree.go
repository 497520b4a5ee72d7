// Package worktree makes copies of a workspace for those who work apart from it: git
// worktrees of its repository that begin with all that the workspace has, uncommitted
// and untracked files included. It tells what was changed in one, and merges texts.
//
// Its rules:
//
//  1. The workspace, its index and its stashes are never changed. What is written in
//     its repository are objects, the folder below worktrees/ that git keeps for each,
//     and nothing else: no branch, no tag.
//  2. No program that the repository names is run: its settings are proven inert first
//     (see gitconf), hooks and monitors are off.
//  3. Whoever works in a copy may write what they like there, its .git included. So git
//     is told where the repository is, and never asks the copy.
//  4. What a copy began with is a reference of its own in the repository, written last:
//     a copy without it was never finished, and is made anew.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// MaxFile is the size above which a file is not brought over, in bytes: neither into
// a copy, if git does not know it yet, nor back.
const MaxFile = 20 << 20

// ErrNoRepository says that a workspace is in no git repository.
var ErrNoRepository = errors.New("the workspace is not in a git repository")

// Store are the copies of workspaces, kept in one folder. Its fields are set before
// use and not changed after. The methods are safe for concurrent use; those of two
// processes must not be about the same name at once.
type Store struct {
	// Dir is the folder, which is made when it is needed. It must not be in a
	// workspace.
	Dir string
	// Git runs git in a folder, without variables of its own (GIT_*) in the
	// environment, and returns what it writes to standard output. Code is how it
	// ended. Err is not nil if that is not 0, and holds what git complained of, or
	// if it could not be run: then code is -1.
	Git func(ctx context.Context, dir string, stdin []byte, args ...string) (out []byte, code int, err error)
	// Within is how long a new copy may take to get what git ignores; the rest is left out. 0: a minute.
	Within time.Duration

	mu sync.Mutex // one is made at a time
}

// Tree is a copy of a workspace.
type Tree struct {
	Root string   // where one works in it: what the workspace is to its repository
	Base string   // commit of what it began with, or of what was taken over since
	Left []string // files of the workspace that are not in it, as they are too large or repositories of their own; known only to who made it
	// Lent are files and folders that git ignores and that are in it all the same, Missing those that are not,
	// with the reason; known only to who made it.
	Lent, Missing []string

	dir   string // the top of it
	admin string // git's folder for it
	repo  repository
}

// ref is where a repository keeps the base of each copy; references below
// refs/worktree are each worktree's own.
const ref = "refs/worktree/inspan"

// Make makes the copy of the workspace at root that has the name, or finds it: the
// same name means the same copy, as it is by now. The name may be any text.
func (s *Store) Make(ctx context.Context, root, name string) (Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found, err := s.find(ctx, root, name)
	if err != nil || found {
		return t, err
	}
	if err := s.clear(ctx, t); err != nil {
		return Tree{}, err
	}
	list, err := s.paths(ctx, t.repo.dir, t.repo.top)
	if err != nil {
		return Tree{}, err
	}
	if t.Base, err = s.record(ctx, t.repo, t.repo.dir, t.repo.top, list); err != nil {
		return Tree{}, fmt.Errorf("record the workspace: %w", err)
	}
	t.Left = list.left
	if err := s.checkOut(ctx, &t); err != nil {
		return Tree{}, fmt.Errorf("make a worktree: %w", err)
	}
	return t, nil
}

// Find returns the copy of the workspace at root that has the name, and whether there
// is one.
func (s *Store) Find(ctx context.Context, root, name string) (t Tree, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ctx, root, name)
}

// find is Find; without a copy the tree tells where it would be.
func (s *Store) find(ctx context.Context, root, name string) (t Tree, found bool, err error) {
	repo, err := open(root)
	if err != nil {
		return Tree{}, false, err
	}
	top, err := s.folder()
	if err != nil {
		return Tree{}, false, err
	}
	if tooClose(repo.top, top) {
		return Tree{}, false, fmt.Errorf("the folder of worktrees, %s, is in the workspace", s.Dir)
	}
	t = Tree{dir: filepath.Join(top, safe(root, name)), repo: repo}
	t.Root = filepath.Join(t.dir, repo.prefix)
	if t.admin, err = repo.admin(t.dir); err != nil || t.admin == "" {
		return t, false, err
	}
	if !isDir(t.Root) {
		return t, false, nil
	}
	t.Base, err = s.base(ctx, t)
	return t, err == nil && t.Base != "", err
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// checkOut makes the worktree of a base.
func (s *Store) checkOut(ctx context.Context, t *Tree) error {
	_, _, err := s.git(ctx, t.repo.dir, t.repo.top, nil, "worktree", "add", "--quiet", "--force", "--detach", t.dir, t.Base)
	if err != nil {
		return err
	}
	if t.admin, err = t.repo.admin(t.dir); err == nil && t.admin == "" {
		err = errors.New("git does not know it")
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.Root, 0o700); err != nil {
		return err
	}
	if t.Lent, t.Missing, err = s.bring(ctx, *t); err != nil {
		return fmt.Errorf("bring what git ignores: %w", err)
	}
	return s.Rebase(ctx, *t, t.Base)
}

// Rebase notes what was taken over from a copy: Changes lists only what comes after
// it. Now is what Changes returned. The tree's Base stays as it is.
func (s *Store) Rebase(ctx context.Context, t Tree, now string) error {
	_, _, err := s.git(ctx, t.admin, t.dir, nil, "update-ref", ref, now)
	return err
}

// Remove removes the copy of the workspace at root that has the name, with all that
// was changed in it, and what is left of one that was never finished. That there is
// none is no error.
func (s *Store) Remove(ctx context.Context, root, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _, err := s.find(ctx, root, name)
	if err != nil {
		return err
	}
	return s.clear(ctx, t)
}

// Copy is the folder of the copy that a path lies in; empty: in none.
func (s *Store) Copy(path string) string {
	dir, err := filepath.Abs(s.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	rel, bad := filepath.Rel(dir, path)
	if err != nil || bad != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	name, _, _ := strings.Cut(rel, string(filepath.Separator))
	return filepath.Join(dir, name)
}

// Discard removes the copy of the workspace at root that a path lies in, with all that was changed
// in it. Unlike Remove it needs no name, and the workspace may be gone.
func (s *Store) Discard(ctx context.Context, root, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.at(root, path)
	if err != nil {
		return fmt.Errorf("discard %s: %w", path, err)
	}
	return s.clear(ctx, t)
}

// Unmerged reports whether the copy of the workspace at root that a path lies in has changes that
// were not taken over. If the workspace is gone there is nothing that could take them.
func (s *Store) Unmerged(ctx context.Context, root, path string) (bool, error) {
	t, found, err := s.Open(ctx, root, path)
	if err != nil || !found {
		return false, err
	}
	changes, _, err := s.Changes(ctx, t)
	return len(changes) > 0, err
}

// Open is Find for the copy that a path lies in. If the workspace is gone there is none.
func (s *Store) Open(ctx context.Context, root, path string) (t Tree, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err = s.at(root, path)
	if err != nil || t.admin == "" || !isDir(t.Root) {
		return t, false, err
	}
	t.Base, err = s.base(ctx, t)
	return t, err == nil && t.Base != "", err
}

// at is the copy that a path lies in. Without a repository, or if that does not know it, it has no
// folder of git's.
func (s *Store) at(root, path string) (t Tree, err error) {
	if t.dir = s.Copy(path); t.dir == "" {
		return t, errors.New("it is not in a worktree of ours")
	}
	repo, err := open(root)
	if err != nil {
		return t, nil //nolint:nilerr // the workspace is gone
	}
	t.repo, t.Root = repo, filepath.Join(t.dir, repo.prefix)
	t.admin, err = repo.admin(t.dir)
	return t, err
}

// base is the commit that a copy was made of, or that was taken over last; empty if it was never
// finished.
func (s *Store) base(ctx context.Context, t Tree) (string, error) {
	out, code, err := s.git(ctx, t.admin, t.dir, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if code == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// clear takes away what is where a copy would be. Other worktrees of the repository
// stay, also those whose folders are not there now.
func (s *Store) clear(ctx context.Context, t Tree) error {
	if err := removeAll(t.dir); err != nil {
		return fmt.Errorf("remove a worktree: %w", err)
	}
	if t.admin == "" {
		return nil
	}
	_, _, err := s.git(ctx, t.repo.dir, t.repo.top, nil, "worktree", "remove", "--force", "--force", t.dir)
	return err
}

// removeAll removes a folder, also what its owner has closed.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// folder makes the folder of the copies, and returns it as git writes it.
func (s *Store) folder() (string, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// tooClose reports whether a folder is in another.
func tooClose(top, dir string) bool {
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

// safe is the name of the folder for a copy: readable, and different for each.
func safe(root, name string) string {
	sum := sha256.Sum256([]byte(root + "\x00" + name))
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(filepath.Base(root)))
	return short[:min(len(short), 20)] + "-" + hex.EncodeToString(sum[:8])
}
