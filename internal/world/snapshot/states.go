package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// stateMark begins a blob with a workspace state, or a part of one.
const stateMark = "inspan-workspace-1\n"

// WithoutStates hides the blobs of workspace states. Agents get blobs this way, since a state also contains
// files that are closed to the agent.
func WithoutStates(blobs tool.Blobs) tool.Blobs {
	if blobs == nil {
		return nil
	}
	return withoutStates{blobs}
}

// RemoveStates removes all blobs of workspace states, including incomplete ones. It skips blobs that can't be
// listed or removed.
func RemoveStates(ctx context.Context, blobs tool.Blobs) error {
	from, can := blobs.(store.BlobRemover)
	if !can {
		return nil
	}
	names, err := from.Names(ctx)
	for _, name := range names {
		if r, missing := WithoutStates(blobs).Get(ctx, name); missing == nil {
			err = errors.Join(err, r.Close())
		} else if errors.Is(missing, errState) {
			err = errors.Join(err, from.Remove(ctx, name))
		}
	}
	return err
}

// errState says that a blob contains a state.
var errState = fmt.Errorf("it is a state of the workspace: %w", fs.ErrNotExist)

type withoutStates struct{ tool.Blobs }

// Get implements [tool.Blobs].
func (b withoutStates) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := b.Blobs.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(stateMark))
	n, err := io.ReadFull(r, head)
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // the end of the blob has been verified
	switch {
	case string(head[:n]) == stateMark:
		return nil, errors.Join(fmt.Errorf("get blob %s: %w", name, errState), r.Close())
	case short:
		return readCloser{bytes.NewReader(head[:n]), r}, nil
	case err != nil:
		return nil, errors.Join(err, r.Close())
	}
	return readCloser{io.MultiReader(bytes.NewReader(head), r), r}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
