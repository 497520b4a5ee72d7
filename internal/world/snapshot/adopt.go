package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Adopt moves the content of another store into this one and removes the other: the workspace has moved to
// s.Root. It does nothing if the other store does not exist. After an interruption it can be repeated.
func (s *Store) Adopt(ctx context.Context, from *Store) error {
	if _, err := os.Stat(from.path(formatName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	theirs, err := from.change(ctx)
	if err != nil {
		return err
	}
	defer theirs()
	if _, err := os.Stat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from.Dir, s.Dir) // with its journal, if a restore was interrupted
	}
	ours, err := s.change(ctx)
	if err != nil {
		return err
	}
	defer ours()
	if err := errors.Join(s.idle(), from.idle()); err != nil {
		return err
	}
	// Content is moved first, so that each record is complete once it is there. Names are digests, or times
	// with a random part.
	for _, name := range []string{objectsName, packsName, recordsName} {
		if err := moveAll(from.path(name), s.path(name)); err != nil {
			return fmt.Errorf("take over the checkpoints of %s: %w", from.Root, err)
		}
	}
	return os.RemoveAll(from.Dir)
}

// moveAll moves the files of a folder and its subfolders into another, except those that exist there.
func moveAll(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		if _, err := os.Lstat(at); err == nil {
			return nil
		}
		return os.Rename(path, at)
	})
}
