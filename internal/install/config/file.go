package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/keep"
)

// maxFile bounds a settings file, in bytes.
const maxFile = 1 << 20

// ReadFile reads a settings file, following links. A repository can't make it block or use much memory: a pipe,
// a device, and a file of more than a megabyte are errors, which name the path.
func ReadFile(path string) ([]byte, error) { return ReadAtMost(path, maxFile) }

// ReadAtMost is [ReadFile] with another bound.
func ReadAtMost(path string, most int64) ([]byte, error) {
	data, err := read(path, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, keep.Bare(err))
	}
	return data, nil
}

func read(path string, most int64) ([]byte, error) {
	// Opening a pipe would block until a writer opens it.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	return data, err
}

// lock locks a settings file against other editors, in this and other processes, and creates its folder. If
// this process dies, the system releases the lock.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l, err := keep.LockFile(context.Background(), path+".lock", keep.Patience)
	if err != nil {
		return nil, fmt.Errorf("lock the settings: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

// followed returns the target of a link to a settings file, so that the link remains.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
