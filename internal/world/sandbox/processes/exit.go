//go:build unix

package processes

import (
	"syscall"
)

// ExitCode returns the exit code; 128+n for an end by signal n.
func ExitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
