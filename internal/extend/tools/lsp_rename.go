package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// drafts works out a rename.
func (q question) drafts(ctx context.Context) ([]draft, error) {
	var edits []lsp.FileEdit
	err := q.each(ctx, func(at lsp.Position) (bool, error) {
		var err error
		edits, err = q.m.Rename(ctx, q.path, at, q.in.NewName)
		return len(edits) > 0, err
	})
	if err == nil && len(edits) == 0 {
		err = errors.New("that changes nothing")
	}
	var out []draft
	for _, e := range edits {
		out = append(out, draft{path: e.Path, exists: true, before: []byte(e.Before), after: []byte(e.After), old: e.Before, new: e.After})
	}
	return out, err
}

func diffs(c *tool.Call, drafts []draft) string {
	var b strings.Builder
	for _, d := range drafts {
		b.WriteString(d.diff(c))
	}
	return b.String()
}

// rename changes all files or, if one can't be changed, none.
func (q question) rename(ctx context.Context) (tool.Result, error) {
	drafts, err := q.drafts(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	var r tool.Result
	for i, d := range drafts {
		file, err := d.commit(ctx, q.c)
		if err != nil {
			r.Files, err = q.takeBack(ctx, drafts[:i], fmt.Errorf("rename in %s: %w", Shown(q.c, d.path), err))
			return r, err
		}
		r.Files = append(r.Files, file)
	}
	r.Parts = llm.Say(fmt.Sprintf("renamed %s to %s in %s\n%s", q.in.Symbol, q.in.NewName,
		text.Count(len(drafts), "file"), cutDiff(diffs(q.c, drafts), maxShownDiff)))
	return r, nil
}

// takeBack undoes the changes that were made before one failed, even for a cancelled call. It returns the files
// that could not be restored.
func (q question) takeBack(ctx context.Context, made []draft, cause error) ([]tool.File, error) {
	ctx = context.WithoutCancel(ctx)
	var left []tool.File
	for _, d := range made {
		err := q.c.Env.Files.Change(ctx, tool.Change{Path: d.path, Data: d.before, IfDigest: tool.Digest(d.after)})
		if err != nil {
			cause = errors.Join(cause, fmt.Errorf("%s stays changed: %w", Shown(q.c, d.path), err))
			left = append(left, tool.File{Path: d.path, Digest: tool.Digest(d.after), Written: true, Diff: cutDiff(d.diff(q.c), maxStoredDiff)})
		}
	}
	if left == nil {
		cause = fmt.Errorf("%w; no file was changed", cause)
	}
	return left, cause
}
