package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/inspan/inspan/internal/base/keep"
)

// reading locks the store against changes and opens its objects.
func (s *Store) reading(ctx context.Context) (v *vault, unlock func(), err error) {
	release, err := s.read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there are no checkpoints: %w", ErrNoCheckpoint)
	}
	if err != nil {
		return nil, nil, err
	}
	if v, err = s.load(); err != nil {
		release()
		return nil, nil, err
	}
	return v, func() { v.close(); release() }, nil
}

// List returns all checkpoints, oldest first. Damaged ones are left out and named by the error, which then
// consists of [DamageError]s.
func (s *Store) List(ctx context.Context) ([]Checkpoint, error) {
	release, err := s.read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	records, damage, err := s.records()
	out := make([]Checkpoint, 0, len(records))
	for _, r := range records {
		out = append(out, r.Checkpoint)
	}
	return out, errors.Join(damage, err)
}

// Read returns the first bytes, at most limit, of a file in a checkpoint, or the target of a symbolic link. It
// checks the whole file. The error is fs.ErrNotExist if the file does not exist, and fs.ErrInvalid if it is a
// folder or not kept.
func (s *Store) Read(ctx context.Context, id, path string, limit int64) ([]byte, error) {
	v, unlock, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, err := s.view(v, id)
	if err != nil {
		return nil, err
	}
	e, err := in.at(path)
	if err != nil {
		return nil, err
	}
	switch e.kind {
	case nothing:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	case isLink:
		return []byte(e.target)[:min(int64(len(e.target)), max(limit, 0))], nil
	case isFile:
		head := &header{ctx: ctx, left: limit}
		if err := v.writeTo(head, e.sum); err != nil {
			return nil, in.blame(path, err)
		}
		return head.buf.Bytes(), nil
	}
	return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}
}

// header is a writer that keeps only the beginning.
type header struct {
	ctx  context.Context
	buf  bytes.Buffer
	left int64
}

func (h *header) Write(p []byte) (int, error) {
	n := min(int64(len(p)), max(h.left, 0))
	h.buf.Write(p[:n])
	h.left -= n
	return len(p), h.ctx.Err()
}

// check reads the content of an entry.
func (w *view) check(path string, e entry) error {
	if e.kind != isFile {
		return nil
	}
	return w.blame(path, w.v.writeTo(io.Discard, e.sum))
}

// Remove removes checkpoints; missing ones are not an error. Clean frees the space.
func (s *Store) Remove(ctx context.Context, ids ...string) error {
	if _, err := os.Stat(s.path(formatName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.change(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.idle(); err != nil {
		return err
	}
	return s.remove(ids)
}

func (s *Store) remove(ids []string) error {
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			continue
		}
		s.step("remove checkpoint")
		if err := os.Remove(s.path(recordsName, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return keep.Sync(s.path(recordsName))
}
