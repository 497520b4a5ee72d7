package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// Salvage yields everything of a log that can still be read, in the order of the file, and every damage in
// between. It changes nothing and takes no lock; a concurrent append may be reported as damage of the last
// line.
func (s *Store) Salvage(ctx context.Context, id string) iter.Seq2[Salvaged, error] {
	return func(yield func(Salvaged, error) bool) {
		if err := s.salvage(ctx, id, yield); err != nil {
			yield(Salvaged{}, fmt.Errorf("salvage session %q: %w", id, err))
		}
	}
}

func (s *Store) salvage(ctx context.Context, id string, yield func(Salvaged, error) bool) (err error) {
	l, _, err := s.open(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	size, err := l.f.Size()
	if err != nil {
		return err
	}
	for rec, err := range l.salvage(cursor{}, size) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if !yield(rec, nil) {
			return nil
		}
	}
	return nil
}
