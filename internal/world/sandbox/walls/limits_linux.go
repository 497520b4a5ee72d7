package walls

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// ApplyHere sets the limits that also suit the keeper; the command inherits them.
func (l Limits) ApplyHere() error {
	for resource, n := range map[int]uint64{unix.RLIMIT_CPU: l.CPU, unix.RLIMIT_FSIZE: l.FileSize} {
		if n > 0 {
			if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
				return err
			}
		}
	}
	var core syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return err
	}
	core.Cur = 0 // a debugger's user can raise it within the hard limit: ulimit -c
	return syscall.Setrlimit(unix.RLIMIT_CORE, &core)
}

// ApplyTo sets the limits that don't suit the keeper. They apply shortly after the start: they are not a
// security boundary.
func (l Limits) ApplyTo(pid int) {
	for resource, n := range map[int]uint64{unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_NPROC: l.Processes} {
		if n > 0 {
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
		}
	}
}

// Limits are resource limits: soft and hard are equal; 0 is none.
type Limits struct {
	CPU, Memory, Processes, FileSize uint64
}
