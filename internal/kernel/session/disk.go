package session

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// disk is the part of a file system that this package uses, so that tests can make any operation fail. Errors
// are those of package os.
type disk interface {
	Open(path string, flag int) (file, error) // flag as for os.OpenFile
	Mkdir(path string) error
	Stats(dir string) (stats, error)
	ReadDir(path string) ([]string, error) // names, sorted
	Rename(from, to string) error
	Link(from, to string) error
	Touch(path string) error   // sets its time to now
	Remove(path string) error  // with everything below; no error if it is missing
	SyncDir(path string) error // makes created and renamed entries durable
}

// stats reads the metadata of many files below one folder, by their paths there, also concurrently.
type stats struct {
	of   func(path string) (stamp, error)
	done func() error
}

// file is an open file.
type file interface {
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Is(path string) (bool, error) // whether it is the file at the path
	Changed() (time.Time, error)  // the last time an entry of the folder was added, removed or renamed
	Sync() error                  // content and size, not times
	TryLock() (bool, error)       // false means another open file holds the lock
	Unlock() error
}

// osDisk is the real file system.
type osDisk struct{}

func (osDisk) Open(path string, flag int) (file, error) {
	f, info, err := keep.OpenPlain(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f, info}, nil
}

func (osDisk) Mkdir(path string) error      { return os.Mkdir(path, 0o700) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Link(from, to string) error   { return os.Link(from, to) }
func (osDisk) Touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

func (osDisk) Remove(path string) error { return os.RemoveAll(path) }

func (osDisk) ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osDisk) SyncDir(path string) error { return keep.Sync(path) }

// osFile is a real file. Its locks are in lock_*.go; without a sync_*.go its Sync is that of os.File.
type osFile struct {
	*os.File
	was os.FileInfo // metadata when opened: the file's identity never changes
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Is(path string) (bool, error) {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(f.was, there), err
}

func (f osFile) Changed() (time.Time, error) {
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// readFile reads a file of at most most bytes; a longer one is errTooBig.
func (s *Store) readFile(path string, most int64) ([]byte, error) {
	f, err := s.fs().Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, errTooBig
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data, nil
}

var errTooBig = errors.New("the file is too big")

// replaceFile writes a file under a temporary name in its folder, and renames it; durably if that is asked for and the
// policy.
func (s *Store) replaceFile(path string, data []byte, durable bool) error {
	tmp := filepath.Join(filepath.Dir(path), putMark+rand.Text())
	f, err := s.fs().Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = writeAll(f, data)
	if err == nil && durable {
		err = s.sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs().Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, s.fs().Remove(tmp))
	}
	return nil
}

func writeAll(f file, data []byte) error {
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// mkdirAll makes a folder and its parents, each durable in the one above it
// if durable is set.
func mkdirAll(d disk, path string, durable bool) error {
	err := d.Mkdir(path)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	parent := filepath.Dir(path)
	if errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := mkdirAll(d, parent, durable); err != nil {
			return err
		}
		err = d.Mkdir(path)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	if err != nil || !durable {
		return err
	}
	return d.SyncDir(parent)
}
