package keeper

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// For some system calls seccomp asks the keeper (seccomp_unotify(2)): it reads a copy of the arguments, which
// can't be changed meanwhile, and makes the call itself.

// heldCall is struct seccomp_notif.
type heldCall struct {
	id   uint64
	task uint32 // thread id in the keeper's namespace
	_    uint32
	nr   int32
	arch uint32
	ip   uint64
	args [6]uint64
}

// heldAnswer is struct seccomp_notif_resp.
type heldAnswer struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// errGoOn lets the kernel make a call as without the keeper.
var errGoOn = errors.New("the kernel is to do it")

// filterCalls installs a filter on the current thread that asks the keeper. On kernels that don't support that
// (before 5.19) the filter only denies.
func (c *command) filterCalls() error {
	listener, err := walls.FilterAsking(tool.BoxWorkspace, !c.order.Box.Init)
	if err == nil && listener >= 0 {
		// The calling and the answering thread alternate, so let them share a processor (since Linux 6.6).
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
		go c.answer(listener)
	}
	return err
}

// answer answers calls until no filtered thread is left.
func (k *keeper) answer(listener int) {
	var asked sync.WaitGroup
	defer func() {
		asked.Wait()
		_ = unix.Close(listener)
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
		switch events := fds[0].Revents; {
		case events&unix.POLLIN != 0:
		case events != 0:
			return
		default:
			continue
		}
		var c heldCall
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&c))); errno != 0 {
			continue // the thread has ended
		}
		if c.nr == unix.SYS_CONNECT {
			asked.Go(func() { c.end(listener, k.connect(listener, c)) }) // a connect can take long
			continue
		}
		c.end(listener, k.folder(listener, c))
	}
}

// end reports the result of a call.
func (c *heldCall) end(listener int, err error) {
	answer := heldAnswer{id: c.id}
	var errno syscall.Errno
	switch {
	case errors.Is(err, errGoOn):
		answer.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case errors.As(err, &errno):
		answer.errno = -int32(errno)
	case err != nil:
		answer.errno = -int32(syscall.EACCES)
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
}

// read copies the thread's memory at an address, as far as it is mapped.
func (c *heldCall) read(into []byte, address uint64) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	local, remote := []unix.Iovec{{Base: &into[0]}}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}
	local[0].SetLen(len(into))
	return unix.ProcessVMReadv(int(c.task), local, remote, 0)
}

// still returns nil if the thread still waits for the answer: it could have ended, and its id could be reused.
func (c *heldCall) still(listener int) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&c.id))); errno != 0 {
		return errno
	}
	return nil
}

// ofTask returns a path as seen by a thread.
func ofTask(task int, path string) string {
	for _, self := range []string{"/proc/self/", "/proc/thread-self/"} {
		if rest, ok := strings.CutPrefix(path, self); ok {
			return fmt.Sprintf("/proc/%d/%s", task, rest)
		}
	}
	return path
}
