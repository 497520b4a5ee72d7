package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

const (
	formatLine = "inspan snapshots 1\n"
)

// Names in the store.
const (
	formatName  = "format"
	lockName    = "lock"
	recordsName = "checkpoints"
	packsName   = "packs"
	objectsName = "objects"
	cacheName   = "cache"
	journalName = "journal"
	tmpName     = "tmp"
)

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.Dir}, names...)...)
}

// change locks the store for changes, and creates it if it does not exist. It deletes temporary files of dead
// processes.
func (s *Store) change(ctx context.Context) (unlock func(), err error) {
	if err := s.apart(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := keep.LockFile(ctx, s.path(lockName), 0)
	if err != nil {
		return nil, fmt.Errorf("lock the checkpoints: %w", err)
	}
	if err := s.lay(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// read locks the store against changes. The error is fs.ErrNotExist if there is no store.
func (s *Store) read(ctx context.Context) (unlock func(), err error) {
	if _, err := os.Stat(s.path(formatName)); err != nil {
		return nil, err
	}
	lock, err := keep.LockShared(ctx, s.path(lockName), 0)
	if err != nil {
		return nil, fmt.Errorf("lock the checkpoints: %w", err)
	}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// apart checks that neither store nor workspace contains the other.
func (s *Store) apart() error {
	if !filepath.IsAbs(s.Root) || s.Dir == "" {
		return fmt.Errorf("checkpoints of %q in %q: the workspace must be an absolute path, and the store a folder", s.Root, s.Dir)
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return err
	}
	// The store may not exist yet; only its existing part is resolved.
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			dir = filepath.Join(real, rest)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest)
	}
	if text.Inside(s.Root, dir) || text.Inside(dir, s.Root) {
		return fmt.Errorf("the checkpoints of %s can't be kept in %s: one holds the other", s.Root, s.Dir)
	}
	return nil
}

// lay creates missing folders of the store. The caller holds the lock.
func (s *Store) lay() error {
	err := s.checkFormat()
	if errors.Is(err, fs.ErrNotExist) {
		err = s.writeFile(s.path(formatName), []byte(formatLine))
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.path(tmpName)); err != nil {
		return err
	}
	for _, name := range []string{recordsName, packsName, objectsName, tmpName} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (s *Store) checkFormat() error {
	data, err := keep.Read(s.path(formatName))
	if err == nil && string(data) != formatLine {
		err = fmt.Errorf("%s was not written by this version: it says %.40q", s.Dir, data)
	}
	return err
}

// writeFile writes a file of the store atomically.
func (s *Store) writeFile(path string, data []byte) error {
	f, err := s.temp(filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return s.commit(f, err, path)
}

// writeLoose writes a file of the store that has a checksum and may be lost in a power failure.
func (s *Store) writeLoose(path string, data []byte) error {
	f, err := s.temp(filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		s.step("rename loose file")
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// temp creates a file for writing.
func (s *Store) temp(name string) (*os.File, error) {
	s.step("make temporary file")
	if err := os.Mkdir(s.path(tmpName), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.CreateTemp(s.path(tmpName), name+"-")
}

// commit moves a temporary file to its place, unless an earlier step failed.
func (s *Store) commit(f *os.File, err error, path string) error {
	if err == nil {
		s.step("sync temporary file")
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		s.step("rename temporary file")
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	s.step("sync folder")
	return keep.Sync(filepath.Dir(path))
}
