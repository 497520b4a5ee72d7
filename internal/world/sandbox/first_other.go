//go:build !linux

package sandbox

// First does nothing on systems other than Linux, where no program of ours is the first process.
func First() (ran bool, code int) { return false, 0 }
