package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/store"
)

// Held implements [store.Store]. Like all queries for holders it changes nothing.
func (s *Store) Held(ctx context.Context) ([]store.Holder, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("look for drivers: %w", err)
	}
	slices.Sort(ids)
	var held []store.Holder
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look for drivers: %w", err)
		}
		switch h, err := s.Holder(ctx, id); {
		case err != nil: // one lease that can't be read must not hide the others
			held = append(held, store.Holder{Session: id})
		case h != nil:
			held = append(held, *h)
		}
	}
	return held, nil
}

// Holder implements [store.Store]. A dead holder does not count. A holder that could not write its identity
// because the disk was full is not found.
func (s *Store) Holder(ctx context.Context, id string) (*store.Holder, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look who drives session %s: %w", id, err)
	}
	if !store.IsID(id) {
		return nil, nil
	}
	path := filepath.Join(s.Dir, id, leaseName)
	f, err := s.fs().Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look who drives session %s: %w", id, err)
	}
	defer f.Close()
	who := holder(f)
	if who.PID == 0 || dead(who) {
		return nil, nil
	}
	h := &store.Holder{Session: id, PID: who.PID, Host: who.Host, Since: who.Since}
	held, known := false, false
	if h.Here() {
		held, known = holds(who.PID, path)
	}
	if !known {
		held, err = locked(f)
	}
	if err != nil {
		return nil, fmt.Errorf("look who drives session %s: %w", id, err)
	}
	if !held {
		return nil, nil
	}
	return h, nil
}

// locked finds out by trying. For that moment no one else can take the lock, so it is only used if nothing else
// tells.
func locked(f file) (bool, error) {
	got, err := f.TryLock()
	if err != nil || !got {
		return err == nil, err
	}
	return false, f.Unlock()
}
