//go:build !linux

package sandbox

// Descendants lists the children of a process and all below them; nil on systems other than Linux.
func Descendants(int) []int { return nil }
