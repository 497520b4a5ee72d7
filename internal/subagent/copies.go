package subagent

import (
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/worktree"
)

// Copies keeps the copies of workspaces for agents that work apart. They lie outside of the
// state folder, in which no tool reads or writes. Nil: there is no place for them.
func Copies() *worktree.Store {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &worktree.Store{Dir: filepath.Join(cache, "inspan", "worktrees"), Git: sandbox.Git}
}
