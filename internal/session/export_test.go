package session

import "path/filepath"

// Virtual is a store whose disk is in memory.
func Virtual() *Store { return &Store{Dir: "/store", disk: newMemDisk()} }

// LoseLease has nobody hold the lease of a session, without the holder learning of it.
func (s *Store) LoseLease(id string) error {
	return s.fs().Remove(filepath.Join(s.Dir, id, leaseName))
}

// Stride is how far sweeps go from one place to the next: more than 1 with the race detector.
const Stride = stride
