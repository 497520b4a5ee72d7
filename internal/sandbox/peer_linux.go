package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ours reports whether a connection was made by a process of this box, which
// must have the other end open. All boxes of a session share a network, so
// others can find the proxy of this one; what it reaches was opened to this
// command alone. The kernel says whose an end is: there is no word to pass on.
func (k *keeper) ours(conn int) bool {
	here, err := unix.Getsockname(conn)
	if err != nil {
		return false
	}
	there, err := unix.Getpeername(conn)
	if err != nil {
		return false
	}
	inode := inodeOf(there, here)
	return inode != "" && heldHere("socket:["+inode+"]")
}

// inodeOf returns the number of the end of a connection, as it sees the two.
func inodeOf(local, remote unix.Sockaddr) string {
	l, ok := local.(*unix.SockaddrInet4)
	r, ok2 := remote.(*unix.SockaddrInet4)
	if !ok || !ok2 {
		return ""
	}
	file, err := os.Open("/proc/self/net/tcp")
	if err != nil {
		return ""
	}
	defer file.Close()
	want := []string{written(l), written(r)}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 9 && slices.Equal(f[1:3], want) && f[9] != "0" {
			return f[9]
		}
	}
	return ""
}

// written is an address as the kernel writes it: its bytes as one number of this
// processor. All that we know rules for are little-endian.
func written(a *unix.SockaddrInet4) string {
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", a.Addr[3], a.Addr[2], a.Addr[1], a.Addr[0], a.Port)
}

// heldHere reports whether any process of this namespace has something open.
func heldHere(what string) bool {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false
	}
	for _, process := range processes {
		entries, err := os.ReadDir(process + "/fd")
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			if to, err := os.Readlink(process + "/fd/" + e.Name()); err == nil && to == what {
				return true
			}
		}
	}
	return false
}
