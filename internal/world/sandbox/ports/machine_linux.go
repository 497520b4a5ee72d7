package ports

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
)

// NewSockets creates as many sockets as a command can have ports.
func NewSockets(family int) (list []int, err error) {
	for range protocol.MaxPorts {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return list, os.NewSyscallError("socket", err)
		}
		list = append(list, fd)
		// As servers do; otherwise a port would be blocked for a minute after its use.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return list, os.NewSyscallError("setsockopt", err)
		}
		if family == unix.AF_INET6 {
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
				return list, os.NewSyscallError("setsockopt", err)
			}
		}
	}
	return list, nil
}
