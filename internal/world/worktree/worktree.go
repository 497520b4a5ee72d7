// Package worktree makes copies of a workspace for agents that work apart from it: git worktrees of its
// repository that start with all its files, including uncommitted and untracked ones. It lists the changes in a
// copy, and merges texts.
//
// Its rules:
//
//  1. The workspace, its index and its stashes are never changed. In its repository it writes only objects and
//     git's folder below worktrees/ for each copy: no branch, no tag.
//  2. No program that the repository names is run: its settings are verified first (see gitconf), and hooks
//     and monitors are off.
//  3. An agent in a copy may write anything there, including its .git, so git gets the path of the repository,
//     and never reads it from the copy.
//  4. The base of a copy is a reference of its own in the repository, written last: a copy without it is
//     incomplete, and is made again.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// MaxFile is the largest file that is transferred, in bytes: into a copy, if git does not track it yet, and
// back.
const MaxFile = 20 << 20

// ErrNoRepository says that a workspace is not in a git repository.
var ErrNoRepository = errors.New("the workspace is not in a git repository")

// Store is the copies of workspaces, in one folder. Set its fields before use and don't change them. The
// methods are safe for concurrent use; two processes must not use the same name at once.
type Store struct {
	// Dir is the folder, created when needed. It must not be in a workspace.
	Dir string
	// Git runs git in a folder, without GIT_* variables in the environment, and returns its standard output.
	// Code is the exit code. If it is not 0, err contains git's error output. If git could not be run, code is
	// -1.
	Git func(ctx context.Context, dir string, stdin []byte, args ...string) (out []byte, code int, err error)
	// Within bounds the time for copying ignored files into a new copy; the rest is left out. 0 means a minute.
	Within time.Duration

	mu sync.Mutex // one copy is made at a time
}

// Tree is a copy of a workspace.
type Tree struct {
	Root string // the agent's folder: the counterpart of the workspace in the copy
	Base string // commit of the initial state, or of the last one that was taken over
	// Left are files that the copy lacks as they are too large, and folders that it lacks as they are repositories of
	// their own, such as submodules. Only Make sets it.
	Left []string
	// Lent are ignored files and folders that the copy has anyway. Missing are those that it lacks, with the
	// reason. Set only by Make.
	Lent, Missing []string

	dir   string // its top
	admin string // git's folder for it
	repo  repository
}

// ref is the reference of a copy's base; references below refs/worktree belong to each worktree.
const ref = "refs/worktree/inspan"

// Make creates the named copy of the workspace at root, or finds it in its current state. The name may be any
// text.
func (s *Store) Make(ctx context.Context, root, name string) (Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, found, err := s.find(ctx, root, name)
	if err != nil || found {
		return t, err
	}
	if err := s.removeExisting(ctx, t); err != nil {
		return Tree{}, err
	}
	list, err := s.paths(ctx, t.repo.dir, t.repo.top)
	if err != nil {
		return Tree{}, err
	}
	if t.Base, err = s.record(ctx, t.repo, t.repo.dir, t.repo.top, list); err != nil {
		return Tree{}, fmt.Errorf("record the workspace: %w", err)
	}
	t.Left = slices.Concat(list.left, list.submodules)
	if err := s.checkOut(ctx, &t); err != nil {
		return Tree{}, fmt.Errorf("make a worktree: %w", err)
	}
	return t, nil
}

// Find returns the named copy of the workspace at root, and whether it exists.
func (s *Store) Find(ctx context.Context, root, name string) (t Tree, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ctx, root, name)
}

// find is Find; if the copy does not exist, the tree has its future location.
func (s *Store) find(ctx context.Context, root, name string) (t Tree, found bool, err error) {
	repo, err := open(root)
	if err != nil {
		return Tree{}, false, err
	}
	top, err := s.folder()
	if err != nil {
		return Tree{}, false, err
	}
	if text.Inside(repo.top, top) {
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

// checkOut creates the worktree of a base.
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

// Rebase records the state that was taken over from a copy: Changes lists only later changes. Now is the result
// of Changes. The tree's Base is not updated.
func (s *Store) Rebase(ctx context.Context, t Tree, now string) error {
	_, _, err := s.git(ctx, t.admin, t.dir, nil, "update-ref", ref, now)
	return err
}

// Remove removes the named copy of the workspace at root with all its changes, even if it is incomplete. A
// missing copy is not an error.
func (s *Store) Remove(ctx context.Context, root, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _, err := s.find(ctx, root, name)
	if err != nil {
		return err
	}
	return s.removeExisting(ctx, t)
}

// Copy returns the folder of the copy that contains a path; empty means none.
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

// Discard removes the copy of the workspace at root that contains a path, with all its changes. Unlike Remove
// it needs no name, and the workspace may be gone.
func (s *Store) Discard(ctx context.Context, root, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.at(root, path)
	if err != nil {
		return fmt.Errorf("discard %s: %w", path, err)
	}
	return s.removeExisting(ctx, t)
}

// Unmerged reports whether the copy of the workspace at root that contains a path has changes that were not
// taken over. If the workspace is gone it reports false.
func (s *Store) Unmerged(ctx context.Context, root, path string) (bool, error) {
	t, found, err := s.Open(ctx, root, path)
	if err != nil || !found {
		return false, err
	}
	changes, _, err := s.Changes(ctx, t)
	return len(changes) > 0, err
}

// Open is Find for the copy that contains a path. If the workspace is gone there is none.
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

// at returns the copy that contains a path. If the repository is gone or doesn't know the copy, it has no git
// folder. A repository in which git is not run is not gone: its copies may hold changes.
func (s *Store) at(root, path string) (t Tree, err error) {
	if t.dir = s.Copy(path); t.dir == "" {
		return t, errors.New("it is not in a worktree of ours")
	}
	repo, err := open(root)
	switch {
	case errors.Is(err, ErrNoRepository): // the workspace is gone
		return t, nil
	case err != nil:
		return t, err
	}
	t.repo, t.Root = repo, filepath.Join(t.dir, repo.prefix)
	t.admin, err = repo.admin(t.dir)
	return t, err
}

// base returns the commit that a copy was made of, or that was last taken over; empty if the copy is
// incomplete.
func (s *Store) base(ctx context.Context, t Tree) (string, error) {
	out, code, err := s.git(ctx, t.admin, t.dir, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if code == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// removeExisting removes everything at the place of a copy. Other worktrees of the repository are preserved, even if
// their folders are missing now.
func (s *Store) removeExisting(ctx context.Context, t Tree) error {
	if err := keep.RemoveAll(t.dir); err != nil {
		return fmt.Errorf("remove a worktree: %w", err)
	}
	if t.admin == "" {
		return nil
	}
	_, _, err := s.git(ctx, t.repo.dir, t.repo.top, nil, "worktree", "remove", "--force", "--force", t.dir)
	return err
}

// folder creates the folder of the copies, and returns its path in git's notation.
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

// safe returns the folder name for a copy: readable and unique.
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
