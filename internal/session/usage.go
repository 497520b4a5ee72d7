package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inspan/inspan/store"
)

// Usage implements [store.Store]: the bytes of all its files.
func (s *Store) Usage(ctx context.Context, id string) (size int64, err error) {
	if !store.IsID(id) {
		return 0, fmt.Errorf("measure session %q: not a session id: %w", id, fs.ErrNotExist)
	}
	dir := filepath.Join(s.Dir, id)
	for _, dir := range []string{dir, filepath.Join(dir, blobsName)} {
		names, bad := s.fs().ReadDir(dir)
		if errors.Is(bad, fs.ErrNotExist) && filepath.Base(dir) == blobsName {
			continue
		}
		if err := errors.Join(bad, ctx.Err()); err != nil {
			return 0, fmt.Errorf("measure session %q: %w", id, err)
		}
		for _, name := range names {
			if name != blobsName {
				size += s.length(filepath.Join(dir, name))
			}
		}
	}
	return size, nil
}

// length is the size of a file, 0 if it is none or has gone.
func (s *Store) length(path string) int64 {
	f, err := s.fs().Open(path, os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, _ := f.Size()
	return n
}

// Sweep deletes what crashes have left before a time: sessions half made or half removed, and
// blobs half written.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	names, err := s.fs().ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		path := filepath.Join(s.Dir, name)
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case strings.HasPrefix(name, buildMark) || strings.HasPrefix(name, removeMark):
			err = errors.Join(err, s.drop(path, before))
		case store.IsID(name):
			err = errors.Join(err, s.sweepBlobs(filepath.Join(path, blobsName), before))
		}
	}
	return err
}

func (s *Store) sweepBlobs(dir string, before time.Time) error {
	names, err := s.fs().ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, putMark) {
			err = errors.Join(err, s.drop(filepath.Join(dir, name), before))
		}
	}
	return err
}

// drop deletes what has not changed since.
func (s *Store) drop(path string, before time.Time) error {
	f, err := s.fs().Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at, err := f.Changed()
	if err = errors.Join(err, f.Close()); err != nil || !at.Before(before) {
		return err
	}
	return s.fs().Remove(path)
}
