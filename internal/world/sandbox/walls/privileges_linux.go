package walls

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// DropPrivileges permanently drops every capability of the current thread and its children, including for root.
func DropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	for c := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, syscall.EINVAL) {
			break // beyond the last capability
		}
		if err != nil && !errors.Is(err, syscall.EPERM) {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0) // needs a capability that most users lack
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// secureBits remove root's special privileges, and lock that.
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3
