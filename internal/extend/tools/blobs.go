package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/inspan/inspan/tool"
)

// blobPrefix marks the name of a blob in place of a path.
const blobPrefix = "blob:"

// openBlob opens a blob by the name the model knows, with or without prefix.
func openBlob(ctx context.Context, c *tool.Call, name string) (io.ReadCloser, error) {
	if c.Env.Blobs == nil {
		return nil, errNoBlobs
	}
	name = strings.TrimPrefix(name, blobPrefix)
	r, err := c.Env.Blobs.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no blob %s; give the whole name as it was shown: %w", name, err)
	}
	return r, err
}

// storeOf returns the store for the output of commands, which removes secrets.
func storeOf(env tool.Env) tool.Blobs {
	if env.Blobs == nil || env.Clean == nil {
		return env.Blobs
	}
	return cleanBlobs{env.Blobs, env.Clean}
}

// cleanBlobs cleans what it stores.
type cleanBlobs struct {
	tool.Blobs
	clean func(io.Reader) io.Reader
}

// Put implements [tool.Blobs].
func (b cleanBlobs) Put(ctx context.Context, r io.Reader) (string, error) {
	return b.Blobs.Put(ctx, b.clean(r))
}
