package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/store"
)

// Usage implements [store.Store]: the bytes of all its files. Tool specs, which all sessions share, are not
// counted.
func (s *Store) Usage(ctx context.Context, id string) (size int64, err error) {
	if !store.IsID(id) {
		return 0, fmt.Errorf("measure session %q: not a session id: %w", id, fs.ErrNotExist)
	}
	if size, err = s.usage(ctx, filepath.Join(s.Dir, id)); err != nil {
		return 0, fmt.Errorf("measure session %q: %w", id, err)
	}
	return size, nil
}

// usage returns how many bytes the folder of a session takes.
func (s *Store) usage(ctx context.Context, dir string) (size int64, err error) {
	for _, dir := range []string{dir, filepath.Join(dir, blobsName)} {
		names, bad := s.fs().ReadDir(dir)
		if errors.Is(bad, fs.ErrNotExist) && filepath.Base(dir) == blobsName {
			continue
		}
		if err := errors.Join(bad, ctx.Err()); err != nil {
			return 0, err
		}
		for _, name := range names {
			if name != blobsName {
				size += s.length(filepath.Join(dir, name))
			}
		}
	}
	return size, nil
}

// length returns the size of a file, 0 if it is not a file or is gone.
func (s *Store) length(path string) int64 {
	f, err := s.fs().Open(path, os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, _ := f.Size()
	return n
}
