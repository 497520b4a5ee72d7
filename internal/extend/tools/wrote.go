package tools

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/tool"
)

// maxWritten is how many files of those that a command writes are looked at.
const maxWritten = 16

// A written file is one that a command says it writes, as it was before the command ran.
type written struct {
	path   string
	digest string // empty: there was none
	known  bool   // the session knew what it held, or that it was not there
}

// toWrite looks at the files that a command says it writes.
func toWrite(ctx context.Context, c *tool.Call, effects []tool.Effect) []written {
	var out []written
	for _, e := range effects {
		if e.Kind != tool.Write || len(out) == maxWritten {
			continue
		}
		w := written{path: e.Path}
		data, err := readWhole(ctx, c, e.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.known = true
		case err != nil:
			continue // not a file, or none that anybody would edit
		default:
			w.digest = tool.Digest(data)
			seen, _ := c.Seen.Digest(e.Path)
			w.known = seen == w.digest
		}
		out = append(out, w)
	}
	return out
}

// A place is a file outside of the workspace that a command in a box was judged to make. A box
// can only open what is there, so it is made before, and taken away where nothing came of it.
type place struct {
	files tool.Files
	path  string
}

// prepare makes the files that a box is to open and that are not there yet. What can't be
// made the command can't make either.
func prepare(ctx context.Context, c *tool.Call, b tool.Box, effects []tool.Effect) []place {
	var out []place
	folders := madeFolders(effects)
	for _, path := range b.Write {
		if tool.Inside(c.Env.Root, path) || exists(ctx, c.Env, path) {
			continue
		}
		if slices.Contains(folders, path) {
			within := tool.Change{Path: filepath.Join(path, ".inspan-new"), If: tool.NoFile}
			if err := c.Env.Files.Change(ctx, within); err == nil {
				_ = c.Env.Files.Change(ctx, tool.Change{Path: within.Path, Remove: true}) // it is in nobody's way
			}
			continue
		}
		if err := c.Env.Files.Change(ctx, tool.Change{Path: path, If: tool.NoFile}); err == nil {
			out = append(out, place{c.Env.Files, path})
		}
	}
	return out
}

// madeFolders are the paths that commands make folders of.
func madeFolders(effects []tool.Effect) []string {
	var out []string
	mkdir := false
	for _, e := range effects {
		switch {
		case e.Kind == tool.Execute:
			mkdir = e.Words != nil && len(e.Words.Argv) > 0 && e.Words.Argv[0] == "mkdir"
		case e.Kind == tool.Write && mkdir:
			out = append(out, e.Path)
		}
	}
	return out
}

// unused takes away what a command that failed has left as it was made for it.
func unused(made []place, code int) {
	for _, p := range made {
		if code != 0 {
			_ = p.files.Change(context.Background(), tool.Change{Path: p.path, Remove: true, If: tool.Digest(nil)}) // it holds something
		}
	}
}

// wrote tells which of the files have changed. What a command of the session made of
// nothing, or of what the session knew, it still knows.
func wrote(ctx context.Context, c *tool.Call, before []written) []tool.File {
	var out []tool.File
	for _, w := range before {
		data, err := readWhole(ctx, c, w.path)
		f := tool.File{Path: w.path, Written: true}
		switch {
		case err == nil:
			f.Digest, f.Partly = tool.Digest(data), !w.known
		case !errors.Is(err, fs.ErrNotExist):
			continue
		}
		if f.Digest != w.digest {
			out = append(out, f)
		}
	}
	return out
}
