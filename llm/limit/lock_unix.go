//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package limit

import (
	"os"

	"github.com/inspan/inspan/internal/base/keep"
)

// tryLock takes the lock of the open file if it is free.
func tryLock(f *os.File) (bool, error) { return keep.TryLock(f, false) }
