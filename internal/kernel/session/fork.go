package session

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// Fork implements [store.Store]. A damaged log can also be forked, up to its damage. The fork is invisible
// until it is complete and durable.
func (s *Store) Fork(ctx context.Context, id string, seq uint64) (store.Log, error) {
	l, err := s.fork(ctx, id, seq)
	if err != nil {
		return nil, fmt.Errorf("fork session %q: %w", id, err)
	}
	return l, nil
}

func (s *Store) fork(ctx context.Context, id string, seq uint64) (_ *Log, err error) {
	from, _, err := s.open(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if seq > from.tail.Seq {
		return nil, fmt.Errorf("it has only %d events, not %d", from.tail.Seq, seq)
	}
	return s.create(ctx, s.copying(ctx, from, cmp.Or(seq, from.tail.Seq)))
}

// copying returns a function that fills a session with the events of another up to seq.
func (s *Store) copying(ctx context.Context, from *Log, seq uint64) func(id, dir string) error {
	return func(id, dir string) error {
		if err := s.copyLog(ctx, from, seq, id, dir); err != nil {
			return err
		}
		return s.copyBlobs(filepath.Join(from.dir, blobsName), filepath.Join(dir, blobsName))
	}
}

// Branch implements [store.Brancher].
func (s *Store) Branch(ctx context.Context, id, parent, name string) (store.Log, bool, error) {
	l, isNew, err := s.branch(ctx, id, parent, name)
	if err != nil {
		return nil, false, fmt.Errorf("fork session %q: %w", id, err)
	}
	return l, isNew, nil
}

func (s *Store) branch(ctx context.Context, id, parent, name string) (l *Log, isNew bool, err error) {
	child, err := store.ChildID(parent, name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, false, err
	}
	l, err = s.opened(ctx, child)
	if !errors.Is(err, fs.ErrNotExist) {
		return l, false, err
	}
	from, _, err := s.open(id)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	l, _, err = s.made(ctx, child, s.copying(ctx, from, from.tail.Seq))
	return l, err == nil, err
}

// copyLog writes the lines of a log up to seq and a Forked to the log in dir. Every checksum is verified on the
// way; as each is chained only to the lines before it, and the first to nothing, they stay valid.
func (s *Store) copyLog(ctx context.Context, from *Log, seq uint64, id, dir string) (err error) {
	f, err := s.fs().Open(filepath.Join(dir, logName), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var c cursor
	out := bufio.NewWriterSize(f, chunk)
	in := lines{f: from.f, end: from.tail.Off}
	for c.Seq < seq {
		line, err := in.verified(ctx, &c)
		if err != nil {
			return err
		}
		if err := errors.Join(s.understood(c.Seq, line), s.reshare(line)); err != nil {
			return err
		}
		_, _ = out.Write(line) // Flush gives the error
		_ = out.WriteByte('\n')
	}
	forked := event.Event{
		Seq: c.Seq + 1, Time: s.clock().UTC().Truncate(time.Millisecond), Session: id,
		Body: event.Forked{From: from.id, Seq: seq},
	}
	enc, err := s.encode(forked)
	if err == nil {
		enc, err = c.add(nil, forked, enc)
	}
	if err != nil {
		return err
	}
	_, _ = out.Write(enc)
	if err := out.Flush(); err != nil {
		return err
	}
	return s.sync(f)
}

// understood returns the reason why this version can't write after a line, nil if it can. Only the first line and
// marked ones can be a reason.
func (s *Store) understood(seq uint64, line []byte) error {
	if seq > 1 && !bytes.Contains(line, []byte(`"must":true`)) {
		return nil
	}
	e, err := s.decode(bytes.Clone(line))
	if err != nil {
		return err
	}
	return event.Understood(e)
}

// copyBlobs links all blobs into another folder, or copies those that can't be linked.
func (s *Store) copyBlobs(from, to string) error {
	d := s.fs()
	names, err := d.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.Mkdir(to)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isBlob(name) {
			continue
		}
		src, dst := filepath.Join(from, name), filepath.Join(to, name)
		if d.Link(src, dst) == nil {
			continue
		}
		if err := s.copyFile(src, dst); err != nil {
			return err
		}
	}
	return s.syncDir(to)
}

func (s *Store) copyFile(from, to string) (err error) {
	src, err := s.fs().Open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := s.fs().Open(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	size, err := src.Size()
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, io.NewSectionReader(src, 0, size)); err != nil {
		return err
	}
	return s.sync(dst)
}
