//go:build !linux

package sandbox

// RunAsInit does nothing on systems other than Linux, where no program of ours is the first process.
func RunAsInit() (ran bool, code int) { return false, 0 }
