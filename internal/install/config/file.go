package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// maxFile is the most bytes of a file of settings.
const maxFile = 1 << 20

// ReadFile reads a file of settings; a link to one counts. It neither waits nor grows
// with what a repository puts in its place: a pipe, a device, and a file of more than a
// megabyte are errors, which name the path.
func ReadFile(path string) ([]byte, error) { return ReadAtMost(path, maxFile) }

// ReadAtMost is [ReadFile] for files that may have another size.
func ReadAtMost(path string, most int64) ([]byte, error) {
	data, err := read(path, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, keep.Bare(err))
	}
	return data, nil
}

func read(path string, most int64) ([]byte, error) {
	// To open a pipe would wait for somebody to write to it.
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

const (
	maxWait = 30 * time.Second // for a process that edits the same file
)

// lock keeps all others, in this process and elsewhere, from editing a settings file,
// and makes its folder. The system gives it back when this process dies.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	l, err := keep.LockFile(context.Background(), path+".lock", maxWait)
	if err != nil {
		return nil, fmt.Errorf("lock the settings: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

// followed is where a settings file lies, so that a link to it stays one.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
