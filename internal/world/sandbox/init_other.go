//go:build !linux

package sandbox

// RunAsInit does nothing on systems other than Linux, where this program is never the first process.
func RunAsInit() (ran bool, code int) { return false, 0 }
