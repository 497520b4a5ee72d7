package processes

import (
	"syscall"
)

// Attributes starts a process in a session of its own that is killed when its parent dies.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
