package sensitive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// GitDirs returns the git directories of the repository that git finds from a folder: that of the work tree,
// and the shared one. A repository above the workspace counts if it has the same owner as the workspace, as for
// git.
func GitDirs(root string) []string {
	first, err := paths.StampAt(root)
	if err != nil {
		return nil
	}
	home, _ := os.UserHomeDir()
	for top := root; ; top = filepath.Dir(top) {
		st, err := paths.StampAt(top)
		if err != nil || st.Dev != first.Dev || top == "/" || top != root && (!st.Own || home != "" && text.Inside(top, home)) {
			return nil
		}
		git := filepath.Join(top, ".git")
		switch st, err := paths.StampAt(git); {
		case err != nil:
		case st.Dir:
			if _, err := os.Lstat(filepath.Join(git, "HEAD")); err == nil {
				return []string{git}
			}
		default:
			return gitLinked(top)
		}
	}
}

// GitDirsElsewhere returns the git directories of a workspace that are above it or reached by a link.
func GitDirsElsewhere(root string) []string {
	return slices.DeleteFunc(GitDirs(root), func(dir string) bool { return dir == filepath.Join(root, ".git") })
}

// gitLinked returns the folders that a workspace's .git file refers to: of the worktree and of its repository,
// or of a submodule. Anyone can write such a file, so it counts only if its target refers back to this
// workspace.
func gitLinked(root string) []string {
	data, err := keep.Read(filepath.Join(root, ".git"))
	dir, isLink := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if err != nil || !isLink {
		return nil
	}
	if dir = strings.TrimSpace(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	if len(moduleOf(dir, root)) > 0 {
		return []string{dir}
	}
	back, err := keep.Read(filepath.Join(dir, "gitdir"))
	if err != nil || strings.TrimSpace(string(back)) != filepath.Join(root, ".git") {
		return nil
	}
	out := []string{dir}
	common, err := keep.Read(filepath.Join(dir, "commondir"))
	if err != nil {
		return out
	}
	path := strings.TrimSpace(string(common))
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	// The worktree is in its repository.
	if path, err = filepath.EvalSymlinks(path); err == nil && text.Inside(filepath.Join(path, "worktrees"), dir) {
		out = append(out, path)
	}
	return out
}

// moduleOf returns the git directory of a submodule if its settings name root as its work tree.
func moduleOf(dir, root string) string {
	if !strings.Contains(dir, "/modules/") {
		return ""
	}
	for line := range strings.Lines(paths.ReadSmall(filepath.Join(dir, "config"))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) != "worktree" {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, strings.TrimSpace(value))); err == nil && real == root {
			return dir
		}
	}
	return ""
}
