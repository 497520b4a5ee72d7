//go:build unix

package script_test

import (
	"syscall"
	"testing"
)

// memoryOfChildren returns the most memory that a process of this test has had, in bytes.
func memoryOfChildren(t *testing.T) int64 {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		t.Fatal(err)
	}
	return used.Maxrss << 10
}
