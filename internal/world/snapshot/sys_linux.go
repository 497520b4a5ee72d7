package snapshot

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep an open from blocking on a pipe, and from following links.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// syncEach says that syncAll is not enough.
const syncEach = false

// clone lets to share the content of from, if the file system can.
func clone(to, from *os.File) bool {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
}

// syncAll flushes all writes to the file system of f.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
