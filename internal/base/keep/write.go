// Package keep provides file operations that several packages share: private files that survive any crash,
// locks between processes, bounded reads of untrusted files, digests of folders, and bounded writers.
//
// Everything is safe for concurrent use by goroutines and processes. Callers coordinate several writers of one
// file themselves, usually with a [Lock].
package keep

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// mark is in the names of files being written, after their final names.
const mark = ".new-"

// MakeDir creates a folder and its missing parents, with mode 0700, and syncs their names. Existing folders are
// unchanged; if the path is not a folder, the error says so.
func MakeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return err
	}
	if err := MakeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		// Another process may have created it, or it is a dangling link.
		if info, gone := os.Stat(dir); gone != nil || !info.IsDir() {
			return err
		}
	}
	return Sync(parent)
}

// Write replaces a file atomically, with mode 0600. On success the data is synced; after an error the file has
// the old or the new content, and no other file is left. A link is replaced by a file. The folder must exist.
func Write(path string, data []byte) error {
	temp := path + mark + rand.Text()
	err := fill(temp, data)
	if err == nil {
		err = rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	return Sync(filepath.Dir(path))
}

// fill creates and syncs a file.
func fill(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Remove removes a file and syncs the removal. A missing file or folder is not an error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Sync(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes leftovers of killed calls of [Write] for a path. No other process may be writing there: it
// would lose its data. Errors are ignored until the next call.
func Sweep(path string) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), name+mark) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// rename moves a file over another. On Windows that fails while another process reads the target, which takes a
// moment.
func rename(from, to string) (err error) {
	for range 200 {
		if err = os.Rename(from, to); err == nil || runtime.GOOS != "windows" {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}
