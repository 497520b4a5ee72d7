//go:build unix

package processes

import (
	"syscall"
)

// ControlTerminal makes a process's standard input its controlling terminal.
func ControlTerminal(attr *syscall.SysProcAttr) { attr.Setctty, attr.Ctty = true, 0 }
