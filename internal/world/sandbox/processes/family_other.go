//go:build !linux

package processes

// Descendants lists all descendants of a process; nil on systems other than Linux.
func Descendants(int) []int { return nil }
