package keep

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inspan/inspan/internal/base/text"
)

// ErrNoFolder says that a path is not a folder.
var ErrNoFolder = errors.New("it is not a folder")

// OpenFolder opens a folder with untrusted content. It follows a link, because the path is the caller's own.
func OpenFolder(path string) (*os.Root, error) {
	// Opening a pipe would block until a writer opens it.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrNoFolder}
	}
	return os.OpenRoot(path)
}

// OpenFile opens any entry of a folder for reading. It never blocks, and follows no link out of the folder. The
// caller must check its mode before reading, as a pipe or a device may never end; [ReadFile] does.
func OpenFile(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

// OpenNames opens a folder for reading its names and their kinds. It never blocks, whatever the path is now.
// Other metadata of the entries may be of another folder, so don't use it. A folder in an [os.Root] examines
// each of its entries, which is slower.
func OpenNames(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// errNotPlain is the error for pipes and devices.
var errNotPlain = errors.New("it is neither a file nor a folder")

// OpenPlain is [os.OpenFile] for files and folders. For others, such as a pipe, it returns an error without
// blocking.
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

// Read is [os.ReadFile] for regular files only: it doesn't block on a pipe.
func Read(path string) ([]byte, error) {
	f, info, err := OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), 64<<20)) + bytes.MinRead) // a file may be shorter than its size, and kernel files report 0
	_, err = b.ReadFrom(f)
	return b.Bytes(), errors.Join(err, f.Close())
}

// Bare removes the operation and the path of an error, which are reported separately and depend on the system.
func Bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Repository returns the top of the git repository that contains a folder; the folder itself if there is none,
// or if that is a home or a folder above it.
func Repository(dir string) string {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if home := Home(); at == filepath.Dir(at) || home != "" && text.Inside(at, home) {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
}

// ProjectFolders returns a folder and those above it up to the top of its repository.
func ProjectFolders(dir string) []string {
	top, out := Repository(dir), []string{dir}
	for at := dir; at != top && text.Inside(top, filepath.Dir(at)); {
		at = filepath.Dir(at)
		out = append(out, at)
	}
	return out
}

// RemoveAll removes a folder with all its content, including read-only folders.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // called before the folder is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}
