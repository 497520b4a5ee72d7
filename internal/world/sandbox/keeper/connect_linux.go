package keeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
)

// No file system keeps a box from connecting to a socket that a process outside creates in the workspace while the
// box is open. So the keeper connects on behalf of its commands: seccomp passes each call to it
// (seccomp_unotify(2)), and it reads a copy of the address that the command can't change. It connects to a socket
// with a path only if a process in the session's network created it, according to sock_diag(7). Datagram sockets,
// which need no connection, are denied by workspaceCalls.

// connect makes a command's connect call.
func (k *keeper) connect(listener int, c heldCall) error {
	socket, err := takeFile(int(c.task), int(c.args[0]))
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	var whole [unix.SizeofSockaddrAny + 16]byte // as long as sockaddr_storage
	size := int(int32(c.args[2]))
	if size < 0 || size > len(whole) {
		return syscall.EINVAL
	}
	address := whole[:size]
	if n, err := c.read(address, c.args[1]); err != nil || n < size {
		return syscall.EFAULT
	}
	if err := c.still(listener); err != nil {
		return err
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if path, ok := socketPath(address); ok && domain == unix.AF_UNIX {
		return k.connectPath(socket, int(c.task), path)
	}
	var at unsafe.Pointer
	if size > 0 {
		at = unsafe.Pointer(&address[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(at), uintptr(size))
	if errno != 0 {
		return errno
	}
	return nil
}

// socketPath returns the path in an address, if it has one.
func socketPath(address []byte) (string, bool) {
	const family = 2 // bytes of the family
	if len(address) <= family || binary.NativeEndian.Uint16(address) != unix.AF_UNIX || address[family] == 0 {
		return "", false
	}
	path, _, _ := bytes.Cut(address[family:], []byte{0})
	return string(path), true
}

// connectPath connects to a socket with a path, as seen by the thread.
func (k *keeper) connectPath(socket, task int, path string) error {
	cwd, err := unix.Open(fmt.Sprintf("/proc/%d/cwd", task), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(cwd) }()
	file, err := unix.Openat(cwd, ofTask(task, path), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(file) }()
	if inside, err := boundHere(file); err != nil || !inside {
		if now := k.now.Load(); now != nil {
			now.tell(protocol.Report{Op: protocol.OpRefused, Text: "refused to connect to " + path + ": nothing in this sandbox listens there"})
		}
		return syscall.EACCES
	}
	return unix.Connect(socket, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)})
}

// takeFile duplicates a descriptor of a thread.
func takeFile(task, fd int) (int, error) {
	const thread = unix.O_EXCL // PIDFD_THREAD, since Linux 6.9
	handle, err := unix.PidfdOpen(task, thread)
	if errors.Is(err, syscall.EINVAL) {
		handle, err = unix.PidfdOpen(leaderOf(task), 0)
	}
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(handle) }()
	return unix.PidfdGetfd(handle, fd, 0)
}

// leaderOf returns the process of a thread.
func leaderOf(task int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", task))
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return task
	}
	return pid
}

// boundHere reports whether a file is a socket that was bound in this network. It returns true for a file that
// is not a socket: the kernel rejects it.
func boundHere(file int) (bool, error) {
	var is unix.Statx_t
	if err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_MNT_ID, &is); err != nil {
		return false, err
	}
	if is.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return true, nil
	}
	device, err := deviceOf(is.Mnt_id)
	if err != nil {
		return false, err
	}
	bound := false
	err = eachBound(func(inode, dev uint32) { bound = bound || inode == uint32(is.Ino) && dev == device })
	return bound, err
}

// deviceOf returns the kernel-internal device number of a mount's file system, which differs from that of
// stat(2) for some file systems.
func deviceOf(mount uint64) (uint32, error) {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != strconv.FormatUint(mount, 10) {
			continue
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(fields[2], "%d:%d", &major, &minor); err != nil {
			return 0, err
		}
		return major<<20 | minor, nil
	}
	return 0, fmt.Errorf("no mount %d in %s", mount, filepath.Join("/proc", "self", "mountinfo"))
}

// eachBound calls f for each Unix socket in this network that is bound to a file, according to UNIX_DIAG_VFS of
// linux/unix_diag.h.
func eachBound(f func(inode, device uint32)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	const head, request, answer, showFile, file = unix.SizeofNlMsghdr, 24, 16, 2, 1
	ask := make([]byte, head+request)
	order := binary.NativeEndian
	order.PutUint32(ask, uint32(len(ask)))
	order.PutUint16(ask[4:], 20) // SOCK_DIAG_BY_FAMILY
	order.PutUint16(ask[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	ask[head] = unix.AF_UNIX
	order.PutUint32(ask[head+4:], ^uint32(0)) // in any state
	order.PutUint32(ask[head+12:], showFile)
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR:
				return errors.New("the kernel does not list sockets")
			case len(m.Data) < answer:
				continue
			}
			for rest := m.Data[answer:]; len(rest) >= 4; {
				size, kind := int(order.Uint16(rest)), order.Uint16(rest[2:])
				if size < 4 || size > len(rest) {
					break
				}
				if kind == file && size >= 12 {
					f(order.Uint32(rest[4:]), order.Uint32(rest[8:]))
				}
				rest = rest[min(len(rest), (size+3)&^3):]
			}
		}
	}
}
