package paths

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/tool"
)

// Open opens a resolved path without following any link: one that has come
// since must not lead elsewhere.
func Open(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(unix.AT_FDCWD, path, &how)
}

// NamesIn lists a folder that was opened as a path.
func NamesIn(fd int) ([]string, error) {
	dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(dir) }()
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// InsideAny reports whether a path is at or below one of the folders.
func InsideAny(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return tool.Inside(f, path) })
}

// ReadFolder lists a folder without sorting.
func ReadFolder(dir string) ([]os.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// LockFolder locks a folder, if nobody else has it; many can share it. The lock ends with the file, in
// whatever way its process ends.
func LockFolder(dir string, shared bool) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), dir)
	ok, err := keep.TryLock(file, shared)
	if !ok {
		return nil, errors.Join(cmp.Or(err, error(unix.EWOULDBLOCK)), file.Close())
	}
	return file, nil
}

// RemoveAll removes a folder with all in it, also folders that say they can't
// be written.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // told of before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Folder is a folder that boxes write in. It is held open, so that what is
// below it can be reached through no link.
type Folder struct {
	path string
	fd   int
}

// OpenFolder opens a folder.
func OpenFolder(path string) (Folder, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return Folder{path, fd}, err
}

// CloseFolders closes all of a list.
func CloseFolders(list []Folder) {
	for _, a := range list {
		_ = unix.Close(a.fd)
	}
}

// ParentOf opens the folder that a place lies in. No link on the way is
// followed: one that came since must not lead elsewhere.
func ParentOf(list []Folder, path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	for _, a := range list {
		if path == a.path || !tool.Inside(a.path, path) {
			continue
		}
		rel, err := filepath.Rel(a.path, filepath.Dir(path))
		if err != nil {
			return -1, err
		}
		fd, err := unix.Openat2(a.fd, rel, &how)
		for i := 0; err == unix.EAGAIN && i < 100; i++ { //nolint:errorlint // a bare number
			fd, err = unix.Openat2(a.fd, rel, &how)
		}
		return fd, err
	}
	return -1, unix.EXDEV
}

// IdentifyIn tells what a name in an open folder stands for.
func IdentifyIn(folder int, path string) (Identity, bool) {
	var st unix.Stat_t
	if unix.Fstatat(folder, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return Identity{}, false
	}
	//nolint:unconvert // other architectures have other widths
	return Identity{path, uint64(st.Dev), st.Ino, st.Mode&unix.S_IFMT == unix.S_IFLNK}, true
}

// Identify tells what is at a place that is reached through no link.
func Identify(list []Folder, path string) (Identity, bool) {
	folder, err := ParentOf(list, path)
	if err != nil {
		return Identity{}, false
	}
	defer func() { _ = unix.Close(folder) }()
	return IdentifyIn(folder, path)
}

// Identity is a sensitive place as it was before a command.
type Identity struct {
	Path     string
	Dev, Ino uint64
	Link     bool `json:",omitempty"` // nothing can be mounted over it, so it can have been replaced
}

// ReadSmall returns the content of a small file, empty for anything else.
func ReadSmall(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 8<<10 {
		return ""
	}
	data, err := keep.Read(path)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}
