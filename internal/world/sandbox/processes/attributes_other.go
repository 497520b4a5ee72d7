//go:build unix && !linux

package processes

import "syscall"

func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
