package paths

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// Open opens a resolved path without following links: a link that was created since must not lead elsewhere.
func Open(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}
	return unix.Openat2(unix.AT_FDCWD, path, &how)
}

// NamesIn lists a folder that was opened with O_PATH.
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
	return slices.ContainsFunc(folders, func(f string) bool { return text.Inside(f, path) })
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

// LockFolder locks a folder, exclusively or shared, if it is not locked. The lock ends with the file, however
// its process ends.
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

// Folder is a folder in which boxes write. It is held open, so that paths below it can be reached without
// following links.
type Folder struct {
	path string
	fd   int
}

// OpenFolder opens a folder.
func OpenFolder(path string) (Folder, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return Folder{path, fd}, err
}

// CloseFolders closes the folders of a list.
func CloseFolders(list []Folder) {
	for _, a := range list {
		_ = unix.Close(a.fd)
	}
}

// ParentOf opens the folder of a place. It follows no links: one that was created since must not lead
// elsewhere.
func ParentOf(list []Folder, path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	for _, a := range list {
		if path == a.path || !text.Inside(a.path, path) {
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

// IdentifyIn identifies a name in an open folder.
func IdentifyIn(folder int, path string) (Identity, bool) {
	var st unix.Stat_t
	if unix.Fstatat(folder, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return Identity{}, false
	}
	//nolint:unconvert // other architectures have other widths
	return Identity{path, uint64(st.Dev), st.Ino, st.Mode&unix.S_IFMT == unix.S_IFLNK}, true
}

// Identify identifies a place, reached without following links.
func Identify(list []Folder, path string) (Identity, bool) {
	folder, err := ParentOf(list, path)
	if err != nil {
		return Identity{}, false
	}
	defer func() { _ = unix.Close(folder) }()
	return IdentifyIn(folder, path)
}

// Identity is the identity of a sensitive place before a command.
type Identity struct {
	Path     string
	Dev, Ino uint64
	Link     bool `json:",omitempty"` // it can't be mounted over, so it can have been replaced
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
