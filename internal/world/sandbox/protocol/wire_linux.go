package protocol

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Wire is the keeper's end of a connection. Waiting on it blocks no thread: otherwise the runtime's checks for
// threads in system calls would take more time than a command.
type Wire struct {
	file    *os.File
	raw     syscall.RawConn
	writing sync.Mutex
	Lines   Lines
}

// NewWire returns a connection on the socket fd, which it owns from then on.
func NewWire(fd int) (*Wire, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	w := &Wire{file: os.NewFile(uintptr(fd), "wire")}
	raw, err := w.file.SyscallConn()
	w.raw, w.Lines.Receive = raw, w.receive
	return w, err
}

// receive reads available data, and waits until there is some.
func (w *Wire) receive(p, oob []byte) (n, oobn int, err error) {
	waited := w.raw.Read(func(fd uintptr) bool {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), p, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(err, syscall.EAGAIN)
	})
	return n, oobn, cmp.Or(waited, err)
}

func (w *Wire) Tell(r Report) {
	line, err := Encode(r)
	if err != nil {
		return
	}
	w.Send(line, nil)
}

// Send writes a line with its descriptor. Receive detects a closed connection.
func (w *Wire) Send(line, oob []byte) {
	w.writing.Lock()
	defer w.writing.Unlock()
	_ = w.raw.Write(func(fd uintptr) bool {
		for len(line) > 0 {
			n, err := unix.SendmsgN(int(fd), line, oob, nil, unix.MSG_NOSIGNAL)
			switch {
			case errors.Is(err, syscall.EAGAIN):
				return false
			case errors.Is(err, syscall.EINTR):
				continue
			case err != nil:
				return true
			}
			line, oob = line[n:], nil
		}
		return true
	})
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
