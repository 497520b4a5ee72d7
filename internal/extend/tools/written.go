package tools

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// maxWritten is how many of the files that a command writes are checked.
const maxWritten = 16

// A written file is one that a command says it writes, in its state before the command ran.
type written struct {
	path   string
	digest string // empty means there was none
	known  bool   // the session knew its content, or that it did not exist
}

// toWrite reads the files that a command says it writes.
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
			continue // not a file, or not one to edit
		default:
			w.digest = tool.Digest(data)
			seen, _ := c.Seen.Digest(e.Path)
			w.known = seen == w.digest
		}
		out = append(out, w)
	}
	return out
}

// A place is a file outside of the workspace that a sandboxed command was judged to make. A sandbox can only
// open existing files, so the file is made before, and removed if it was not used.
type place struct {
	files tool.Files
	path  string
}

// prepare makes the missing files that a sandbox must open. If one can't be made, the command can't make it
// either.
func prepare(ctx context.Context, c *tool.Call, b tool.Box, effects []tool.Effect) []place {
	var out []place
	folders := madeFolders(effects)
	for _, path := range b.Write {
		if text.Inside(c.Env.Root, path) || exists(ctx, c.Env, path) {
			continue
		}
		if slices.Contains(folders, path) {
			within := tool.Change{Path: filepath.Join(path, ".inspan-new"), IfDigest: tool.NoFile}
			if err := c.Env.Files.Change(ctx, within); err == nil {
				_ = c.Env.Files.Change(ctx, tool.Change{Path: within.Path, Remove: true}) // it disturbs nothing
			}
			continue
		}
		if err := c.Env.Files.Change(ctx, tool.Change{Path: path, IfDigest: tool.NoFile}); err == nil {
			out = append(out, place{c.Env.Files, path})
		}
	}
	return out
}

// madeFolders returns the paths of folders that commands make.
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

// unused removes files that were made for a failed command and that it has not written.
func unused(made []place, code int) {
	for _, p := range made {
		if code != 0 {
			_ = p.files.Change(context.Background(), tool.Change{Path: p.path, Remove: true, IfDigest: tool.Digest(nil)}) // it has content
		}
	}
}

// wrote returns the changed files. If a command of the session made a file from nothing, or from content that
// the session knew, the session still knows it.
func wrote(ctx context.Context, c *tool.Call, before []written) []tool.File {
	var out []tool.File
	for _, w := range before {
		data, err := readWhole(ctx, c, w.path)
		f := tool.File{Path: w.path, Written: true}
		switch {
		case err == nil:
			f.Digest, f.Partial = tool.Digest(data), !w.known
		case !errors.Is(err, fs.ErrNotExist):
			continue
		}
		if f.Digest != w.digest {
			out = append(out, f)
		}
	}
	return out
}
