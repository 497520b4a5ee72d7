//go:build !linux

package walls

// Seal does nothing here: what a process may do is said by the box that it was started in.
func Seal() error { return nil }
