//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package session

import (
	"errors"
	"fmt"
)

// TryLock always fails: the guarantees of this package need a lock that is released when its process dies.
func (f osFile) TryLock() (bool, error) {
	return false, fmt.Errorf("lock %s: %w on this system", f.Name(), errors.ErrUnsupported)
}

// Unlock does nothing, because nothing can be locked.
func (f osFile) Unlock() error { return nil }

// gone returns false, because this is unknown here.
func gone(int) bool { return false }
