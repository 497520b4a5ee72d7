package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aymanbagabas/go-udiff"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const (
	maxShownDiff  = 8 << 10   // bytes of a diff the model sees
	maxStoredDiff = 100 << 10 // bytes of a diff kept for people
	maxDiffed     = 4 << 20   // bytes of text that are compared at all
)

// A draft is a change of one text file that is worked out and not yet made.
type draft struct {
	path       string
	exists     bool
	before     []byte
	after      []byte
	old, new   string // text before and after, for the diff; empty for binary content
	notes      []string
	partlyRead bool // the session has not seen all of it
}

// load reads the file a draft starts from. A file that exists must be as the
// session last saw it.
func load(ctx context.Context, c *tool.Call, path string) (draft, error) {
	d, err := open(ctx, c, path)
	if err != nil || !d.partlyRead {
		return d, err
	}
	if _, seen := c.Seen.Digest(d.path); !seen {
		return draft{}, fmt.Errorf("%s exists and was not read in this session; read it first", Shown(c, d.path))
	}
	return draft{}, changed(c, d.path)
}

// open is load for a file that the session need not have seen.
func open(ctx context.Context, c *tool.Call, path string) (draft, error) {
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return draft{}, err
	}
	d := draft{path: resolved}
	d.before, err = readWhole(ctx, c, resolved)
	if errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	if err != nil {
		return draft{}, err
	}
	seen, _ := c.Seen.Digest(resolved)
	d.exists, d.partlyRead = true, seen != tool.Digest(d.before)
	return d, nil
}

// unfit marks the reason why a change can't be made, so that no one is asked about it. Nil stays nil, and a file
// that is closed to the preview is no reason: it is open to the call once a person has approved it.
func unfit(why error) error {
	if why == nil || errors.Is(why, fs.ErrPermission) {
		return why
	}
	return unfitError{why}
}

// unfitError is a [tool.ErrInvalid] that says only why.
type unfitError struct{ error }

// Unwrap makes [errors.Is] find tool.ErrInvalid and the reason.
func (e unfitError) Unwrap() []error { return []error{tool.ErrInvalid, e.error} }

func changed(c *tool.Call, path string) error {
	return fmt.Errorf("%s has changed since it was read; read it again, nothing was written", Shown(c, path))
}

// commit makes the change, if the file is still what the draft started from.
func (d draft) commit(ctx context.Context, c *tool.Call) (tool.File, error) {
	cond := tool.NoFile
	if d.exists {
		cond = tool.Digest(d.before)
	}
	err := c.Env.Files.Change(ctx, tool.Change{Path: d.path, Data: d.after, IfDigest: cond})
	if errors.Is(err, tool.ErrChanged) {
		return tool.File{}, changed(c, d.path)
	}
	if err != nil {
		return tool.File{}, err
	}
	return tool.File{
		Path:    d.path,
		Digest:  tool.Digest(d.after),
		Written: true,
		Partial: d.partlyRead,
		Diff:    cutDiff(d.diff(c), maxStoredDiff),
	}, nil
}

// made is commit with the result of the call, which tells the model what was done.
func (d draft) made(ctx context.Context, c *tool.Call, said string) (tool.Result, error) {
	file, err := d.commit(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Text(said)
	r.Files = []tool.File{file}
	return r, nil
}

// diff compares before and after. Line ends do not count, so that a diff shows the intended change.
func (d draft) diff(c *tool.Call) string {
	if len(d.old)+len(d.new) > maxDiffed {
		return ""
	}
	name := Shown(c, d.path)
	from := name
	if !d.exists {
		from = "/dev/null"
	}
	return udiff.Unified(from, name, unix(d.old), unix(d.new))
}

// preview shows a person what the draft changes: a diff, or words for a change without one. It is empty, so that people
// see the arguments, if the file is too large to compare or not text. An error says why there is no draft.
func (d draft) preview(c *tool.Call, why error) (string, error) {
	if why != nil {
		return "", unfit(why)
	}
	diff := d.diff(c)
	switch {
	case diff != "":
		return cutDiff(diff, maxStoredDiff), nil
	case d.exists && bytes.Equal(d.before, d.after):
		return Shown(c, d.path) + " stays as it is", nil
	case !d.exists && len(d.after) == 0:
		return Shown(c, d.path) + " (new, empty)", nil
	case d.old != "" && unix(d.old) == unix(d.new):
		return Shown(c, d.path) + ": only line ends change", nil
	}
	return "", nil
}

// diffLeftOut ends the line that stands for the part omitted by cutDiff.
const diffLeftOut = " of the diff left out …"

// cutDiff omits the middle of a long diff, and says so.
func cutDiff(diff string, limit int) string {
	head, tail, dropped := text.CutMiddle(diff, limit)
	if dropped == 0 {
		return diff
	}
	return fmt.Sprintf("%s… %s%s\n%s", head, size(int64(dropped)), diffLeftOut, tail)
}
