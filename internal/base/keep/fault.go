package keep

import (
	"errors"
	"slices"
	"syscall"
)

// Fault is an error of writing or syncing one of our open files. Whatever the system's reason, the disk is not
// working.
type Fault struct{ Err error }

// Error implements error.
func (f Fault) Error() string { return f.Err.Error() }

// Unwrap returns the system's error.
func (f Fault) Unwrap() error { return f.Err }

// DiskFault reports whether an error says that a disk is full or not working: the operation can succeed later,
// unchanged.
func DiskFault(err error) bool {
	_, ours := errors.AsType[Fault](err)
	return ours || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}
