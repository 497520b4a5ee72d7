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
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// reader reads instruction files for a workspace, and what they import: nothing that tools may not
// read, and from outside of the workspace's repository only files of instructions, so that one that
// came with a repository can't put a private file before the model.
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
		if !named && !tool.Inside(project, real) || at.Of(real).Guard == places.Secret {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		data, err := readInstructions(real)
		if err == nil && k.Instead != nil {
			data = k.Instead(path, data)
		}
		return k.told(path, data), err
	}
}

// ofProject returns the folders, from below root downwards, whose instructions are those of the project:
// none that git ignores and none of packages that were installed there, whose authors nobody has asked.
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
		enter(dir) // who starts in an ignored folder wants to work there
	}
	for i, dir := range folders {
		if slices.Contains(ofPackages(), filepath.Base(dir)) || enter(dir) {
			return folders[:i]
		}
	}
	return folders
}

// ofPackages are the names of folders that package managers fill.
func ofPackages() []string {
	return []string{"node_modules", "bower_components", "jspm_packages", "vendor", "site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", "Pods", "Carthage"}
}

// IsInstructions reports whether a file has the name of one that is read as instructions.
func IsInstructions(path string) bool {
	return slices.Contains([]string{"agents.md", "claude.md", "claude.local.md"}, strings.ToLower(filepath.Base(path)))
}

// Personal are the files with a person's instructions for all workspaces: beside the settings, and
// those of other agents. They need not exist.
func (k *Base) Personal() []string {
	var own []string
	if k.ConfigPath != "" {
		own = append(own, filepath.Join(filepath.Dir(k.ConfigPath), "AGENTS.md"))
	}
	if k.Apart {
		return own
	}
	own = append(own, keep.AtHome(".claude", "CLAUDE.md"))
	own = append(own, rules(keep.AtHome(".claude", "rules"))...)
	for _, path := range [][]string{{".codex", "AGENTS.md"}, {".config", "opencode", "AGENTS.md"}, {".gemini", "GEMINI.md"}} {
		own = append(own, keep.AtHome(path...))
	}
	return slices.DeleteFunc(own, func(path string) bool { return path == "" })
}

// instructions are those of the person and, after them, those that count in a folder of a workspace,
// and all of their texts.
func (k *Base) instructions(dir, root string) ([]File, texts) {
	taken := texts{}
	files := taken.gather(k.Personal(), k.personalReader(root))
	shared := append(Paths(dir), rules(filepath.Join(root, ".claude", "rules"))...)
	return append(files, taken.gather(shared, k.reader(root))...), taken
}

// personalReader reads instruction files of the person, and what they import: nothing that tools
// may not read.
func (k *Base) personalReader(root string) func(path string) ([]byte, error) {
	at := k.Places(root)
	return func(path string) ([]byte, error) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err // mostly there is none, and then no places need to be known
		}
		if at.Of(real).Guard == places.Secret && !slices.Contains(k.Personal(), path) {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		data, err := readInstructions(path)
		return scoped(path, data), err
	}
}

// maxRules bounds the files of rules in one folder.
const maxRules = 100

// rules are the markdown files in a folder of rules of Claude Code, in the order of their names.
func rules(dir string) (paths []string) {
	if dir == "" {
		return nil
	}
	left := 10 * maxRules
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 || len(paths) == maxRules {
			return fs.SkipAll // what can't be read is as good as not there
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// scoped is a file of rules without its header. Rules for some files only say so.
func scoped(path string, data []byte) []byte {
	matter, body, err := skill.SplitMatter(data)
	if err != nil || !strings.Contains(filepath.ToSlash(path), "/.claude/rules/") {
		return data
	}
	var header struct {
		Paths any `yaml:"paths"`
	}
	if skill.DecodeMatter(matter, &header) != nil {
		return data
	}
	if globs := skill.List(header.Paths); len(globs) > 0 {
		body = "This applies only to files that match " + strings.Join(globs, ", ") + ".\n\n" + body
	}
	return []byte(body)
}

// readInstructions reads an instruction file, unless it belongs to another
// user: anybody can put a file into a directory like /tmp.
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

// maxInstructions is how much of one instruction file is read, in bytes. What is
// used of all of them together is less.
const maxInstructions = 8 * MaxInstructions
