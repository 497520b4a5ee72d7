package session

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// aged makes n sessions whose logs changed a while ago, each a second after the one before.
func aged(t *testing.T, s *Store, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id, _ := made(t, s, event.Opened{Format: 1, Root: "/w"}, said("hello <there>"), event.Titled{Title: "one"},
			event.Pinned{On: i%2 == 0}, event.Stopped{Reason: event.ReasonDone})
		at := time.Now().Add(-time.Hour).Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(s.logPath(id), at, at); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// unindexed is the result of List without an index.
func unindexed(t *testing.T, s *Store) []store.Info {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(s.Dir, listName)); err != nil {
		t.Fatal(err)
	}
	return list(t, s)
}

func list(t *testing.T, s *Store) []store.Info {
	t.Helper()
	infos, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

// TestListIndex checks that a list with an index is the one without, whatever has happened since the index was written,
// and to the index itself.
func TestListIndex(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	ids := aged(t, s, 20)
	path := filepath.Join(s.Dir, listName)
	list(t, s)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.readList()) != len(ids) {
		t.Errorf("the index holds %d sessions", len(s.readList()))
	}
	old := func(data []byte) func() error { return func() error { return os.WriteFile(path, data, 0o600) } }
	for _, c := range []struct {
		name   string
		happen func() error
	}{
		{"nothing", func() error { return nil }},
		{"an append", func() error { mustAppendTo(t, s, ids[3], said("more")); return nil }},
		{"a pin", func() error { mustAppendTo(t, s, ids[4], event.Pinned{On: true}); return nil }},
		{"a new session", func() error { made(t, s, said("new")); return nil }},
		{"damage", func() error { return os.WriteFile(s.logPath(ids[5]), []byte("no log\n"), 0o600) }},
		{"a lost log", func() error { return os.Remove(s.logPath(ids[6])) }},
		{"a removal", func() error { return s.Remove(t.Context(), ids[7]) }},
		{"an index of earlier", old(good)},
		{"a cut index", old(good[:len(good)/2])},
		{"a wrong index", old(bytes.Replace(good, []byte("hello"), []byte("HELLO"), 1))},
		{"an empty index", old(nil)},
		{"an index that is a folder", func() error { return os.Mkdir(path, 0o700) }},
	} {
		if c.name == "an index that is a folder" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.happen(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := list(t, &Store{Dir: s.Dir, Sync: SyncKill})
		if diff := cmp.Diff(unindexed(t, s), got, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); diff != "" {
			t.Errorf("after %s (-without +with an index):\n%s", c.name, diff)
		}
	}
}

func mustAppendTo(t *testing.T, s *Store, id string, body event.Body) {
	t.Helper()
	l, err := s.opened(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, body)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestListReadsNothingTwice checks that the index saves reading: changed content of a log does not show while its stamp
// is the same.
func TestListReadsNothingTwice(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	id := aged(t, s, 1)[0]
	want := list(t, s)
	info, err := os.Stat(s.logPath(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.logPath(id), make([]byte, info.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(s.logPath(id), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list(t, s)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// TestRemovedIsNotListed checks that the index keeps nothing of a session that was removed.
func TestRemovedIsNotListed(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	ids := aged(t, s, 3)
	list(t, s)
	for id, err := range s.RemoveEach(t.Context(), ids[:2]) {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, listName))
	if err != nil || bytes.Contains(data, []byte(ids[0])) || !bytes.Contains(data, []byte(ids[2])) {
		t.Errorf("the index is %q, %v", data, err)
	}
}

// TestListAtOnce lists and appends by several stores at once, as of several processes.
func TestListAtOnce(t *testing.T) {
	dir := t.TempDir()
	ids := aged(t, &Store{Dir: dir, Sync: SyncKill}, 10)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			s := &Store{Dir: dir, Sync: SyncKill}
			for range 10 {
				if infos, err := s.List(t.Context()); err != nil || len(infos) != len(ids) {
					t.Errorf("%d listed, %v", len(infos), err)
				}
				if l, err := s.opened(t.Context(), ids[i]); err != nil {
					t.Error(err)
				} else if _, err := l.Append(t.Context(), said("x")); err != nil || l.Close() != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := &Store{Dir: dir, Sync: SyncKill}
	got := list(t, s)
	if diff := cmp.Diff(unindexed(t, s), got); diff != "" {
		t.Errorf("(-without +with an index):\n%s", diff)
	}
}

// TestRecent checks that the order of Recent is that of List, also where the files' times say another, as in a copy.
func TestRecent(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	ids := aged(t, s, 6)
	later := time.Now().Add(time.Minute)
	for _, id := range []string{ids[0], ids[3]} {
		mustAppendTo(t, s, id, said("later"))
	}
	if err := os.Chtimes(s.logPath(ids[1]), later, later); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		info, err := os.Stat(s.logPath(id))
		if err == nil && info.ModTime().Before(time.Now().Add(-time.Minute)) { // a log is as young as its last event
			err = os.Chtimes(s.logPath(id), later, later)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []store.Info
	for info, err := range store.Recent(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info)
	}
	if diff := cmp.Diff(unindexed(t, s), got); diff != "" {
		t.Errorf("(-listed +recent):\n%s", diff)
	}
	if last, err := s.Resolve(t.Context(), "last"); err != nil || last != got[0].ID {
		t.Errorf("last is %s, %v; want %s", last, err, got[0].ID)
	}
}

// TestListReadOnly checks that a list writes nothing where it may not, and has no error.
func TestListReadOnly(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	aged(t, s, 3)
	before := readOnly(t, s.Dir)
	if got := list(t, s); len(got) != 3 {
		t.Errorf("%d listed", len(got))
	}
	if os.Getuid() == 0 {
		return // nothing is read-only for it
	}
	if diff := cmp.Diff(before, contents(t, s.Dir)); diff != "" {
		t.Errorf("listing has changed (-was +is):\n%s", diff)
	}
}
