package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestAdopt checks that a workspace that moved can go back to each checkpoint from before and after, whether or not its
// new place had checkpoints already, and that the old store is gone.
func TestAdopt(t *testing.T) {
	for _, had := range []bool{false, true} {
		from, to := newStore(t), newStore(t)
		lay(t, from.Root, map[string]string{"f": "old", "big": string(make([]byte, bigObject))})
		old, err := from.Take(t.Context())
		must(t, err)
		lay(t, to.Root, map[string]string{"f": "new"})
		if had {
			_, err := to.Take(t.Context())
			must(t, err)
		}
		must(t, to.Adopt(t.Context(), from))
		must(t, to.Adopt(t.Context(), from)) // once more
		now, err := to.Take(t.Context())
		must(t, err)
		for id, want := range map[string]string{old.ID: "old", now.ID: "new"} {
			if data, err := to.Read(t.Context(), id, "f", 10); err != nil || string(data) != want {
				t.Errorf("had %t: %s is %q, %v", had, id, data, err)
			}
		}
		if data, err := to.Read(t.Context(), old.ID, "big", bigObject); err != nil || len(data) != bigObject {
			t.Errorf("had %t: the large file has %d bytes, %v", had, len(data), err)
		}
		if _, err := os.Stat(from.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("had %t: the old store is still there: %v", had, err)
		}
	}
}

// TestAdoptHoldsBack checks that nothing is taken over while a restore is unfinished where that would be lost.
func TestAdoptHoldsBack(t *testing.T) {
	from, to := newStore(t), newStore(t)
	for _, s := range []*Store{from, to} {
		_, err := s.Take(t.Context())
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(from.Dir, journalName), []byte("cut off"), 0o600))
	if err := to.Adopt(t.Context(), from); !errors.Is(err, ErrUnfinished) {
		t.Errorf("%v", err)
	}
	if ids, err := from.ids(); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
}
