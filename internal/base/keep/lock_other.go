//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package keep

import (
	"errors"
	"fmt"
	"os"
)

// TryLock always fails: this platform has no locks that are released when their process dies.
func TryLock(f *os.File, _ bool) (bool, error) {
	return false, fmt.Errorf("lock %s: %w on this system", f.Name(), errors.ErrUnsupported)
}

// Unlock does nothing, because nothing can be locked.
func Unlock(*os.File) error { return nil }
