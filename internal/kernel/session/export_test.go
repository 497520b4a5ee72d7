package session

import (
	"path/filepath"
	"testing"
)

// Virtual is a store whose disk is in memory.
func Virtual() *Store { return &Store{Dir: "/store", disk: newMemDisk()} }

// LoseLease frees the lease of a session without the holder's knowledge.
func (s *Store) LoseLease(id string) error {
	return s.fs().Remove(filepath.Join(s.Dir, id, leaseName))
}

// Stride is how far sweeps go from one place to the next. make test-long visits every place.
func Stride() int {
	if testing.Short() {
		return 11
	}
	return 1
}
