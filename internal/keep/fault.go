package keep

import (
	"errors"
	"slices"
	"syscall"
)

// DiskFault reports whether an error says that a disk takes nothing more or does not work: what
// failed can succeed later, unchanged.
func DiskFault(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}
