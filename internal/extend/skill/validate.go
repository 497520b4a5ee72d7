package skill

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// Validate returns the violations of the Agent Skills standard by the skill in a folder, one problem a line; nil if
// nothing does. It is strict: additional keys are problems too.
func Validate(dir string) []string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []string{err.Error()}
	}
	files, _, end, err := (&place{Folder: Folder{Path: abs}}).open()
	if err != nil {
		return []string{fmt.Sprintf("the folder can't be read: %v", keep.Bare(err))}
	}
	defer end()
	entries, _, err := list(files, ".", maxEntries)
	if err != nil {
		return []string{fmt.Sprintf("the folder can't be read: %v", keep.Bare(err))}
	}
	var names []string
	for _, e := range entries {
		if strings.EqualFold(e.Name(), file) {
			names = append(names, e.Name())
		}
	}
	if !slices.Contains(names, file) {
		if len(names) > 0 {
			return []string{fmt.Sprintf("its file is called %s, not %s", names[0], file)}
		}
		return []string{"it has no " + file}
	}
	data, _, err := readAll(files, file, MaxSize)
	if err != nil {
		return []string{fmt.Sprintf("%s can't be read: %v", file, keep.Bare(err))}
	}
	matter, text, err := SplitMatter(data)
	if err != nil {
		return []string{err.Error()}
	}
	return parse(filepath.Base(abs), matter, text, true).Problems
}

// Parse reads the SKILL.md of a folder that is elsewhere. The skill's name is the one in the file, or else that
// of the folder.
func Parse(folder string, data []byte) (Skill, error) {
	if err := fits(data, MaxSize); err != nil {
		return Skill{}, err
	}
	matter, text, err := SplitMatter(data)
	if err != nil {
		return Skill{}, err
	}
	var head map[string]any
	if err := DecodeMatter(matter, &head); err != nil {
		return Skill{}, err
	}
	return parse(cmp.Or(line(head["name"]), folder), matter, text, true), nil
}
