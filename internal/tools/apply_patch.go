package tools

import (
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

// Patching has a list of tools show apply_patch in the place of edit_file, for models that are trained to change files
// by patches. A call of it is one of edit_file, write_file or delete_file, or several of them: that is what is judged,
// runs and stands in the log. Hidden are the tools that it needs besides. A list without edit_file stays as it is.
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
	t.Mend = func(args map[string]any) { first(args, "input", "patch", "patch_text", "patchText", "diff") }
	t.Stands = func(ctx context.Context, c *tool.Call) (string, json.RawMessage, error) {
		in, err := tool.Args[patchArgs](c)
		if err != nil {
			return "", nil, err
		}
		target, out, err := patched(ctx, c, map[string]any{"input": in.Input})
		if err != nil {
			return "", nil, err
		}
		raw, err := json.Marshal(out)
		return target, raw, err
	}
	return t
}

// patched is a patch in the form that one vendor's models are trained with: "*** Begin Patch", for each
// file "*** Update File: PATH" and hunks after "@@", "*** End Patch".
func patched(ctx context.Context, c *tool.Call, args map[string]any) (target string, out map[string]any, err error) {
	text := ""
	for _, name := range []string{"input", "patch", "patch_text", "patchText", "diff"} {
		if s, ok := args[name].(string); ok {
			text = s
		}
	}
	var calls, moves []oneOfSeveral
	updated := ""
	for part := range strings.SplitSeq("\n"+text, "\n*** ") {
		head, rest, _ := strings.Cut(strings.ReplaceAll(part, "\r\n", "\n"), "\n")
		action, path, _ := strings.Cut(strings.TrimSpace(head), ": ")
		body := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
		switch action {
		case "", "Begin Patch", "End Patch", "End of File":
		case "Add File":
			for i, line := range body {
				body[i] = strings.TrimPrefix(line, "+")
			}
			calls = append(calls, oneOfSeveral{"write_file", map[string]any{"path": path, "content": strings.Join(body, "\n") + "\n"}})
		case "Delete File":
			calls = append(calls, oneOfSeveral{"delete_file", map[string]any{"path": path}})
		case "Update File":
			updated = path
			if edits := hunkEdits(ctx, c, path, body); len(edits) > 0 {
				calls = append(calls, oneOfSeveral{"edit_file", map[string]any{"path": path, "edits": edits}})
			}
		case "Move to":
			if edits := hunkEdits(ctx, c, updated, body); len(edits) > 0 {
				calls = append(calls, oneOfSeveral{"edit_file", map[string]any{"path": updated, "edits": edits}})
			}
			move, err := moved(updated, path)
			if err != nil {
				return "", nil, err
			}
			moves = append(moves, move)
		default:
			return "", nil, fmt.Errorf("a patch can't do %q; use edit_file", action)
		}
	}
	if calls = append(calls, moves...); len(calls) == 0 {
		return "", nil, errors.New("the patch names no file; it begins with *** Begin Patch and *** Update File: PATH")
	}
	return asOne(calls)
}

