//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package limit

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the flock(2) lock of the open file if nobody has it. The kernel
// gives it back when the file is closed or the process dies, however it dies.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	if errors.Is(result, syscall.EWOULDBLOCK) {
		return false, err
	}
	err = errors.Join(err, result)
	return err == nil, err
}
