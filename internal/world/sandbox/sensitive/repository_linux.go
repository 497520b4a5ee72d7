package sensitive

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/safety/shell"
	"github.com/inspan/inspan/internal/world/sandbox/gitfiles"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// gitNames lists the files in a repository that name programs or other places.
func gitNames() []string {
	return []string{
		"config", "config.worktree", "hooks", "info/attributes", "info/grafts", "commondir", "gitdir", "remotes", "branches",
		"objects/info/alternates", "objects/info/http-alternates",
	}
}

// gitPlans lists git's todo lists of continuing operations. They name programs only in certain lines.
func gitPlans() []string {
	return []string{"rebase-merge/git-rebase-todo", "rebase-apply/git-rebase-todo", "sequencer/todo"}
}

// gitInsides lists the files in a repository, its submodules and its worktrees that name programs or other
// places.
func gitInsides(git string) []Place {
	var out []Place
	add := func(dir string) {
		for _, name := range gitNames() {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				out = append(out, Place{Path: path, Guard: places.Frozen, Why: "decides what git runs"})
			}
		}
		for _, name := range gitPlans() {
			if path := filepath.Join(dir, name); runsPrograms(path) {
				out = append(out, Place{Path: path, Guard: places.Frozen, Why: "names programs that git will run"})
			}
		}
	}
	eachGitDir(git, add)
	return out
}

// eachGitDir calls visit for a repository and for each folder that may be one of its submodules or worktrees, which
// can have any names.
func eachGitDir(git string, visit func(dir string)) {
	visit(git)
	for _, below := range []string{"modules", "worktrees"} {
		_ = filepath.WalkDir(filepath.Join(git, below), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // a missing file needs no lock
			}
			if objects(path) {
				return fs.SkipDir
			}
			visit(path)
			return nil
		})
	}
}

// GitHooks lists places in a git directory and its submodules that are closed in a box although it has a copy:
// hooks and the like, so that programs fail at once.
func GitHooks(git string) []Place {
	return slices.DeleteFunc(gitInsides(git), func(s Place) bool {
		rel, _ := filepath.Rel(git, s.Path)
		return strings.HasPrefix(rel, "worktrees/") || !slices.Contains([]string{"config.worktree", "hooks", "attributes"}, filepath.Base(rel))
	})
}

