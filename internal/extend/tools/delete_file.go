package tools

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed delete_file.md
var deleteFileDoc string

type deleteArgs struct {
	Path string `json:"path" jsonschema:"file or empty directory to delete, absolute or relative to the current directory"`
}

func deleteFile() tool.Tool {
	t := tool.New("delete_file", deleteFileDoc, runDelete)
	t.Effects = pathEffect(tool.Write, func(in deleteArgs) string { return in.Path })
	return t
}

func runDelete(ctx context.Context, c *tool.Call, in deleteArgs) (tool.Result, error) {
	path, err := deletable(ctx, c, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, err := c.Env.Files.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Result{}, missing(ctx, c, path, err)
	}
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return tool.Result{}, err
	case info.IsDir():
		return deleteDir(ctx, c, path)
	case !info.Mode().IsRegular():
		return tool.Result{}, fmt.Errorf("%s is not a regular file (%v)", Shown(c, path), info.Mode().Type())
	}
	return deleteKept(ctx, c, path, f)
}

// deletable resolves a path and refuses the workspace, folders that contain it, and symbolic links, because their
// target would be deleted in their place.
func deletable(ctx context.Context, c *tool.Call, path string) (string, error) {
	resolved, err := Resolve(ctx, c, path)
	if err != nil {
		return "", err
	}
	if resolved == c.Env.Root || strings.HasPrefix(c.Env.Root, strings.TrimSuffix(resolved, string(filepath.Separator))+
		string(filepath.Separator)) {
		return "", fmt.Errorf("%s is or holds the workspace; it is not deleted", resolved)
	}
	dir, name := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
	if name != "." && name != ".." {
		parent, err := Resolve(ctx, c, dir)
		if err != nil {
			return "", err
		}
		if filepath.Join(parent, name) != resolved {
			return "", fmt.Errorf("%s is a symbolic link to %s; delete that, or the link with rm in bash", path, Shown(c, resolved))
		}
	}
	return resolved, nil
}

func deleteDir(ctx context.Context, c *tool.Call, path string) (tool.Result, error) {
	entries, err := readDir(ctx, c.Env.Files, path)
	if err != nil {
		return tool.Result{}, err
	}
	if len(entries) > 0 {
		return tool.Result{}, fmt.Errorf("%s is a directory with %s in it; delete those first", Shown(c, path), text.Count(len(entries), "file"))
	}
	if err := c.Env.Files.Change(ctx, tool.Change{Path: path, Remove: true}); err != nil {
		return tool.Result{}, err
	}
	r := tool.Text("deleted the empty directory " + Shown(c, path))
	r.Files = []tool.File{{Path: path, Written: true}}
	return r, nil
}

// deleteKept deletes a file whose content is safe in a blob.
func deleteKept(ctx context.Context, c *tool.Call, path string, f io.Reader) (tool.Result, error) {
	if c.Env.Blobs == nil {
		return tool.Result{}, fmt.Errorf("%w, so the file could not be brought back; use rm in bash if it must go", errNoBlobs)
	}
	sum := sha256.New()
	blob, err := c.Env.Blobs.Put(ctx, io.TeeReader(f, sum))
	if err != nil {
		return tool.Result{}, fmt.Errorf("keep a copy: %w", err)
	}
	digest := hex.EncodeToString(sum.Sum(nil)[:16]) // see tool.Digest
	err = c.Env.Files.Change(ctx, tool.Change{Path: path, Remove: true, IfDigest: digest})
	if errors.Is(err, tool.ErrChanged) {
		return tool.Result{}, fmt.Errorf("%s changed while it was being deleted; it was left alone", Shown(c, path))
	}
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Text(fmt.Sprintf("deleted %s\nTo bring it back: write_file with path %s and blob %s", Shown(c, path), Shown(c, path), blob))
	r.Files = []tool.File{{Path: path, Written: true}}
	return r, nil
}
