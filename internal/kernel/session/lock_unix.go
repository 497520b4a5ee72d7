//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package session

import (
	"errors"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
)

// TryLock takes the flock(2) lock of the open file. The kernel releases it when the process dies, however it
// dies.
func (f osFile) TryLock() (bool, error) { return keep.TryLock(f.File, false) }

// gone reports whether there is no process with that number.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Unlock releases the lock.
func (f osFile) Unlock() error { return keep.Unlock(f.File) }

// control calls do with the descriptor, again if a signal interrupts it.
func (f osFile) control(do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = do(int(fd)); !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return result
}
