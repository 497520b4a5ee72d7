package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/store"
)

// Remove implements [store.Store].
func (s *Store) Remove(ctx context.Context, id string) error {
	for _, err := range s.RemoveEach(ctx, []string{id}) {
		if err != nil {
			return err
		}
	}
	return s.sweep()
}

// RemoveEach removes sessions like Remove, and yields each with the error if it still exists. It searches for
// their children once, so it is much faster with many.
func (s *Store) RemoveEach(ctx context.Context, ids []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all, err := s.ids()
		var gone []string
		defer func() { s.unlist(gone) }()
		for _, id := range ids {
			family, bad := family(all, id)
			if bad = errors.Join(err, bad, ctx.Err()); bad == nil {
				bad = s.remove(ctx, family)
			}
			if bad != nil {
				bad = fmt.Errorf("remove session %q: %w", id, bad)
			} else {
				gone = append(gone, family...)
			}
			if !yield(id, bad) {
				return
			}
		}
	}
}

// remove deletes a family of sessions unless one of them is being driven.
func (s *Store) remove(ctx context.Context, family []string) (err error) {
	for _, id := range family {
		lease, err := s.take(ctx, filepath.Join(s.Dir, id, leaseName))
		switch {
		case errors.Is(err, syscall.ENOSPC): // no lease fits on the disk, so none is held
			continue
		case err != nil:
			return err
		}
		defer lease.Close()
	}
	for _, id := range family {
		if err := s.fs().Rename(filepath.Join(s.Dir, id), filepath.Join(s.Dir, removeMark+id)); err != nil {
			return err
		}
	}
	err = s.syncDir(s.Dir)
	for _, id := range family {
		err = errors.Join(err, s.fs().Remove(filepath.Join(s.Dir, removeMark+id)))
	}
	return err
}

// family returns a session and all sessions that work for it, directly or not. All is in order.
func family(all []string, id string) ([]string, error) {
	if !store.IsID(id) {
		return nil, fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	family := []string{id}
	first, _ := slices.BinarySearch(all, id+".")
	for _, other := range all[first:] {
		if !kin.In(id, other) {
			break
		}
		family = append(family, other)
	}
	return family, nil
}

// sweep deletes sessions whose removal a crash interrupted.
func (s *Store) sweep() error {
	names, err := s.names(s.Dir)
	for _, name := range names {
		if strings.HasPrefix(name, removeMark) {
			err = errors.Join(err, s.fs().Remove(filepath.Join(s.Dir, name)))
		}
	}
	return err
}
