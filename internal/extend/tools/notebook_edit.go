package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed notebook_edit.md
var notebookDoc string

type notebookArgs struct {
	Path   string `json:"path" jsonschema:"notebook, absolute or relative to the current directory"`
	Action string `json:"action" enum:"show,replace,insert,delete"`
	Cell   int    `json:"cell,omitempty" jsonschema:"number of the cell, from 1"`
	Source string `json:"source,omitempty" jsonschema:"new source of the cell"`
	Type   string `json:"type,omitempty" enum:"code,markdown,raw" jsonschema:"a new cell is code if not given"`
}

func notebookEdit() tool.Tool {
	t := tool.New("notebook_edit", notebookDoc, runNotebook)
	t.Effects = withArgs(func(ctx context.Context, c *tool.Call, in notebookArgs) ([]tool.Effect, error) {
		kind := tool.Write
		if in.Action == "show" {
			kind = tool.Read
		}
		path, err := Resolve(ctx, c, in.Path)
		return []tool.Effect{{Kind: kind, Path: path}}, err
	})
	t.Preview = withArgs(func(ctx context.Context, c *tool.Call, in notebookArgs) (string, error) {
		d, _, err := draftNotebook(ctx, c, in)
		return d.preview(c, err)
	})
	return t
}

func runNotebook(ctx context.Context, c *tool.Call, in notebookArgs) (tool.Result, error) {
	if in.Action == "show" {
		return showNotebook(ctx, c, in.Path)
	}
	d, done, err := draftNotebook(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	return d.made(ctx, c, fmt.Sprintf("%s: %s\n%s", Shown(c, d.path), done, cutDiff(d.diff(c), maxShownDiff)))
}

func showNotebook(ctx context.Context, c *tool.Call, path string) (tool.Result, error) {
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := readWhole(ctx, c, resolved)
	if err != nil {
		return tool.Result{}, err
	}
	nb, err := parseNotebook(data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", Shown(c, resolved), err)
	}
	r := tool.Text(nb.text())
	r.Files = []tool.File{{Path: resolved, Digest: tool.Digest(data)}}
	return r, nil
}

// draftNotebook works out a change, and describes it.
func draftNotebook(ctx context.Context, c *tool.Call, in notebookArgs) (d draft, done string, err error) {
	d, err = load(ctx, c, in.Path)
	if err != nil {
		return draft{}, "", err
	}
	nb, err := parseNotebook(d.before)
	if err != nil {
		return draft{}, "", fmt.Errorf("%s: %w", Shown(c, d.path), err)
	}
	last := len(nb.cells)
	if in.Action == "insert" {
		last++
	}
	switch {
	case in.Cell < 1 || in.Cell > last:
		return draft{}, "", fmt.Errorf("there is no cell %d; the notebook has %s", in.Cell, text.Count(len(nb.cells), "cell"))
	case in.Type != "" && in.Type != "code" && in.Type != "markdown" && in.Type != "raw":
		return draft{}, "", fmt.Errorf("type %q is none of code, markdown, raw", in.Type)
	}
	switch in.Action {
	case "replace":
		d.after, err = nb.replace(in.Cell-1, in.Type, in.Source)
	case "insert":
		d.after, err = nb.insert(in.Cell-1, in.Type, in.Source)
	case "delete":
		d.after = nb.remove(in.Cell - 1)
	default:
		err = fmt.Errorf("action %q is none of show, replace, insert, delete", in.Action)
	}
	if err != nil {
		return draft{}, "", err
	}
	if _, err := parseNotebook(d.after); err != nil { // never write what can't be read again
		return draft{}, "", fmt.Errorf("the change would break the notebook: %w", err)
	}
	d.old, d.new = string(d.before), string(d.after)
	if d.old == d.new {
		return draft{}, "", errors.New("this changes nothing; nothing was written")
	}
	return d, fmt.Sprintf("cell %d: %s", in.Cell, in.Action), nil
}
