package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSweep holds that only what a crash has left goes, and only if it is old.
func TestSweep(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	l := driven(t, s)
	mustAppend(t, l, said("x"))
	blob, err := l.Blobs().Put(t.Context(), strings.NewReader("kept"))
	if err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	paths := map[string]bool{ // and whether they stay
		buildMark + "20261121-131502-k3f9/log.jsonl":  false,
		removeMark + "20261121-131503-k3f9/log.jsonl": false,
		l.ID() + "/blobs/" + putMark + "OLD":          false,
		l.ID() + "/blobs/" + putMark + "NEW":          true,
		l.ID() + "/blobs/" + blob:                     true,
		"notes.txt":                                   true,
	}
	for name := range paths {
		path := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) != blob {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []string{path, filepath.Dir(path)} {
			if err := os.Chtimes(p, then, then); err != nil && !strings.HasSuffix(name, "NEW") {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chtimes(filepath.Join(s.Dir, l.ID(), "blobs", putMark+"NEW"), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context(), time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	for name, stays := range paths {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: %v, it is to stay: %v", name, err, stays)
		}
	}
	if got := get(t, l, blob); got != "kept" {
		t.Errorf("the blob holds %q", got)
	}
	if r, err := s.Fsck(t.Context(), l.ID(), false); err != nil || !r.OK() {
		t.Errorf("the session: %+v, %v", r, err)
	}
}
