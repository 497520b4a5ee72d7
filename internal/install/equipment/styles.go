package equipment

import (
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/extend/skill"
)

// DefaultStyle is the output style that adds nothing to the system prompt.
const DefaultStyle = "default"

// builtinStyles has the output styles that come with inspan.
//
//go:embed styles/*.md
var builtinStyles embed.FS

// Styles lists the output styles: texts that tell the model how to answer, added to the system prompt of new
// sessions. They are the built-in ones and the markdown files of the user's folders output-styles. A file takes
// the place of a built-in style of the same name. Warn is called for invalid files.
func (s *Set) Styles(warn func(string)) []skill.Command {
	out, warnings := skill.Commands(s.own("output-styles", ".claude"))
	for _, w := range warnings {
		warn(w)
	}
	builtin := []skill.Command{{Name: DefaultStyle, Description: "answer as the system prompt says", Source: "inspan"}}
	files, _ := fs.Glob(builtinStyles, "styles/*.md")
	for _, path := range files {
		raw, _ := builtinStyles.ReadFile(path)
		style, err := skill.ParseCommand(filepath.Base(path), "inspan", raw)
		if err != nil {
			warn(err.Error())
			continue
		}
		builtin = append(builtin, style)
	}
	for _, style := range builtin {
		if !slices.ContainsFunc(out, func(c skill.Command) bool { return c.Name == style.Name }) {
			out = append(out, style)
		}
	}
	slices.SortFunc(out, func(a, b skill.Command) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Style returns the text of an output style, in any case of its name; an error names the styles there are.
func (s *Set) Style(name string, warn func(string)) (string, error) {
	if name == "" || name == DefaultStyle {
		return "", nil
	}
	var names []string
	for _, style := range s.Styles(warn) {
		if strings.EqualFold(style.Name, name) {
			return style.Text, nil
		}
		names = append(names, style.Name)
	}
	return "", fmt.Errorf("unknown output style %q; use one of %s", name, strings.Join(names, ", "))
}
