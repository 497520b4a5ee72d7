package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Bounds on listing the files of a skill.
const (
	maxListed = 100
	maxWalked = 1000 // entries that are looked at
	maxDepth  = 4    // nested folders
)

// Invoke returns the instructions of a skill for the model, with the typed arguments as in [Expand].
// ${SKILL_DIR} and ${CLAUDE_SKILL_DIR} stand for its folder. A heading says where the skill is and which files
// it has. The caller decides whether a manual or hidden skill may be invoked.
func (l *Library) Invoke(name, args string) (str string, s Skill, err error) {
	f, err := l.get(name)
	if err != nil {
		return "", Skill{}, err
	}
	files, end, err := f.open()
	if err != nil {
		return "", f.Skill, fmt.Errorf("skill %s: %w", f.Name, err)
	}
	defer end()
	data, _, err := readAll(files, f.info.Name(), MaxSize)
	if err != nil {
		return "", f.Skill, fmt.Errorf("skill %s: %w", f.Name, keep.Bare(err))
	}
	_, body, err := SplitMatter(data)
	if err != nil {
		return "", f.Skill, fmt.Errorf("skill %s: %w", f.Name, err)
	}
	vars := map[string]string{"SKILL_DIR": f.Dir, "CLAUDE_SKILL_DIR": f.Dir}
	if root := f.from.Root; root != "" {
		vars["CLAUDE_PLUGIN_ROOT"], vars["INSPAN_PLUGIN_ROOT"] = root, root
	}
	return f.heading(files) + expand(strings.TrimSpace(text.Clean(body)), args, vars), f.Skill, nil
}

// open returns the folder of a skill. No link leads out of it, or out of the folder that its place is within.
func (f *found) open() (fs.FS, func(), error) {
	files, _, end, err := f.from.open()
	if err != nil {
		return nil, nil, err
	}
	r, ok := files.(rooted)
	if !ok {
		sub, err := fs.Sub(files, f.Name)
		return sub, end, err
	}
	if f.from.Within != "" {
		return rooted{r.root, r.at(filepath.Base(f.Dir))}, end, nil
	}
	defer end()
	root, err := r.root.OpenRoot(r.at(filepath.Base(f.Dir)))
	if err != nil {
		return nil, nil, err
	}
	return rooted{root, "."}, func() { _ = root.Close() }, nil
}

// heading says where a skill is and which other files it has.
func (f *found) heading(files fs.FS) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s (%s)", f.Name, f.Source)
	if f.Dir != "" {
		fmt.Fprintf(&b, ", in the folder %s; paths in its text start there", text.Visible(f.Dir))
	}
	b.WriteString(".\n")
	if all := f.others(files); len(all) > 0 {
		fmt.Fprintf(&b, "Its files, which the tool skill shows by the argument file:\n")
		for _, l := range all[:min(len(all), maxListed)] {
			fmt.Fprintf(&b, "- %s (%s)\n", text.Visible(l.path), text.Count(int(l.size), "byte"))
		}
		if len(all) > maxListed {
			b.WriteString("- and more\n")
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// others lists the files of a skill except its SKILL.md, as many as are looked at.
func (f *found) others(files fs.FS) []listed {
	all, _, _ := walk(files, maxDepth, maxWalked) // files that can't be listed are not offered
	return slices.DeleteFunc(all, func(l listed) bool { return l.path == f.info.Name() })
}

// File returns a file of a skill, named by its path from the skill's folder or by an absolute path in it. No
// link leads out, see [Folder.Within]. The SKILL.md is excluded; it must be invoked.
func (l *Library) File(name, file string) ([]byte, error) {
	f, err := l.get(name)
	if err != nil {
		return nil, err
	}
	at, err := f.inside(file)
	if err != nil {
		return nil, err
	}
	files, end, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", f.Name, err)
	}
	defer end()
	data, info, err := readAll(files, at, MaxSize)
	switch {
	case at == f.info.Name() || f.sameFile(&known{info: info}):
		return nil, fmt.Errorf("%s is what the skill %s tells when it is invoked", at, f.Name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the skill %s has no file %s%s", f.Name, at, meant(at, f.others(files)))
	case err != nil:
		return nil, fmt.Errorf("%s of the skill %s can't be read: %w", at, f.Name, keep.Bare(err))
	}
	return data, nil
}

// inside returns the path of a file from the folder of its skill, with slashes.
func (f *found) inside(file string) (string, error) {
	if filepath.IsAbs(file) && f.Dir != "" {
		if rel, err := filepath.Rel(f.Dir, file); err == nil {
			file = rel
		}
	}
	at := path.Clean(filepath.ToSlash(file))
	switch {
	case strings.TrimSpace(file) == "":
		return "", errors.New("no file is given")
	case !filepath.IsLocal(filepath.FromSlash(at)):
		return "", fmt.Errorf("%s is not in the folder of the skill %s", file, f.Name)
	}
	return at, nil
}

// meant suggests files for a path.
func meant(at string, all []listed) string {
	var paths []string
	for _, l := range all {
		if path.Base(l.path) == path.Base(at) {
			return "; did you mean " + l.path + "?"
		}
		paths = append(paths, l.path)
	}
	if near := words.Near(at, paths); near != nil {
		return "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return "; it has " + some(paths)
}
