package tools

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

//go:embed editor.md
var editorDoc string

// Name and type of the editor that Anthropic's models are trained with. The type stands for its description and schema
// on the vendor's wire.
const (
	editorName = "str_replace_based_edit_tool"
	editorType = "text_editor_20250728"
)

type editorArgs struct {
	Command string  `json:"command" enum:"view,str_replace,create,insert"`
	Path    string  `json:"path" jsonschema:"file"`
	Old     string  `json:"old_str,omitempty" jsonschema:"for str_replace: text to replace"`
	New     *string `json:"new_str,omitempty" jsonschema:"for str_replace: text in its place"`
	File    *string `json:"file_text,omitempty" jsonschema:"for create: all of it"`
	Line    *int    `json:"insert_line,omitempty" jsonschema:"for insert: line to insert after"`
	Text    *string `json:"insert_text,omitempty" jsonschema:"for insert: text"`
	Range   []int   `json:"view_range,omitempty" jsonschema:"for view: first and last line"`
}

// Editing makes a list of tools show the editor of one vendor in place of edit_file and write_file, for models
// that are trained with it. A call of it becomes one of read_file, write_file or edit_file: that is judged, run
// and logged. Hidden are the further tools that it needs. A list without edit_file stays as it is.
func Editing(list []tool.Tool) (shown, hidden []tool.Tool) {
	for _, t := range list {
		switch t.Name {
		case "edit_file":
			shown, hidden = append(shown, editor()), append(hidden, t)
		case "write_file":
			hidden = append(hidden, t)
		default:
			shown = append(shown, t)
		}
	}
	if !slices.ContainsFunc(hidden, func(t tool.Tool) bool { return t.Name == "edit_file" }) {
		return list, nil
	}
	for i := range shown {
		shown[i].Doc = strings.ReplaceAll(shown[i].Doc, "edit_file", editorName)
	}
	return shown, hidden
}

func editor() tool.Tool {
	t := tool.New(editorName, editorDoc, func(context.Context, *tool.Call, editorArgs) (tool.Result, error) {
		return tool.Result{}, errors.New("a command of the editor stands for another call, and there is none here")
	})
	t.Vendor = editorType
	t.Normalize = func(args map[string]any) {
		first(args, "path", "file_path")
		first(args, "insert_text", "text", "new_text")
		if _, given := args["insert_text"]; args["command"] == "insert" && !given {
			move(args, "new_str", "insert_text")
		}
	}
	t.Resolve = resolvedBy(editorCommand)
	return t
}
