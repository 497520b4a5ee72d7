package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// maxFile is the largest file that is read as a whole, in bytes.
const maxFile = 64 << 20

// Resolve returns the real path that a call means, even if it spells a name differently than the file system
// ([asSpelled]). It is joined and not cleaned before links are followed, so that ".." means the same as to the
// kernel.
func Resolve(ctx context.Context, c *tool.Call, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = c.Cwd + string(filepath.Separator) + path
	}
	return c.Env.Files.Resolve(ctx, asSpelled(ctx, c, path))
}

// Shown writes a path short: relative to the workspace if it is inside.
func Shown(c *tool.Call, path string) string {
	rel, err := filepath.Rel(c.Env.Root, path)
	if err != nil || !text.Inside(c.Env.Root, path) {
		return path
	}
	return filepath.ToSlash(rel)
}

// pathEffect makes the Effects of a tool with one path.
func pathEffect[In any](kind tool.EffectKind, path func(In) string) func(context.Context, *tool.Call) ([]tool.Effect, error) {
	return withArgs(func(ctx context.Context, c *tool.Call, in In) ([]tool.Effect, error) {
		resolved, err := Resolve(ctx, c, path(in))
		if err != nil {
			return nil, err
		}
		return []tool.Effect{{Kind: kind, Path: resolved}}, nil
	})
}

// withArgs makes a function of a tool that takes the arguments of the call decoded.
func withArgs[In, Out any](do func(context.Context, *tool.Call, In) (Out, error)) func(context.Context, *tool.Call) (Out, error) {
	return func(ctx context.Context, c *tool.Call) (out Out, err error) {
		in, err := tool.Args[In](c)
		if err != nil {
			return out, err
		}
		return do(ctx, c, in)
	}
}

// readWhole reads a regular file of at most maxFile bytes.
func readWhole(ctx context.Context, c *tool.Call, path string) ([]byte, error) {
	f, err := c.Env.Files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(ctx, c, path, err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; list_files shows what is in it", Shown(c, path))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file (%v)", Shown(c, path), info.Mode().Type())
	case info.Size() > maxFile:
		return nil, tooBig(c, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = tooBig(c, path)
	}
	return data, err
}

var errTooBig = errors.New("it is too big")

func tooBig(c *tool.Call, path string) error {
	return fmt.Errorf("%s is larger than %s: %w; use search_files, or bash with sed -n or head", Shown(c, path), size(maxFile), errTooBig)
}

// missing explains that a path does not exist by showing what does: the nearest names in the deepest existing
// directory. The error is [fs.ErrNotExist].
func missing(ctx context.Context, c *tool.Call, path string, cause error) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	entries, err := readDir(ctx, c.Env.Files, dir)
	for err != nil && dir != filepath.Dir(dir) {
		dir, name = filepath.Dir(dir), filepath.Base(dir)
		entries, err = readDir(ctx, c.Env.Files, dir)
	}
	if err != nil {
		return cause
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	hint := fmt.Sprintf("%s has nothing named %q", showDir(c, dir), name)
	if near := text.Nearest(name, names); near != "" {
		hint += fmt.Sprintf("; did you mean %s?", Shown(c, filepath.Join(dir, near)))
	}
	return &missingError{fmt.Sprintf("%s does not exist: %s", Shown(c, path), hint)}
}

// missingError is fs.ErrNotExist with a better message.
type missingError struct{ text string }

func (e *missingError) Error() string        { return e.text }
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// showDir is [Shown] with a word for the workspace itself.
func showDir(c *tool.Call, dir string) string {
	if dir == c.Env.Root {
		return "the workspace"
	}
	return Shown(c, dir)
}

func readDir(ctx context.Context, files tool.Files, dir string) ([]fs.DirEntry, error) {
	f, err := files.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "read directory", Path: dir, Err: errors.New("not a directory")}
	}
	return d.ReadDir(-1)
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1024:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1000<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