// gitNamed lists the files in the workspace that the settings of its repository name as programs or as further
// settings.
func (w *Workspace) gitNamed(git string) []Place {
	info, err := os.Lstat(filepath.Join(git, "config"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostPlan {
		return nil
	}
	data, err := keep.Read(filepath.Join(git, "config"))
	if err != nil {
		return nil
	}
	var out []Place
	for _, s := range shell.GitNames(string(data)) {
		from, value := git, s.Value
		switch {
		case !s.IsPath():
			continue
		case s.Key == "core.hookspath":
			from = w.Root
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(from, value)
		}
		if to, err := paths.Resolve(value); err == nil && to != w.Root && text.Inside(w.Root, to) && !text.Inside(git, to) && !text.Inside(to, git) {
			if _, err := os.Lstat(to); err == nil {
				out = append(out, Place{Path: to, Guard: places.Frozen, Why: "is named by the settings of the repository"})
			}
		}
	}
	return out
}

// objects reports whether a folder contains part of a repository's objects. Submodules can have any names, so
// it must not be one.
func objects(path string) bool {
	name := filepath.Base(path)
	if filepath.Base(filepath.Dir(path)) != "objects" || len(name) != 2 && name != "pack" {
		return false
	}
	_, err := os.Lstat(filepath.Join(path, "HEAD"))
	return err != nil
}

// mostPlan bounds the size of a todo list; a longer one counts as dangerous.
const mostPlan = 1 << 20

// runsPrograms reports whether a todo list makes git run a program.
func runsPrograms(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	if !info.Mode().IsRegular() || info.Size() > mostPlan {
		return true
	}
	data, err := keep.Read(path)
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 0 && (fields[0] == "exec" || fields[0] == "x") {
			return true
		}
	}
	return false
}

// GitWritable returns the folders outside of the workspace that a box may write to change its repository: those
// of a worktree.
func (w *Workspace) GitWritable(box tool.Box) []string {
	if !box.Git || w.copied() {
		return nil
	}
	return slices.DeleteFunc(GitDirsElsewhere(w.Root), func(dir string) bool { return text.Inside(w.Root, dir) || text.Inside(dir, w.Root) })
}

// gitOutside lists the closed places in those folders, and the folders above them, which must not be renamed.
func (w *Workspace) gitOutside(box tool.Box) (closed []Place, pinned []string) {
	dirs := w.GitWritable(box)
	for _, dir := range dirs {
		for _, s := range gitInsides(dir) {
			if slices.ContainsFunc(closed, func(c Place) bool { return c.Path == s.Path }) {
				continue
			}
			closed = append(closed, s)
			for up := filepath.Dir(s.Path); up != dir && text.Inside(dir, up); up = filepath.Dir(up) {
				if !slices.Contains(dirs, up) && !slices.Contains(pinned, up) {
					pinned = append(pinned, up)
				}
			}
		}
	}
	return closed, pinned
}

// NewWorktrees lists the files of worktrees in the workspace that only link to its repository and back.
func (w *Workspace) NewWorktrees(box tool.Box) map[string]bool {
	out := make(map[string]bool)
	if !box.Git {
		return out
	}
	for _, git := range append(GitDirsElsewhere(w.Root), filepath.Join(w.Root, ".git")) {
		entries, err := paths.ReadFolder(filepath.Join(git, "worktrees"))
		if err != nil {
			continue
		}
		for _, e := range entries {
			dir := filepath.Join(git, "worktrees", e.Name())
			link := paths.ReadSmall(filepath.Join(dir, "gitdir"))
			if filepath.Base(link) == ".git" && filepath.Clean(link) == link && text.Inside(w.Root, link) &&
				paths.ReadSmall(filepath.Join(dir, "commondir")) == "../.." && paths.ReadSmall(link) == "gitdir: "+dir {
				out[link], out[filepath.Join(dir, "gitdir")], out[filepath.Join(dir, "commondir")] = true, true, true
			}
		}
	}
	return out
}

// CountMakers counts open boxes that may create repositories; their repositories are known to all boxes of the
// session.
func (w *Workspace) CountMakers(change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.makers += change
}

// MadeHere reports whether a new repository was created by such a box, and whether that box is still open.
func (w *Workspace) MadeHere(git string, bare bool) (yes, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if info, err := os.Lstat(git); err != nil || !info.IsDir() || bare == (filepath.Base(git) == ".git") {
		return false, false
	}
	if w.makers > 0 {
		if w.repositories == nil {
			w.repositories = make(map[string]bool)
		}
		w.repositories[git] = true
	}
	return w.repositories[git], w.makers > 0
}

// newRepositories lists the repositories in the workspace that are new to a box and were created by such a box.
func (w *Workspace) newRepositories(found []Place, before []paths.Identity) []string {
	var out []string
	for _, s := range found {
		git := s.Path
		if s.Bare {
			git = filepath.Dir(git)
		}
		if git == w.Root || slices.ContainsFunc(before, func(is paths.Identity) bool { return text.Inside(git, is.Path) }) {
			continue
		}
		if yes, _ := w.MadeHere(git, s.Bare); yes {
			out = append(out, git)
		}
	}
	return out
}

// ofRepository reports whether a place belongs to a repository itself: everything in a folder .git, and git's
// own files of a bare one.
func ofRepository(git string, s Place) bool {
	if filepath.Base(git) == ".git" {
		return text.Inside(git, s.Path)
	}
	head := filepath.Join(git, "HEAD")
	return s.Bare && s.Path == head || s.Via == head
}

// NamingPrograms lists the files in a new repository that differ from git's own and may name programs or other
// places: settings that are not inert, and hooks other than samples.
func NamingPrograms(git string) []Place {
	return slices.DeleteFunc(gitInsides(git), func(s Place) bool {
		info, err := os.Lstat(s.Path)
		if err != nil {
			return true
		}
		switch rel, _ := filepath.Rel(git, s.Path); {
		case rel == "config" && info.Mode().IsRegular() && info.Size() < mostPlan:
			inert := shell.GitInert
			if filepath.Base(git) != ".git" {
				inert = shell.GitInertBare
			}
			text, err := keep.Read(s.Path)
			return err == nil && inert(string(text)) == nil
		case (rel == "hooks" || rel == "branches") && info.IsDir():
			entries, err := paths.ReadFolder(s.Path)
			return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) != ".sample" })
		}
		return false
	})
}

// Unsafe lists the files of [NamingPrograms], and indexes that would make git write elsewhere than into its working
// tree.
func Unsafe(git string) []Place {
	out := NamingPrograms(git)
	eachGitDir(git, func(dir string) {
		entries, _ := paths.ReadFolder(dir)
		if dir != git && !IsRepository(entries) {
			return // a branch can have the name index
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); (e.Name() == "index" || strings.HasPrefix(e.Name(), "sharedindex.")) && !soundIndex(path) {
				out = append(out, Place{Path: path, Guard: places.Frozen, Why: "lists paths that no working tree has"})
			}
		}
	})
	return out
}

func soundIndex(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostIndex {
		return false
	}
	data, err := keep.Read(path)
	return err == nil && gitfiles.CheckIndex(data, nil) == nil
}

// mostIndex bounds the size of an index that is checked.
const mostIndex = 256 << 20
