package subagent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/sandbox"
	"github.com/inspan/inspan/internal/worktree"
	"github.com/inspan/inspan/tool"
)

// Copies keeps the copies of workspaces for agents that work apart. They lie outside of the
// state folder, in which no tool reads or writes. Nil: there is no place for them.
func Copies() *worktree.Store {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &worktree.Store{Dir: filepath.Join(cache, "inspan", "worktrees"), Git: treeGit}
}

// treeGit runs git in a folder, without walls; the store keeps it from running
// programs of the repository.
func treeGit(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, int, error) {
	printed, complaints, code, err := sandbox.CaptureIn(ctx, tool.Command{
		Args: append([]string{"git"}, args...),
		Dir:  dir, Stdin: bytes.NewReader(stdin),
	})
	if err != nil {
		return nil, -1, err
	}
	if code != 0 {
		err = fmt.Errorf("exit code %d: %.500s", code, strings.TrimSpace(complaints))
	}
	return printed, code, err
}
