package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed edit_file.md
var editFileDoc string

type editArgs struct {
	Path  string `json:"path" jsonschema:"file"`
	Edits []edit `json:"edits" jsonschema:"edits"`
	Undo  bool   `json:"undo,omitempty" jsonschema:"takes an edit back"`
}

// takenBack ends the first line of the result of an edit that undoes one.
const takenBack = " taken back"

type edit struct {
	Old string `json:"old_string" jsonschema:"text to replace, exactly"`
	New string `json:"new_string" jsonschema:"text in its place"`
	All bool   `json:"replace_all,omitempty" jsonschema:"replace every match"`
}

// editForm is the schema for models: one edit next to the path. They may also write the list that it becomes.
const editForm = `{"type":"object","properties":{
"path":{"type":"string","description":"file"},
"old_string":{"type":"string","description":"text to replace, exactly"},
"new_string":{"type":"string","description":"text in its place"},
"replace_all":{"type":"boolean","description":"replace every match"}},
"required":["path","old_string","new_string"],"additionalProperties":false}`

func editFile() tool.Tool {
	t := tool.New("edit_file", editFileDoc, runEdit)
	t.ModelSchema = json.RawMessage(editForm)
	t.Effects = pathEffect(tool.Write, func(in editArgs) string { return in.Path })
	t.Preview = withArgs(func(ctx context.Context, c *tool.Call, in editArgs) (string, error) {
		d, _, err := draftEdit(ctx, c, in)
		return d.preview(c, err)
	})
	return t
}

func runEdit(ctx context.Context, c *tool.Call, in editArgs) (tool.Result, error) {
	d, made, err := draftEdit(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	what := text.Count(made, "replacement")
	if in.Undo {
		what += takenBack
	}
	return d.made(ctx, c, fmt.Sprintf("%s: %s\n%s", Shown(c, d.path), what, cutDiff(d.diff(c), maxShownDiff)))
}

// draftEdit works out the change and how many replacements it makes.
func draftEdit(ctx context.Context, c *tool.Call, in editArgs) (d draft, made int, err error) {
	if len(in.Edits) == 0 {
		return draft{}, 0, errors.New("there are no edits")
	}
	d, err = open(ctx, c, in.Path)
	if err != nil {
		return draft{}, 0, err
	}
	text, enc, ok := decode(d.before)
	if !ok {
		return draft{}, 0, errBinary(Shown(c, d.path), d.before)
	}
	d.old, d.new = text, text
	for i, e := range in.Edits {
		if d.partlyRead && e.All {
			return draft{}, 0, fmt.Errorf("%s is not as you have seen it; read it before you replace every match", Shown(c, d.path))
		}
		var n int
		d.new, n, err = applyEdit(d.new, e)
		if err != nil {
			return draft{}, 0, fmt.Errorf("edit %d of %d in %s: %w; nothing was written", i+1, len(in.Edits), Shown(c, d.path), err)
		}
		made += n
	}
	if d.new == d.old {
		return draft{}, 0, errors.New("the edits together change nothing; nothing was written")
	}
	d.after, err = enc.encode(d.new)
	return d, made, err
}
