//go:build unix

package shell

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has used, which other processes do not lengthen.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
