package snapshot

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep the opening of a pipe from waiting, and links from being
// followed.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// syncEach says that syncAll is not enough.
const syncEach = false

// clone makes to share the content of from, if the file system can.
func clone(to, from *os.File) bool {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
}

// syncAll puts all that was written to the file system of f on the disk.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
