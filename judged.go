package inspan

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/inspan/inspan/tool"
)

// judgedFiles are files of which only those can be changed that a call was
// judged by: between the verdict and the run a link may have come to lead
// elsewhere.
type judgedFiles struct {
	tool.Files
	effects []tool.Effect
}

// held is the environment of a call that runs.
func held(env tool.Env, effects []tool.Effect) tool.Env {
	anything := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.External })
	if env.Files != nil && !anything {
		env.Files = judgedFiles{env.Files, effects}
	}
	return env
}

// Change implements [tool.Files].
func (f judgedFiles) Change(ctx context.Context, c tool.Change) error {
	path, err := f.Resolve(ctx, c.Path)
	if err != nil {
		return err
	}
	for _, e := range f.effects {
		if e.Kind == tool.Write && tool.Inside(e.Path, path) {
			c.Path, c.Exact = path, true
			return f.Files.Change(ctx, c)
		}
	}
	return &fs.PathError{Op: "change", Path: c.Path, Err: fmt.Errorf("it leads to %s, which this call was not judged by: %w", path, fs.ErrPermission)}
}
