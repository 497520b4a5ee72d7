package knowledge

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
)

// reader reads instruction files for a workspace and the files that they import. It reads nothing that tools
// may not read. From outside of the repository it reads only instruction files, so that a file from a
// repository can't put a private file into the prompt.
func (k *Base) reader(root string) func(path string) ([]byte, error) {
	at, project := k.Places(root), keep.Repository(root)
	return func(path string) ([]byte, error) {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) && k.Instead != nil && IsInstructions(path) {
			if data := k.Instead(path, nil); len(data) > 0 {
				return scoped(path, data), nil
			}
		}
		if err != nil {
			return nil, err
		}
		named := IsInstructions(path) && IsInstructions(real)
		if !named && !text.Inside(project, real) || at.Of(real).Guard == places.Secret {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		data, err := readInstructions(real)
		if err == nil && k.Instead != nil {
			data = k.Instead(path, data)
		}
		return k.told(path, data), err
	}
}

// ofProject returns the folders, from below root downwards, that contain the project's instructions. It skips
// folders that git ignores and folders of installed packages, whose authors the person has not approved.
func ofProject(root string, folders []string) []string {
	project := keep.Repository(root)
	rules := (*places.Ignores)(nil).Add("", ignoreFile(project, ".git/info/exclude"))
	enter := func(dir string) (ignored bool) {
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(dir, project), string(filepath.Separator)))
		ignored = rules.Ignored(rel, true)
		rules = rules.Add(rel, ignoreFile(project, path.Join(rel, ".gitignore")))
		return ignored
	}
	for _, dir := range append([]string{project}, downTo(project, root)...) {
		enter(dir) // if the session starts in an ignored folder, its instructions count
	}
	packages := []string{ // that package managers fill
		"node_modules", "bower_components", "jspm_packages", "vendor", "site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", "Pods", "Carthage",
	}
	for i, dir := range folders {
		if slices.Contains(packages, filepath.Base(dir)) || enter(dir) {
			return folders[:i]
		}
	}
	return folders
}

// IsInstructions reports whether the file's name is that of an instruction file.
func IsInstructions(path string) bool {
	return slices.Contains([]string{"agents.md", "claude.md", "claude.local.md"}, strings.ToLower(filepath.Base(path)))
}

// Personal returns the paths of a person's instructions for all workspaces: next to the settings, and those of
// other agents. They need not exist.
func (k *Base) Personal() []string {
	var own []string
	if k.ConfigPath != "" {
		own = append(own, filepath.Join(filepath.Dir(k.ConfigPath), "AGENTS.md"))
	}
	if k.Apart {
		return own
	}
	own = append(own, keep.AtHome(".claude", "CLAUDE.md"))
	own = append(own, rules(keep.AtHome(".claude", "rules"), ".md")...)
	for _, path := range [][]string{{".codex", "AGENTS.md"}, {".config", "opencode", "AGENTS.md"}, {".gemini", "GEMINI.md"}} {
		own = append(own, keep.AtHome(path...))
	}
	return slices.DeleteFunc(own, func(path string) bool { return path == "" })
}

// instructions returns the person's instruction files followed by those for a folder of a workspace, and all of
// their texts.
func (k *Base) instructions(dir, root string) ([]File, texts) {
	taken := texts{}
	files := taken.gather(k.Personal(), k.personalReader(root))
	return append(files, taken.gather(shared(dir, root), k.reader(root))...), taken
}

// personalReader reads instruction files of the person and their imports. It reads nothing that tools may not
// read.
func (k *Base) personalReader(root string) func(path string) ([]byte, error) {
	at := k.Places(root)
	return func(path string) ([]byte, error) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err // usually the file is missing, so the places are not computed
		}
		if at.Of(real).Guard == places.Secret && !slices.Contains(k.Personal(), path) {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		data, err := readInstructions(path)
		return scoped(path, data), err
	}
}

// readInstructions reads an instruction file. Files of other users are rejected: anyone can create a file in a
// directory like /tmp.
func readInstructions(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if !ours(info) {
		return nil, fmt.Errorf("%s belongs to another user", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxInstructions))
}

// maxInstructions bounds how much of one instruction file is read, in bytes. The total that is used is smaller.
const maxInstructions = 8 * MaxInstructions
