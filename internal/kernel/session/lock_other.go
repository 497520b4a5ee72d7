//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package session

import (
	"errors"
	"fmt"
)

// TryLock always fails: without a lock that dies with its process nothing
// this package promises could be kept.
func (f osFile) TryLock() (bool, error) {
	return false, fmt.Errorf("lock %s: %w on this system", f.Name(), errors.ErrUnsupported)
}

// Unlock does nothing, as nothing can be locked.
func (f osFile) Unlock() error { return nil }

// gone can't be told.
func gone(int) bool { return false }
