package keep

import (
	"errors"
	"slices"
	"syscall"
)

// Fault is why a file could not be written or synced that is ours and open. Whatever reason the system
// gives, the disk does not work.
type Fault struct{ Err error }

// Error implements error.
func (f Fault) Error() string { return f.Err.Error() }

// Unwrap returns what the system has said.
func (f Fault) Unwrap() error { return f.Err }

// DiskFault reports whether an error says that a disk takes nothing more or does not work: what
// failed can succeed later, unchanged.
func DiskFault(err error) bool {
	_, ours := errors.AsType[Fault](err)
	return ours || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}
