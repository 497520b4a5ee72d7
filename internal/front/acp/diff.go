package acp

import (
	"path/filepath"
	"slices"
	"strings"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// hunk is a changed place in a file.
type hunk struct {
	name     string // of the file, as in the diff
	line     int    // in the new text, from 1
	old, new string // old and new text, with the lines around it
	created  bool   // the file is new
}

// parseHunks parses the hunks of unified diffs. Whole is false if a part is not a diff, or was left out.
func parseHunks(diff string) (hunks []hunk, whole bool) {
	r := diffReader{whole: true}
	lines := strings.SplitAfter(diff, "\n")
	for i, line := range lines {
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		if line != "" {
			r.read(line, next)
		}
	}
	return r.hunks, r.whole && r.old+r.new == 0
}

// diffReader parses a diff line by line. The header of a hunk says how many lines it has, since the lines
// themselves can look like anything.
type diffReader struct {
	hunks    []hunk
	whole    bool
	name     string
	created  bool
	second   bool // the line names the file, as the previous one announced
	old, new int  // remaining lines of the last hunk
	last     byte // first byte of the previous line
}

func (r *diffReader) read(line, next string) {
	text := strings.TrimRight(line, "\r\n")
	was := r.last
	r.last = line[0]
	switch {
	case r.second:
		r.second = false
		if name := strings.TrimSpace(text[4:]); name != "/dev/null" {
			r.name = name
		}
	case line[0] == '\\' && len(r.hunks) > 0: // no newline at the end of the previous line
		r.hunks[len(r.hunks)-1].trim(was)
	case r.old+r.new > 0 && r.takeLine(line):
	case strings.HasPrefix(text, "--- ") && strings.HasPrefix(next, "+++ "):
		r.whole = r.whole && r.old+r.new == 0
		r.old, r.new = 0, 0
		r.name, r.second, r.created = strings.TrimSpace(text[4:]), true, text == "--- /dev/null"
	case r.name != "" && r.beginHunk(text):
	default:
		r.whole, r.old, r.new = false, 0, 0
	}
}

// takeLine adds a line to the last hunk, if it belongs to it.
func (r *diffReader) takeLine(line string) bool {
	h := &r.hunks[len(r.hunks)-1]
	switch {
	case line[0] == ' ' && r.old > 0 && r.new > 0:
		h.old, h.new = h.old+line[1:], h.new+line[1:]
		r.old, r.new = r.old-1, r.new-1
	case line[0] == '-' && r.old > 0:
		h.old += line[1:]
		r.old--
	case line[0] == '+' && r.new > 0:
		h.new += line[1:]
		r.new--
	default:
		return false
	}
	return true
}

// beginHunk begins a hunk: @@ -1,7 +2,8 @@.
func (r *diffReader) beginHunk(line string) bool {
	old, fresh, ok := text.Hunk(line)
	if !ok {
		return false
	}
	r.whole = r.whole && r.old+r.new == 0
	r.old, r.new = old.Count, fresh.Count
	r.hunks = append(r.hunks, hunk{name: r.name, line: max(fresh.First, 1), created: r.created})
	return true
}

// trim removes the newline that the previous line, which began like this, did not have.
func (h *hunk) trim(began byte) {
	if began != '+' {
		h.old = strings.TrimSuffix(h.old, "\n")
	}
	if began != '-' {
		h.new = strings.TrimSuffix(h.new, "\n")
	}
}

// diffContent returns a unified diff as the content of a call: one item for each hunk. Hunks with invisible
// characters are also spelled out, and so is text that can't be parsed as a diff.
func diffContent(diff string, path func(name string) string) []wire.ToolCallContent {
	hunks, whole := parseHunks(diff)
	var out []wire.ToolCallContent
	for _, h := range hunks {
		d := &wire.ToolCallContentDiff{Type: "diff", Path: path(h.name), NewText: h.new}
		if !h.created {
			d.OldText = &h.old
		}
		out = append(out, wire.ToolCallContent{Diff: d})
	}
	plain := strings.NewReplacer("\t", "", "\r", "").Replace(diff)
	if !whole || text.VisibleLines(plain) != plain {
		out = append(out, textContent(text.Fenced("", text.VisibleLines(diff))))
	}
	return out
}

// previewContent returns the change that a call would make, or its question.
func previewContent(preview string, effects []tool.Effect, root string) []wire.ToolCallContent {
	switch {
	case preview == "":
		return nil
	case slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.Question }):
		return []wire.ToolCallContent{textContent(text.VisibleLines(preview))}
	}
	return diffContent(preview, func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		for _, e := range effects {
			if e.Kind == tool.Write && strings.HasSuffix(filepath.ToSlash(e.Path), "/"+name) {
				return e.Path
			}
		}
		return filepath.Join(root, filepath.FromSlash(name))
	})
}
