package keep

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/tool"
)

// ErrNoFolder says that what is there is something else.
var ErrNoFolder = errors.New("it is not a folder")

// OpenFolder opens a folder that others may have filled. A link to one counts, as the path
// is the caller's own.
func OpenFolder(path string) (*os.Root, error) {
	// To open a pipe would wait for somebody to write to it.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNoFolder}
	}
	return os.OpenRoot(path)
}

// OpenFile opens what lies in a folder for reading, whatever it is: nothing in it makes
// the caller wait, and no link leads out. The caller looks at its mode before reading, as a
// pipe or a device would go on for ever; [ReadFile] does.
func OpenFile(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

// OpenNames opens a folder for its names and their kinds, whatever is there by now: nothing makes
// the caller wait. What else the entries tell of themselves may be of another folder, so it does
// not count. A folder in an [os.Root] looks at each of its entries, which takes longer.
func OpenNames(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// errNotPlain is why a pipe or a device is not opened.
var errNotPlain = errors.New("it is neither a file nor a folder")

// OpenPlain is [os.OpenFile] for files and folders. What is neither, such as a pipe, is an error at
// once: nobody waits for it.
func OpenPlain(path string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flag|nonblock, perm)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotPlain}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Read is [os.ReadFile] for files alone: what lies in the place of one, such as a pipe, makes nobody wait.
func Read(path string) ([]byte, error) {
	f, info, err := OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), 64<<20)) + bytes.MinRead) // a file may be shorter than it says, and those of the kernel say 0
	_, err = b.ReadFrom(f)
	return b.Bytes(), errors.Join(err, f.Close())
}

// Bare leaves out the operation and the path of an error, which are told beside it and
// depend on the system.
func Bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Repository is the folder around a folder, or itself, that git keeps; the folder itself if
// none does, or if it is a home or more.
func Repository(dir string) string {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if home := Home(); at == filepath.Dir(at) || home != "" && tool.Inside(at, home) {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
}
