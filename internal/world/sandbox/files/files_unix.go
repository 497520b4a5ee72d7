//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
)

const openNonblock = syscall.O_NONBLOCK

// hardLinks returns the number of a file's names.
func hardLinks(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // other systems have other widths
	}
	return 1
}

// keepOwner gives file the owner of the one that it will replace. Without permission the file belongs to the
// user who writes it, which is not an error, as when an editor saves.
func keepOwner(file *os.File, info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() {
		return
	}
	if file.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = file.Chown(-1, int(st.Gid))
	}
}

// syncDir syncs the names in a directory.
func syncDir(dir string) error { return keep.Sync(dir) }
