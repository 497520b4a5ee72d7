// Package keep holds the file operations that several packages share: private files that
// survive any crash whole, locks between processes, bounded reads of untrusted files, digests
// of whole folders, and bounded writers.
//
// Several goroutines and processes may call all of it at once. Callers coordinate several
// writers of one file themselves, mostly with a [Lock].
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

// mark stands in the names of files that are being written, behind what they will be.
const mark = ".new-"

// MakeDir makes a folder, and those above it that are missing, with mode 0700. The name
// of each that it made is on the disk when it returns. What is there stays as it is; if
// that is no folder, the error says so.
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
		// Somebody else may have been faster, or it is a link that leads nowhere.
		if info, gone := os.Stat(dir); gone != nil || !info.IsDir() {
			return err
		}
	}
	return Sync(parent)
}

// Write replaces a file as a whole, with mode 0600. The data are on the disk when it
// returns without an error; after one, the file has the old content or the new one, and
// nothing is left beside it. A link is replaced by a file. The folder must be there.
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

// fill makes a file, on the disk when it returns.
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

// Remove removes a file. Its name is gone from the disk when it returns. Nothing there,
// not even a folder: no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Sync(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes what calls of [Write] for a path left beside it when their process was
// killed. Nobody else may be writing there meanwhile: it would lose what it writes. What
// can't be removed now is left to the next time.
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

// rename moves a file over another one. On Windows that fails while somebody reads
// the other, which takes a moment.
func rename(from, to string) (err error) {
	for range 200 {
		if err = os.Rename(from, to); err == nil || runtime.GOOS != "windows" {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}
