package tools

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/tool"
)

//go:embed apply_patch.md
var applyPatchDoc string

type patchArgs struct {
	Input string `json:"input" jsonschema:"the whole patch"`
}

// Patching makes a list of tools show apply_patch in place of edit_file, for models that are trained to change
// files by patches. A call of it becomes one or several calls of edit_file, write_file or delete_file: these
// are judged, run and logged. Hidden are the further tools that it needs. A list without edit_file stays as it
// is.
func Patching(list []tool.Tool) (shown, hidden []tool.Tool) {
	at := slices.IndexFunc(list, func(t tool.Tool) bool { return t.Name == "edit_file" })
	if at < 0 {
		return list, nil
	}
	shown = slices.Clone(list)
	shown[at] = applyPatch()
	for i := range shown {
		shown[i].Doc = strings.ReplaceAll(shown[i].Doc, "edit_file", "apply_patch")
	}
	return shown, []tool.Tool{list[at], several()}
}

func applyPatch() tool.Tool {
	t := tool.New("apply_patch", applyPatchDoc, func(context.Context, *tool.Call, patchArgs) (tool.Result, error) {
		return tool.Result{}, errors.New("a patch stands for other calls, and there are none here")
	})
	t.Normalize = func(args map[string]any) { first(args, "input", "patch", "patch_text", "patchText", "diff") }
	t.Resolve = resolvedBy(patchGiven)
	return t
}

// filePatch is the patch of one file.
type filePatch struct {
	action, path, to string // to: the new path; empty means unchanged
	lines            []string
	parts            []hunk
}

// patchOf reads a patch in the form that one vendor's models are trained with: "*** Begin Patch", for each
// file "*** Update File: PATH" and hunks after "@@", "*** End Patch". Paths are below a folder.
func patchOf(text, dir string) (list []*filePatch, err error) {
	below := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	for part := range strings.SplitSeq("\n"+strings.ReplaceAll(text, "\r\n", "\n"), "\n*** ") {
		head, rest, some := strings.Cut(part, "\n")
		action, path, _ := strings.Cut(strings.TrimSpace(head), ": ")
		var body []string
		if some && rest != "" {
			body = strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
		}
		last := &filePatch{}
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		switch action {
		case "", "Begin Patch", "End Patch":
		case "Add File", "Delete File", "Update File":
			last = &filePatch{action: action, path: below(path), lines: body}
			list = append(list, last)
		case "Move to":
			last.to = below(path)
		case "End of File":
			if n := len(last.parts); n > 0 {
				last.parts[n-1].atEnd = true
			}
		default:
			return nil, fmt.Errorf("a patch can't do %q; use edit_file", action)
		}
		if last.action == "Update File" && action != "" && action != "End Patch" {
			last.parts = append(last.parts, hunksOf(body)...)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the patch names no file; it begins with *** Begin Patch and *** Update File: PATH")
	}
	return list, nil
}

// patched turns a patch into calls. If one part of it finds no place, nothing is written.
func patched(ctx context.Context, c *tool.Call, text, dir string) (target string, out map[string]any, err error) {
	list, err := patchOf(text, dir)
	if err != nil {
		return "", nil, err
	}
	var calls, moves []oneOfSeveral
	for _, f := range list {
		switch f.action {
		case "Add File":
			for i, line := range f.lines {
				f.lines[i] = strings.TrimPrefix(line, "+")
			}
			content := strings.Join(append(f.lines, ""), "\n")
			calls = append(calls, oneOfSeveral{"write_file", map[string]any{"path": f.path, "content": content}})
		case "Delete File":
			calls = append(calls, oneOfSeveral{"delete_file", map[string]any{"path": f.path}})
		default:
			edits, err := located(ctx, c, f.path, f.parts)
			if err != nil {
				return "", nil, err
			}
			if len(edits) > 0 {
				calls = append(calls, oneOfSeveral{"edit_file", map[string]any{"path": f.path, "edits": edits}})
			}
			if f.to == "" {
				continue
			}
			move, err := moved(ctx, c, f.path, f.to)
			if err != nil {
				return "", nil, err
			}
			moves = append(moves, move)
		}
	}
	return asOne(append(calls, moves...))
}

// patchGiven is [patched] for a call with one of the argument names in use for a patch.
func patchGiven(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "input", "patch", "patch_text", "patchText", "diff")
	text, _ := args["input"].(string)
	return patched(ctx, c, text, "")
}

// moved moves a file, and never replaces another.
func moved(ctx context.Context, c *tool.Call, from, to string) (oneOfSeveral, error) {
	if c.Env.Files != nil {
		resolved, err := Resolve(ctx, c, to)
		if err != nil {
			return oneOfSeveral{}, err
		}
		if f, err := c.Env.Files.Open(ctx, resolved); err == nil {
			return oneOfSeveral{}, errors.Join(fmt.Errorf("%s exists already, so %s was not moved; nothing was written", to, from), f.Close())
		}
	}
	var quoted [3]string
	for i, path := range []string{filepath.Dir(to), from, to} {
		q, err := syntax.Quote(path, syntax.LangBash)
		if err != nil {
			return oneOfSeveral{}, err
		}
		quoted[i] = q
	}
	command := fmt.Sprintf("mkdir -p -- %s && test ! -e %s && mv -- %s %s", quoted[0], quoted[2], quoted[1], quoted[2])
	return oneOfSeveral{"bash", map[string]any{"command": command}}, nil
}

