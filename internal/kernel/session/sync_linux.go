package session

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Sync makes content and size durable, without the write of the inode that a
// changed modification time alone would cost.
func (f osFile) Sync() error {
	return f.control(syscall.Fdatasync)
}

// Begin implements [beginner].
func (f osFile) Begin(from, size int64) {
	_ = f.control(func(fd int) error { return unix.SyncFileRange(fd, from, size, unix.SYNC_FILE_RANGE_WRITE) })
}
