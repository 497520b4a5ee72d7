package knowledge

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// Bounds on the imports of one instruction file: depth, files and bytes.
const (
	maxImports     = 5
	maxImported    = 100
	maxImportBytes = 2 * MaxInstructions
)

// mention matches a possible import in a line: @ and a path, at the start or after a space.
var mention = regexp.MustCompile(`(^|\s)@([^\s@` + "`" + `]+)`)

// imported returns the text of an instruction file, followed by the files that it imports as @path, unless
// their text was already taken. Paths are relative to the file, or to the home with ~/. Mentions in code are
// not imports. Unreadable paths stay as text: they may be names.
func (t texts) imported(text, path string, read func(path string) ([]byte, error)) string {
	seen := map[string]bool{path: true}
	var b strings.Builder
	b.WriteString(text)
	var follow func(text, path string, depth int)
	follow = func(text, path string, depth int) {
		for _, name := range mentions(text) {
			file := filepath.Join(filepath.Dir(path), name)
			if filepath.IsAbs(name) {
				file = filepath.Clean(name)
			}
			if rest, own := strings.CutPrefix(name, "~/"); own {
				file = keep.AtHome(rest)
			}
			if seen[file] {
				continue
			}
			if seen[file] = true; len(seen) > maxImported || b.Len() > maxImportBytes {
				continue
			}
			raw, err := read(file)
			if err != nil {
				continue
			}
			if depth == maxImports {
				fmt.Fprintf(&b, "\n\n[%s is not imported: imports go %d files deep]", file, maxImports)
				continue
			}
			inner, fresh := t.take(raw)
			if !fresh {
				continue
			}
			fmt.Fprintf(&b, "\n\nImported from %s:\n\n%s", file, inner)
			follow(inner, file, depth+1)
		}
	}
	follow(text, path, 0)
	return b.String()
}

// mentions lists the paths that are mentioned outside of code.
func mentions(text string) []string {
	var out []string
	fenced := false
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		// Text between backquotes is code.
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				continue
			}
			for _, m := range mention.FindAllStringSubmatch(part, -1) {
				out = append(out, strings.TrimRight(m[2], ".,;:!?)"))
			}
		}
	}
	return out
}
