package ports

import (
	"bufio"
	"encoding/hex"
	"errors"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MadeHere reports whether a connection was made by a process in this box, which must have the other end open.
// All boxes of a session share a network, so others can find the proxy of this one, whose hosts are open only
// to this command. The kernel determines the owner, so no token is needed.
func MadeHere(conn int) bool {
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

// inodeOf returns the inode of a connection's end with these addresses. Programs such as Java's and .NET's reach an
// IPv4 address by a socket for IPv6, which is in the other table.
func inodeOf(local, remote unix.Sockaddr) string {
	l, ok := local.(*unix.SockaddrInet4)
	r, ok2 := remote.(*unix.SockaddrInet4)
	if !ok || !ok2 {
		return ""
	}
	want := [2]netip.AddrPort{addressOf(l), addressOf(r)}
	for _, table := range []string{"tcp", "tcp6"} {
		for f := range sockets(table) {
			from, err := parseAddress(f[1])
			to, err2 := parseAddress(f[2])
			if err == nil && err2 == nil && want == [2]netip.AddrPort{from, to} && f[9] != "0" {
				return f[9]
			}
		}
	}
	return ""
}

func addressOf(a *unix.SockaddrInet4) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
}

// sockets yields the lines of a table of this network, as fields; see proc(5).
func sockets(table string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		file, err := os.Open("/proc/self/net/" + table)
		if err != nil {
			return
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if f := strings.Fields(lines.Text()); len(f) > 9 && !yield(f) {
				return
			}
		}
	}
}

// listener is a listening socket.
type listener struct {
	address netip.AddrPort
	socket  string // its name among the descriptors of its owners
}

// listeners returns the listening sockets of this network, of any process.
func listeners() (out []listener) {
	const listening = "0A"
	for _, table := range []string{"tcp", "tcp6"} {
		for f := range sockets(table) {
			if address, err := parseAddress(f[1]); err == nil && f[3] == listening {
				out = append(out, listener{address, "socket:[" + f[9] + "]"})
			}
		}
	}
	return out
}

// addresses returns the local addresses that reach it, the likeliest first.
func (l listener) addresses() []netip.AddrPort {
	if !l.address.Addr().IsUnspecified() {
		return []netip.AddrPort{l.address}
	}
	four := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), l.address.Port())
	if l.address.Addr().Is4() {
		return []netip.AddrPort{four}
	}
	return []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Loopback(), l.address.Port()), four}
}

// parseAddress parses an address in the kernel's format: its bytes as numbers of 32 bits of this processor. All
// supported architectures are little-endian.
func parseAddress(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err := errors.Join(err, err2); err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	address, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, errors.New("not an address: " + text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(n)), nil
}

// heldHere reports whether a process of this namespace, except the keeper itself, has a file open.
func heldHere(what string) bool {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false
	}
	for _, process := range processes {
		if filepath.Base(process) == strconv.Itoa(os.Getpid()) {
			continue
		}
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
