//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package keep

import (
	"errors"
	"os"
	"syscall"
)

// TryLock acquires the flock(2) lock of an open file, if it is free. The kernel releases it when the file is
// closed or the process dies.
func TryLock(f *os.File, shared bool) (bool, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err := flock(f, how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	var why syscall.Errno
	if errors.As(err, &why) && why != syscall.EBADF {
		err = NoLocks(f.Name(), why)
	}
	return err == nil, err
}

// Unlock releases the lock of an open file.
func Unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

// flock retries if a signal interrupts it.
func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = syscall.Flock(int(fd), how); !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, result)
}
