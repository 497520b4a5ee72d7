package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

var _ store.Mover = (*Store)(nil)

// Lines implements [store.Mover]. References to shared specs are resolved, and checksums omitted.
func (s *Store) Lines(ctx context.Context, id string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := s.yieldLines(ctx, id, yield); err != nil {
			yield(nil, fmt.Errorf("read session %q: %w", id, err))
		}
	}
}

func (s *Store) yieldLines(ctx context.Context, id string, yield func([]byte, error) bool) (err error) {
	l, _, err := s.open(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var c cursor
	for in := (lines{f: l.f, end: l.tail.Off}); c.Off < l.tail.Off; {
		line, err := in.verified(ctx, &c)
		if err != nil {
			return err
		}
		line[headLen-1] = '{'
		whole, err := expand(line[headLen-1:], s.spec)
		if err != nil {
			return err
		}
		if !yield(whole, nil) {
			return nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Receive implements [store.Mover].
func (s *Store) Receive(ctx context.Context, id string, lines iter.Seq2[[]byte, error], contents iter.Seq2[io.Reader, error]) error {
	err := mkdirAll(s.fs(), s.Dir, s.Sync == SyncPower)
	if err == nil && !store.IsID(id) {
		err = errors.New("not a session id")
	}
	if err == nil {
		err = s.receive(ctx, id, lines, contents)
	}
	if err != nil {
		return fmt.Errorf("receive session %q: %w", id, err)
	}
	return nil
}

func (s *Store) receive(ctx context.Context, id string, lines iter.Seq2[[]byte, error], contents iter.Seq2[io.Reader, error]) error {
	if l, _, err := s.open(id); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = l.Close()
		}
		return errors.Join(fs.ErrExist, err)
	}
	fill := func(_, dir string) error {
		err := s.fillLog(ctx, dir, lines)
		into := blobs{store: s, dir: filepath.Join(dir, blobsName)}
		for r, failed := range contents {
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			_, err = into.put(ctx, r)
		}
		return err
	}
	err := s.build(id, fill)
	if errors.Is(err, fs.ErrExist) { // of a crash
		if err = s.fs().Remove(filepath.Join(s.Dir, buildMark+id)); err == nil {
			err = s.build(id, fill)
		}
	}
	return err
}

// fillLog writes a log from the lines of another store.
func (s *Store) fillLog(ctx context.Context, dir string, lines iter.Seq2[[]byte, error]) (err error) {
	f, err := s.fs().Open(filepath.Join(dir, logName), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var c cursor
	var buf []byte
	out := bufio.NewWriterSize(f, chunk)
	for line, err := range lines {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		e, err := event.Decode(line)
		if err != nil {
			return err
		}
		if e.Seq != c.Seq+1 {
			return c.damage(fmt.Sprintf("sequence number is %d, want %d", e.Seq, c.Seq+1))
		}
		if buf, err = c.add(buf[:0], e, s.shared(line, e.Body.Kind())); err != nil {
			return err
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return s.sync(f)
}