// hunk is a part of a patch of a file.
type hunk struct {
	anchors       []string // lines that come before it, one after the other, such as that of its function
	before, after []string // removed and inserted lines, both with the lines around
	atEnd         bool     // of the file
}

// hunksOf reads the lines of a patch of one file. A line without a mark is one around a change.
func hunksOf(body []string) (out []hunk) {
	var h hunk
	flush := func() {
		if len(h.before)+len(h.after) > 0 {
			out, h = append(out, h), hunk{}
		}
	}
	for _, line := range body {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line[2:]), "@@"))
			if anchor != "" && !unifiedHead.MatchString(anchor) {
				h.anchors = append(h.anchors, anchor)
			}
		case strings.HasPrefix(line, `\ No newline`):
		case strings.HasPrefix(line, "-"):
			h.before = append(h.before, line[1:])
		case strings.HasPrefix(line, "+"):
			h.after = append(h.after, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			h.before, h.after = append(h.before, line), append(h.after, line)
		}
	}
	flush()
	return slices.DeleteFunc(out, func(h hunk) bool { return slices.Equal(h.before, h.after) })
}

// unifiedHead matches line numbers behind "@@", which models count wrongly.
var unifiedHead = regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)?( @@.*)?$`)

// edit returns the part as an edit, wherever its lines are.
func (h hunk) edit() map[string]any {
	return map[string]any{"old_string": strings.Join(h.before, "\n"), "new_string": strings.Join(h.after, "\n")}
}

// located makes an edit from each part of a patch of a file: of whole lines, after its anchors and the part before
// it, with enough lines around that the edit is unique. Spaces at the ends of lines, and then those at their
// beginnings, need not match the file. A part without a place, or with more than one if its anchors are missing, is
// an error. If the file can't be read here, the edits are unchanged.
func located(ctx context.Context, c *tool.Call, path string, parts []hunk) (edits []any, err error) {
	text := ""
	if c.Env.Files != nil {
		text, _ = textOf(ctx, c, path) // edit_file gives the reason why it can't be read
	}
	if text == "" {
		for _, h := range parts {
			edits = append(edits, h.edit())
		}
		return edits, nil
	}
	lines, at := strings.Split(unix(text), "\n"), 0
	for n, h := range parts {
		i, why := h.place(lines, at)
		if why != "" {
			return nil, fmt.Errorf("part %d of %d of the patch of %s: %s; nothing was written", n+1, len(parts), path, why)
		}
		put := h.put(lines[i : i+len(h.before)])
		edits = append(edits, unique(lines, i, i+len(h.before), put))
		lines = slices.Concat(lines[:i], put, lines[i+len(h.before):])
		at = i + len(put)
	}
	return edits, nil
}

// place returns the line of a part, at or after a line; why gives the reason why there is none.
func (h hunk) place(lines []string, behind int) (at int, why string) {
	end := len(lines)
	if lines[end-1] == "" {
		end-- // after the end of the last line there is no line
	}
	from, anchored := behind, true
	for _, anchor := range h.anchors {
		i := slices.IndexFunc(lines[from:], func(l string) bool { return strings.TrimSpace(l) == anchor })
		if i < 0 {
			i = slices.IndexFunc(lines[from:], func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), anchor) })
		}
		if i < 0 {
			anchored = false
			break
		}
		from += i + 1
	}
	switch last := end - len(h.before); {
	case len(h.before) == 0 && !anchored:
		return 0, fmt.Sprintf("there is no line %q", h.anchors[len(h.anchors)-1])
	case len(h.before) == 0 && len(h.anchors) > 0 && !h.atEnd:
		return from, ""
	case len(h.before) == 0:
		return end, ""
	case h.atEnd && last >= behind && seek(lines[last:end], h.before, 0) == 0:
		return last, ""
	}
	if i := seek(lines, h.before, from); i >= 0 && anchored {
		return i, ""
	}
	i := seek(lines, h.before, 0)
	switch {
	case i < 0:
		return 0, notFound(strings.Join(lines, "\n"), strings.Join(h.before, "\n"))
	case seek(lines, h.before, i+1) >= 0:
		return 0, "its lines are in the file more than once, and not after the earlier parts of the patch"
	}
	return i, ""
}

// textOf returns the text of a file that a call may read.
func textOf(ctx context.Context, c *tool.Call, path string) (string, error) {
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return "", err
	}
	data, err := readWhole(ctx, c, resolved)
	if err != nil {
		return "", err
	}
	text, _, ok := decode(data)
	if !ok {
		return "", errBinary(Shown(c, resolved), data)
	}
	return text, nil
}

// seek finds lines among others, from a place on; -1: not found.
func seek(lines, sought []string, from int) int {
	for _, as := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.TrimRight(s, " \t\r") },
		strings.TrimSpace,
	} {
		for i := from; i+len(sought) <= len(lines); i++ {
			if slices.EqualFunc(lines[i:i+len(sought)], sought, func(a, b string) bool { return as(a) == as(b) }) {
				return i
			}
		}
	}
	return -1
}

// put returns the lines after the change: the context lines stay as the file has them.
func (h hunk) put(have []string) []string {
	head := 0
	for head < min(len(h.before), len(h.after)) && h.before[head] == h.after[head] {
		head++
	}
	tail := 0
	for tail < min(len(h.before), len(h.after))-head && h.before[len(h.before)-1-tail] == h.after[len(h.after)-1-tail] {
		tail++
	}
	return slices.Concat(have[:head], h.after[head:len(h.after)-tail], have[len(have)-tail:])
}

// unique returns the edit that replaces lines, with enough lines around that it is unique.
func unique(lines []string, from, to int, put []string) map[string]any {
	text, around := strings.Join(lines, "\n"), 0
	if len(put) == 0 {
		around = 1 // removed lines include a line end
	}
	for ; ; around++ {
		before, after := lines[max(0, from-around):from], lines[to:min(len(lines), to+around)]
		old := strings.Join(slices.Concat(before, lines[from:to], after), "\n")
		if old != "" && strings.Index(text, old) == strings.LastIndex(text, old) || around > len(lines) {
			return map[string]any{"old_string": old, "new_string": strings.Join(slices.Concat(before, put, after), "\n")}
		}
	}
}

// patchInBash matches a command that only passes a patch to apply_patch, as one vendor's models write it,
// perhaps in another folder.
var patchInBash = regexp.MustCompile(`(?s)^\s*(?:cd\s+([\w./-]+)\s*&&\s*)?(?:apply_patch|applypatch)\s*<<-?\s*['"]?(\w+)['"]?[ \t]*\n(.*)\n(\w+)\s*$`)

// patchedInBash turns such a command into the change of files. Any other stays a call of bash.
func patchedInBash(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	in, err := tool.Args[bashArgs](c)
	if err != nil {
		return "", nil, err
	}
	m := patchInBash.FindStringSubmatch(in.Command)
	if m == nil || m[2] != m[4] {
		return "", nil, nil
	}
	target, out, err := patched(ctx, c, m[3], m[1])
	if err != nil {
		return "", nil, err
	}
	raw, err := json.Marshal(out)
	return target, raw, err
}

// searched is a change of a file in blocks of text to search for and to replace: whole lines, as in a patch. A
// call without blocks is a plain call of edit_file.
func searched(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	first(args, "path", "file_path", "filePath")
	for _, name := range []string{"diff", "content", "blocks"} {
		text, _ := args[name].(string)
		parts, err := blocks(text)
		if err != nil {
			return "", nil, err
		}
		if len(parts) > 0 {
			path, _ := args["path"].(string)
			delete(args, name)
			args["edits"], err = located(ctx, c, path, parts)
			return "edit_file", args, err
		}
	}
	return "edit_file", args, nil
}

var (
	// A block begins with the first line, and ends with the other. A line of as many "=" as the first mark has
	// signs, or of seven, separates the searched text from its replacement.
	blockBegins = regexp.MustCompile(`^(<{5,}|-{5,}) SEARCH>?\s*$`)
	blockEnds   = regexp.MustCompile(`^(>{5,}|\+{5,}) REPLACE>?\s*$`)
	blockNoise  = regexp.MustCompile(`^(:start_line: ?\d+|-{5,})\s*$`) // after its beginning
)

// blocks reads blocks to search for and to replace. One that does not end is an error.
func blocks(text string) (out []hunk, err error) {
	var h *hunk
	divider, divided := "", false
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		mark := blockBegins.FindStringSubmatch(line)
		switch {
		case mark != nil && h == nil:
			h, divider, divided = &hunk{}, strings.Repeat("=", len(mark[1])), false
		case mark != nil, blockEnds.MatchString(line) && (h == nil || !divided):
			return nil, fmt.Errorf("block %d has no end, or no line of %q in it; nothing was written", len(out)+1, cmp.Or(divider, "======="))
		case h == nil:
		case blockEnds.MatchString(line):
			out, h = append(out, *h), nil
		case !divided && strings.TrimRight(line, " \t") == divider:
			divided = true
		case !divided && len(h.before) == 0 && blockNoise.MatchString(line):
		case divided:
			h.after = append(h.after, line)
		default:
			h.before = append(h.before, line)
		}
	}
	if h != nil {
		return nil, fmt.Errorf("block %d has no end; nothing was written", len(out)+1)
	}
	return out, nil
}