// moved moves a file, which replaces no other.
func moved(from, to string) (oneOfSeveral, error) {
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
	anchors       []string // lines that stand before it, one after the other, such as that of its function
	before, after []string // what it takes away and puts there, both with the lines around
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

// unifiedHead is what stands behind "@@" where a patch has numbers of lines, which models count wrongly.
var unifiedHead = regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)?( @@.*)?$`)

// hunks makes an edit of each part of a patch, wherever its lines are.
func hunks(body []string) []any {
	var edits []any
	for _, h := range hunksOf(body) {
		edits = append(edits, map[string]any{"old_string": strings.Join(h.before, "\n"), "new_string": strings.Join(h.after, "\n")})
	}
	return edits
}

// hunkEdits makes an edit of each part of a patch of a file that is there: behind its anchors and the part before it,
// with so many lines around that the edit fits nowhere else. Spaces at the ends of lines, and then those at their
// beginnings, need not be as the file has them. What is found nowhere is an edit as it stands, which then fails with
// what is near.
func hunkEdits(ctx context.Context, c *tool.Call, path string, body []string) []any {
	var edits []any
	text, ok := textOf(ctx, c, path)
	if !ok {
		return hunks(body)
	}
	lines, at := strings.Split(unix(text), "\n"), 0
	for _, h := range hunksOf(body) {
		from := at
		for _, anchor := range h.anchors {
			if i := seek(lines, []string{anchor}, from); i >= 0 {
				from = i + 1
			}
		}
		i := seek(lines, h.before, from)
		switch {
		case len(h.before) == 0 && len(h.anchors) == 0: // it is added at the end
			if i = len(lines); lines[i-1] == "" {
				i--
			}
		case len(h.before) == 0:
			i = from
		case i < 0:
			i = seek(lines, h.before, 0)
		}
		if i < 0 {
			edits = append(edits, map[string]any{"old_string": strings.Join(h.before, "\n"), "new_string": strings.Join(h.after, "\n")})
			continue
		}
		put := h.put(lines[i : i+len(h.before)])
		edits = append(edits, unique(lines, i, i+len(h.before), put))
		lines = slices.Concat(lines[:i], put, lines[i+len(h.before):])
		at = i + len(put)
	}
	return edits
}

// textOf is the text of a file that a call may read.
func textOf(ctx context.Context, c *tool.Call, path string) (string, bool) {
	if c.Env.Files == nil {
		return "", false
	}
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return "", false
	}
	data, err := readWhole(ctx, c, resolved)
	if err != nil {
		return "", false
	}
	text, _, ok := decode(data)
	return text, ok
}

// seek finds lines among others, from a place on; -1: they are not there.
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

// put is what stands in the place of lines after the change: those around it stay as the file has them.
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

// unique is the edit that puts lines in the place of others, with so many around that it fits nowhere else.
func unique(lines []string, from, to int, put []string) map[string]any {
	text, around := strings.Join(lines, "\n"), 0
	if len(put) == 0 {
		around = 1 // lines that go take an end of a line with them
	}
	for ; ; around++ {
		before, after := lines[max(0, from-around):from], lines[to:min(len(lines), to+around)]
		old := strings.Join(slices.Concat(before, lines[from:to], after), "\n")
		if old != "" && strings.Index(text, old) == strings.LastIndex(text, old) || around > len(lines) {
			return map[string]any{"old_string": old, "new_string": strings.Join(slices.Concat(before, put, after), "\n")}
		}
	}
}

// patchInBash is a command that only feeds a patch to apply_patch, as one vendor's models write it, perhaps
// in another folder.
var patchInBash = regexp.MustCompile(`(?s)^\s*(?:cd\s+([\w./-]+)\s*&&\s*)?(?:apply_patch|applypatch)\s*<<-?\s*['"]?(\w+)['"]?[ \t]*\n(.*)\n(\w+)\s*$`)

// patchedInBash makes such a command the change of files that it is meant to be. Any other is one of bash.
func patchedInBash(ctx context.Context, c *tool.Call) (name string, args json.RawMessage, err error) {
	in, err := tool.Args[bashArgs](c)
	if err != nil {
		return "", nil, err
	}
	m := patchInBash.FindStringSubmatch(in.Command)
	if m == nil || m[2] != m[4] {
		return "", nil, nil
	}
	target, out, err := patched(ctx, c, map[string]any{"input": m[3]})
	if err != nil {
		return "", nil, err
	}
	if m[1] != "" {
		for _, one := range append([]map[string]any{out}, argsOf(out)...) {
			if path, ok := one["path"].(string); ok && !filepath.IsAbs(path) {
				one["path"] = filepath.Join(m[1], path)
			}
		}
	}
	raw, err := json.Marshal(out)
	return target, raw, err
}
