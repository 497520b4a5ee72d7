package knowledge

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/extend/skill"
)

// shared returns where the instructions for a folder of a workspace can be: the rules of editors first, because
// they are cut first, then the instruction files, then the rules of Claude Code.
func shared(dir, root string) (paths []string) {
	tops := slices.Compact([]string{keep.Repository(root), root})
	for _, top := range tops {
		paths = append(paths, filepath.Join(top, ".cursorrules"))
		paths = append(paths, rules(filepath.Join(top, ".cursor", "rules"), ".mdc")...)
		paths = append(paths, filepath.Join(top, ".github", "copilot-instructions.md"))
		paths = append(paths, rules(filepath.Join(top, ".github", "instructions"), ".instructions.md")...)
	}
	paths = append(paths, Paths(dir)...)
	for _, top := range tops {
		paths = append(paths, rules(filepath.Join(top, ".claude", "rules"), ".md")...)
	}
	return paths
}

// maxRules bounds the number of rule files in one folder.
const maxRules = 100

// rules lists the files in a folder of rules whose names end so, sorted by name.
func rules(dir, ending string) (paths []string) {
	if dir == "" {
		return nil
	}
	left := 10 * maxRules
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 || len(paths) == maxRules {
			return fs.SkipAll // an unreadable folder counts as missing
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ending) {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// scoped returns a rule file without its header. If the rules apply only to some files or tasks, it says so. Rules
// that a person has to pick are empty.
func scoped(path string, data []byte) []byte {
	path = filepath.ToSlash(path)
	claude, cursor := strings.Contains(path, "/.claude/rules/"), strings.HasSuffix(path, ".mdc")
	copilot := strings.HasSuffix(path, ".instructions.md")
	matter, body, err := skill.SplitMatter(data)
	if err != nil || matter == nil || !claude && !cursor && !copilot {
		return data
	}
	var header struct {
		Paths       any `yaml:"paths"`       // Claude Code: code.claude.com/docs/en/memory
		Globs       any `yaml:"globs"`       // Cursor: cursor.com/docs/context/rules
		Always      any `yaml:"alwaysApply"` //
		Description any `yaml:"description"` //
		ApplyTo     any `yaml:"applyTo"`     // Copilot: docs.github.com/copilot/customizing-copilot
	}
	_ = skill.DecodeMatter(matter, &header) // Cursor writes globs that are no YAML: *.go
	globs := slices.Concat(skill.List(header.Paths), skill.List(header.Globs), skill.List(header.ApplyTo))
	about := skill.Line(header.Description)
	switch {
	case cursor && skill.Line(header.Always) == "true", slices.Contains(globs, "**"), claude && len(globs) == 0:
	case len(globs) > 0:
		body = "This applies only to files that match " + strings.Join(globs, ", ") + ".\n\n" + body
	case cursor && about != "":
		body = "This applies only to tasks of this kind: " + about + "\n\n" + body
	default:
		return nil
	}
	return []byte(body)
}
