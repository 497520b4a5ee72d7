//go:build unix

package processes

import (
	"syscall"
)

// ControlTerminal has a process take its standard input for the terminal that controls it.
func ControlTerminal(attr *syscall.SysProcAttr) { attr.Setctty, attr.Ctty = true, 0 }
