package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSweep checks that only old leftovers of a crash are removed.
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
	if r, err := s.Fsck(t.Context(), l.ID(), false); err != nil || !r.OK() || r.Torn > 0 {
		t.Errorf("the session: %+v, %v", r, err)
	}
}

// TestSweepSpecs checks that a tool spec goes when it is old and no log refers to it, and that one that a new session
// has begun to use is not old.
func TestSweepSpecs(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	tools := bigTools(3)
	id, want := made(t, s, withTools(t, tools[:1])[:2]...)
	second, _ := made(t, s, withTools(t, tools[1:2])[:2]...)
	third, _ := made(t, s, withTools(t, tools[2:3])[:2]...)
	then, before := time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	for _, file := range specFiles(t, s) {
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Leftovers(t.Context(), before); err != nil || len(list) > 0 {
		t.Errorf("all are referred to: %+v, %v", list, err)
	}
	again, _ := made(t, &Store{Dir: s.Dir, Sync: SyncKill}, withTools(t, tools[1:2])[:2]...)
	for _, id := range []string{second, third, again} {
		if err := s.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Leftovers(t.Context(), before)
	if err != nil || len(list) != 1 || !list[0].Spec || list[0].Size < leastSpec {
		t.Errorf("one is old and not referred to: %+v, %v", list, err)
	}
	if err := s.Sweep(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if left := specFiles(t, s); len(left) != 2 {
		t.Errorf("%q are left, want the one referred to and the one just used", left)
	}
	got, err := reread(t, &Store{Dir: s.Dir}, id)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
