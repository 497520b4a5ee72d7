package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/tool"
)

//go:embed list_files.md
var listFilesDoc string

const (
	defaultDepth = 3
	maxListed    = 500 // entries of one list
	maxPerDir    = 200 // entries of one directory
)

type listArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"directory"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels; 3 if not given"`
}

func listFiles() tool.Tool {
	t := tool.New("list_files", listFilesDoc, runList)
	t.Effects = pathEffect(tool.Read, func(in listArgs) string { return in.Path })
	return t
}

func runList(ctx context.Context, c *tool.Call, in listArgs) (tool.Result, error) {
	if in.Depth < 0 {
		return tool.Result{}, errors.New("depth counts from 1")
	}
	if in.Depth == 0 {
		in.Depth = defaultDepth
	}
	path, err := Resolve(ctx, c, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	t, top, err := openTree(ctx, c, path)
	if err != nil {
		return tool.Result{}, err
	}
	root := &branch{name: filepath.ToSlash(path) + "/", folder: &top}
	shown, err := t.grow(ctx, root, in.Depth)
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	root.writeTo(&b, 0)
	if shown == 0 {
		b.WriteString("[nothing in it, or nothing that is not ignored]\n")
	}
	return tool.Text(strings.TrimSuffix(b.String(), "\n")), nil
}

// branch is an entry of the list with the entries shown below it.
type branch struct {
	name   string
	note   string
	folder *folder // set for directories until they are grown
	below  []*branch
	hidden int // entries that are not in below
}

// grow fills the list level by level, so that entries near the top are shown first if there is not room for
// all.
func (t tree) grow(ctx context.Context, root *branch, depth int) (shown int, err error) {
	level := []*branch{root}
	for range depth {
		var next []*branch
		for _, b := range level {
			if err := t.open(ctx, b, min(maxPerDir, maxListed-shown)); err != nil {
				return 0, err
			}
			shown += len(b.below)
			for _, sub := range b.below {
				if sub.folder != nil {
					next = append(next, sub)
				}
			}
		}
		level = next
	}
	for _, b := range level {
		b.note = "…"
	}
	return shown, nil
}

// open fills one directory with up to room entries.
func (t tree) open(ctx context.Context, b *branch, room int) error {
	if b.folder.entries == nil {
		f, err := t.list(ctx, b.folder.path, b.folder.rules)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			b.note = "[cannot be read]"
			return nil
		}
		b.folder = &f
	}
	for _, e := range b.folder.entries[:min(room, len(b.folder.entries))] {
		b.below = append(b.below, b.folder.entry(e))
	}
	b.hidden = len(b.folder.entries) - len(b.below)
	return nil
}

func (f *folder) entry(e fs.DirEntry) *branch {
	b := &branch{name: e.Name()}
	switch info, err := e.Info(); {
	case e.IsDir():
		b.name += "/"
		b.folder = &folder{path: filepath.Join(f.path, e.Name()), rules: f.rules}
	case e.Type()&fs.ModeSymlink != 0:
		b.note = "symbolic link"
	case !e.Type().IsRegular():
		b.note = e.Type().String()
	case err == nil:
		b.note = size(info.Size())
	}
	return b
}

func (b *branch) writeTo(w *strings.Builder, indent int) {
	fmt.Fprintf(w, "%*s%s", 2*indent, "", b.name)
	if b.note != "" {
		w.WriteString("  " + b.note)
	}
	w.WriteByte('\n')
	for _, sub := range b.below {
		sub.writeTo(w, indent+1)
	}
	if b.hidden > 0 {
		fmt.Fprintf(w, "%*s[%d more not shown; list this directory by itself or use find_files]\n", 2*indent+2, "", b.hidden)
	}
}
