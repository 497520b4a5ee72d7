package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/inspan/inspan/tool"
)

// Mover is an optional interface of a [Store] whose sessions can move to another store unchanged. Test it with
// harnesstest.TestStore.
type Mover interface {
	// Lines yields each event of a session exactly as [event.Encode] wrote it, in order. For a damaged log it
	// yields the good events first, and then the error. A line is valid until the next one.
	Lines(ctx context.Context, id string) iter.Seq2[[]byte, error]

	// Receive creates a session with this id from such lines and blobs. It becomes visible when all of it is
	// durable. Receive may range over both more than once. If the session exists already, the error wraps
	// [fs.ErrExist].
	Receive(ctx context.Context, id string, lines iter.Seq2[[]byte, error], blobs iter.Seq2[io.Reader, error]) error
}

// BlobLister is an optional interface of [tool.Blobs] that can list their blobs. The blobs of a [Mover] implement
// it.
type BlobLister interface {
	// Names lists the blobs, in no particular order.
	Names(ctx context.Context) ([]string, error)
}

// BlobRemover is an optional interface of [tool.Blobs] that can remove blobs.
type BlobRemover interface {
	BlobLister
	// Remove removes a blob permanently. A missing blob is not an error. The caller must know that nothing
	// refers to the blob.
	Remove(ctx context.Context, name string) error
}

// Copy copies a session and all sessions that work for it to another store, byte for byte. It returns their
// ids, the session's own last. If one of them is being driven, the error wraps [ErrBusy]. Copy reads both
// stores again and compares them before it returns. A session that is there already with the same content
// counts as copied, so an interrupted copy can be repeated; if its content differs, the error wraps
// [fs.ErrExist].
func Copy(ctx context.Context, from, to Store, id string) (copied []string, err error) {
	c := copier{from: from, to: to}
	var ok, takes bool
	c.lines, ok = from.(Mover)
	c.into, takes = to.(Mover)
	if !ok || !takes {
		return nil, errors.New("copy session: its store can't move sessions")
	}
	family, err := family(ctx, from, id)
	for _, member := range family {
		if err == nil {
			err = c.one(ctx, member)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("copy session %q: %w", id, err)
	}
	return family, nil
}

type copier struct {
	from, to    Store
	lines, into Mover
}

// family returns the ids of a session and of all that work for it, each after those that work for it.
func family(ctx context.Context, s Store, id string) ([]string, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string][]string{}
	for _, info := range list {
		of[info.Parent] = append(of[info.Parent], info.ID)
	}
	out := []string{id}
	for i := 0; i < len(out); i++ {
		out = append(out, of[out[i]]...)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// one copies a session while no process can drive it.
func (c copier) one(ctx context.Context, id string) (err error) {
	log, err := c.from.Open(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Lease(ctx); err != nil {
		return err
	}
	blobs := log.Blobs()
	err = c.into.Receive(ctx, id, c.lines.Lines(ctx, id), contents(ctx, blobs))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if same := c.same(ctx, id, blobs); same != nil {
		return errors.Join(err, same)
	}
	return nil
}

// contents yields the contents of blobs.
func contents(ctx context.Context, blobs tool.Blobs) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		names, err := names(ctx, blobs)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			r, err := blobs.Get(ctx, name)
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(r, nil)
			if err := r.Close(); !more || err != nil && !yield(nil, err) {
				return
			}
		}
	}
}

func names(ctx context.Context, blobs tool.Blobs) ([]string, error) {
	n, ok := blobs.(BlobLister)
	if !ok {
		return nil, errors.New("its store does not list blobs")
	}
	return n.Names(ctx)
}

// same returns an error if the copy of a session differs.
func (c copier) same(ctx context.Context, id string, blobs tool.Blobs) error {
	next, stop := iter.Pull2(c.into.Lines(ctx, id))
	defer stop()
	n := 0
	for line, err := range c.lines.Lines(ctx, id) {
		if err != nil {
			return err
		}
		n++
		copied, err, more := next()
		if err != nil {
			return err
		}
		if !more || !bytes.Equal(line, copied) {
			return fmt.Errorf("event %d of session %s is another one in the other store", n, id)
		}
	}
	if _, err, more := next(); more {
		return errors.Join(err, fmt.Errorf("session %s has more events in the other store", id))
	}
	log, err := c.to.Open(ctx, id)
	if err != nil {
		return err
	}
	defer log.Close()
	return sameBlobs(ctx, blobs, log.Blobs())
}

// sameBlobs reads every blob of a copy, which verifies it by its name.
func sameBlobs(ctx context.Context, from, to tool.Blobs) error {
	list, err := names(ctx, from)
	if err != nil {
		return err
	}
	for _, name := range list {
		r, err := to.Get(ctx, name)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}
