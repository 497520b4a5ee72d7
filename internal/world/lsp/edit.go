package lsp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxEdited = 500      // files of one edit
	maxEdits  = 32 << 20 // bytes of all of them
)

// edits returns the new contents of files.
func (c *client) edits(ctx context.Context, w workspaceEdit) ([]FileEdit, error) {
	all, err := w.files()
	if err != nil {
		return nil, err
	}
	if len(all) > maxEdited {
		return nil, fmt.Errorf("it changes %d files; %d are the most", len(all), maxEdited)
	}
	var out []FileEdit
	size := 0
	for name, edits := range all {
		e, err := c.edit(ctx, name, edits)
		if err != nil {
			return nil, err
		}
		if size += len(e.Before) + len(e.After); size > maxEdits {
			return nil, fmt.Errorf("the files it changes are larger than %d MiB together", maxEdits>>20)
		}
		if e.Before != e.After {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b FileEdit) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(out); i++ {
		if out[i].Path == out[i-1].Path {
			return nil, fmt.Errorf("%s is changed under two names", out[i].Path)
		}
	}
	return out, nil
}

// files collects the edits of each file, by the server's name for it.
func (w workspaceEdit) files() (map[string][]textEdit, error) {
	if len(w.Document) == 0 {
		return w.Changes, nil
	}
	all := map[string][]textEdit{}
	for _, d := range w.Document {
		if d.Kind != "" {
			return nil, fmt.Errorf("it would %s files", d.Kind)
		}
		if _, twice := all[d.Document.URI]; twice {
			return nil, errors.New("it edits a file twice")
		}
		all[d.Document.URI] = d.Edits
	}
	return all, nil
}

// edit returns the new content of one file. A file that changed since the server was informed is an error: the
// edits refer to another text.
func (c *client) edit(ctx context.Context, name string, edits []textEdit) (FileEdit, error) {
	path, err := pathOf(name)
	if err != nil {
		return FileEdit{}, err
	}
	if path, err = c.env.Files.Resolve(ctx, path); err != nil {
		return FileEdit{}, err
	}
	if !text.Inside(c.env.Root, path) {
		return FileEdit{}, fmt.Errorf("%s is outside of the workspace", path)
	}
	text, now, err := readText(ctx, c.env.Files, path)
	if err != nil {
		return FileEdit{}, err
	}
	if c.outdated(path, text, now) {
		return FileEdit{}, fmt.Errorf("%s changed meanwhile; try again", path)
	}
	after, err := newSheet(text, c.utf8).edit(edits)
	if err != nil {
		return FileEdit{}, fmt.Errorf("%s: %w", path, err)
	}
	return FileEdit{path, text, after}, nil
}

// outdated reports whether the server has another version of a file.
func (c *client) outdated(path, text string, now stamp) bool {
	c.syncing <- struct{}{}
	defer func() { <-c.syncing }()
	if d := c.docs[path]; d != nil {
		return d.text != text
	}
	seen, ok := c.watch.seen[path]
	return ok && seen != now
}
