package tools

import (
	"context"
	"errors"
	"io/fs"

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
			w.known = c.Seen[e.Path] == w.digest
		}
		out = append(out, w)
	}
	return out
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
