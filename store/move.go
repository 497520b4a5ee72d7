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

// Mover is an optional interface of a [Store] whose sessions can move to another as they are.
// harnesstest.TestStore proves it.
type Mover interface {
	// Lines yields what [event.Encode] has made of each event of a session, byte for byte and in
	// order. Of a log that is damaged what is good comes first, and then the error. A line is valid
	// until the next one.
	Lines(ctx context.Context, id string) iter.Seq2[[]byte, error]

	// Receive makes a session with an id of such lines and of blobs. Nobody sees it before all of it
	// is durable. It may range over both more than once. If there is a session with the id already,
	// the error wraps [fs.ErrExist].
	Receive(ctx context.Context, id string, lines iter.Seq2[[]byte, error], blobs iter.Seq2[io.Reader, error]) error
}

// Named is an optional interface of [tool.Blobs] that know which there are. Those of a [Mover] have it.
type Named interface {
	// Names lists the blobs, in no particular order.
	Names(ctx context.Context) ([]string, error)
}

// Removable is an optional interface of [tool.Blobs] from which one can be removed.
type Removable interface {
	Named
	// Remove removes a blob for good. There is none of that name: no error. It is for whoever knows that
	// nothing refers to it.
	Remove(ctx context.Context, name string) error
}

// Copy copies a session to another store, byte for byte, with all that work for it, and returns their
// ids, the session's last. Nobody may drive one of them, or the error wraps [ErrBusy]. Both stores
// are read again and compared before it returns. One that is there already with the same content
// counts as copied, so a copy that was cut off can be repeated; with other content the error wraps
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

// family is a session behind those that work for it, and these behind those that work for them.
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

// one copies a session while nobody can drive it.
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
	n, ok := blobs.(Named)
	if !ok {
		return nil, errors.New("its store does not list blobs")
	}
	return n.Names(ctx)
}

// same returns how the copy of a session differs.
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

// sameBlobs reads every blob of a copy, which checks it by its name.
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
