//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package session

import (
	"errors"
	"syscall"
)

// TryLock takes the flock(2) lock of the open file. The kernel gives it back
// when the process dies, however it dies.
func (f osFile) TryLock() (bool, error) {
	err := f.flock(syscall.LOCK_EX | syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// gone reports whether there is no process of that number.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Unlock gives the lock back.
func (f osFile) Unlock() error { return f.flock(syscall.LOCK_UN) }

func (f osFile) flock(how int) error {
	return f.control(func(fd int) error { return syscall.Flock(fd, how) })
}

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
