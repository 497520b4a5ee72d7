package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Holder is who drives a session, as it wrote into the lease.
type Holder struct {
	Session string
	PID     int
	Host    string
	Since   time.Time
}

// Here reports whether the holder runs on this machine, so that its PID means
// something.
func (h Holder) Here() bool {
	host, err := os.Hostname()
	return err == nil && h.Host == host
}

// Held returns who drives sessions now, by the ids of these, the oldest first.
// Safe for concurrent use, like all that asks for holders: it changes nothing,
// and a session that is taken or given up meanwhile may be in it or not.
func (s *Store) Held(ctx context.Context) ([]Holder, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, fmt.Errorf("look for drivers: %w", err)
	}
	slices.Sort(ids)
	var held []Holder
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look for drivers: %w", err)
		}
		h, err := s.Holder(id)
		if err != nil {
			return nil, err
		}
		if h != nil {
			held = append(held, *h)
		}
	}
	return held, nil
}

// Holder returns who drives the session with the whole id; nil if nobody does, or
// there is no such session. One that died does not count. One that could not say
// who it is, for want of room on the disk, is not seen.
func (s *Store) Holder(id string) (*Holder, error) {
	if !isID(id) {
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
	if who.PID == 0 || who.dead() {
		return nil, nil
	}
	h := &Holder{Session: id, PID: who.PID, Host: who.Host, Since: who.Since}
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

// locked tells by trying. For that moment nobody else could take the lock, so it
// is only asked where nothing else tells.
func locked(f file) (bool, error) {
	got, err := f.TryLock()
	if err != nil || !got {
		return err == nil, err
	}
	return false, f.Unlock()
}
