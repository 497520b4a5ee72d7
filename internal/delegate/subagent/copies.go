package subagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/tool"
)

// Copies returns the store of the workspace copies in which agents work apart. They are outside of the state
// folder, in which no tool reads or writes. Nil means there is no place for them.
func Copies() *worktree.Store {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return &worktree.Store{Dir: filepath.Join(cache, "inspan", "worktrees"), Git: sandbox.Git}
}

// Diff returns the unmerged changes of a copy, for people.
func Diff(ctx context.Context, trees *worktree.Store, tree worktree.Tree) (string, error) {
	changes, _, err := trees.Changes(ctx, tree)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range changes {
		if c.Why != "" {
			fmt.Fprintf(&b, "%s can't be merged: it is %s\n", fileName(c.Path), c.Why)
			continue
		}
		s := step{name: c.Path, before: c.Base, after: c.Theirs}
		if diff := s.diff(); diff == "" || s.before != nil && s.after != nil && s.before.Exec != s.after.Exec {
			b.WriteString(s.describe() + "\n" + diff)
		} else {
			b.WriteString(diff)
		}
	}
	return b.String(), nil
}

// Merge merges a copy into its workspace, the one of env, like the action merge of manage_agents: all of it, or
// nothing if one file is in conflict. Only names files and folders; empty means all. The report is for people.
func Merge(ctx context.Context, trees *worktree.Store, tree worktree.Tree, env tool.Env, agent string, only []string) (report string, err error) {
	m, err := plan(ctx, trees, tree, env, only)
	if err != nil {
		return "", err
	}
	if len(m.clashes) > 0 {
		return m.conflict(agent), errors.New("nothing was merged")
	}
	if _, err := m.write(ctx, env.Files); err != nil {
		return "", err
	}
	if m.whole {
		err = trees.Rebase(ctx, tree, m.now)
	}
	return m.report("Merged"), err
}
