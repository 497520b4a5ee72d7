//go:build linux || darwin

package app

import (
	"fmt"
	"syscall"

	"github.com/inspan/inspan/internal/install/config"
)

const (
	leastFiles = 64         // open files: with fewer, no command can start in the sandbox
	leastSpace = 1600 << 20 // bytes of address space: with less, the program may crash at any moment
)

// roomToRun returns an error if the limits of this process are too small for a session. Without this check a
// run would fail at some step with an unclear error.
func roomToRun() error {
	var files, space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil && files.Cur < leastFiles {
		return config.Error{Err: fmt.Errorf("only %d files may be open at once, and a session needs %d; raise the limit: ulimit -n 1024",
			files.Cur, leastFiles)}
	}
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil && space.Cur < leastSpace {
		return config.Error{Err: fmt.Errorf("only %d MB of address space are allowed, and a session needs %d; "+
			"lift the limit: ulimit -v unlimited", space.Cur>>20, leastSpace>>20)}
	}
	return nil
}
