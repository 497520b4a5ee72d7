//go:build linux || darwin

package keep

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free returns the number of bytes that a user may still write below a path.
func Free(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// Taken returns the disk space of a file, in bytes.
func Taken(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
