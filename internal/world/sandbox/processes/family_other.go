//go:build !linux

package processes

// Descendants lists the children of a process and all below them; nil on systems other than Linux.
func Descendants(int) []int { return nil }
