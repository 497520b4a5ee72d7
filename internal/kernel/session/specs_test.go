package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// bigTools returns n tools that are worth keeping once, and a small one.
func bigTools(n int) []llm.ToolSpec {
	small := llm.ToolSpec{Name: "small", Schema: json.RawMessage(`{}`)}
	tools := make([]llm.ToolSpec, n, n+1)
	for i := range tools {
		tools[i] = llm.ToolSpec{
			Name: fmt.Sprint("tool", i), Description: strings.Repeat("what <it> does & why \"#spec:0\" ", 20),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		}
	}
	if n > 2 {
		tools = append(tools, small)
	}
	return tools
}

// withTools returns events that carry specs: where a session starts, and in its snapshots.
func withTools(t *testing.T, tools []llm.ToolSpec) []event.Body {
	t.Helper()
	snapshot, err := json.Marshal(struct {
		System []string
		Tools  []llm.ToolSpec
	}{[]string{`say "#spec:00000000000000000000000000000000"`}, tools})
	if err != nil {
		t.Fatal(err)
	}
	return []event.Body{
		event.Opened{Format: 1, App: "m0"},
		event.Switched{Route: "p/m", Tools: tools},
		event.Compacted{Why: loop.CompactAsked, Snapshot: snapshot},
		event.Rewound{To: 2, Of: 3, Snapshot: snapshot},
		event.Switched{Mode: "plan"},
	}
}

// session makes one that holds the bodies, and returns its id and their events.
func made(t *testing.T, s *Store, bodies ...event.Body) (id string, events []event.Event) {
	t.Helper()
	l, err := s.create(t.Context(), empty)
	if err != nil {
		t.Fatal(err)
	}
	if err = l.Lease(t.Context()); err == nil {
		events, err = put(t.Context(), l, bodies)
	}
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return l.ID(), events
}

// reread returns all events of a session, and the error that ends them.
func reread(t *testing.T, s *Store, id string) (events []event.Event, err error) {
	t.Helper()
	for e, bad := range s.Events(t.Context(), id) {
		if bad != nil {
			return events, bad
		}
		events = append(events, e)
	}
	return events, nil
}

// specFiles lists the files of specs.
func specFiles(t *testing.T, s *Store) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.specsDir(), "*"+specExt))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestSpecsAreKeptOnce checks that logs hold no big spec, that readers see all of them, and that each has one file
// however many sessions use it.
func TestSpecsAreKeptOnce(t *testing.T) {
	dir := t.TempDir()
	tools := bigTools(30)
	var ids []string
	var want []event.Event
	for range 3 {
		id, events := made(t, &Store{Dir: dir, Sync: SyncKill}, withTools(t, tools)...)
		ids, want = append(ids, id), events
	}
	fresh := &Store{Dir: dir, Sync: SyncKill}
	if n, err := fresh.Usage(t.Context(), ids[2]); err != nil || n > 6<<10 {
		t.Errorf("a session with 30 tools, three times, takes %d bytes, %v", n, err)
	}
	got, err := reread(t, fresh, ids[2])
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("read back, %v (-want +got):\n%s", err, diff)
	}
	if files := specFiles(t, fresh); len(files) != 60 { // a snapshot spells < and & differently
		t.Errorf("30 tools have %d files", len(files))
	}
	l, err := fresh.fork(t.Context(), ids[0], 4)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if start, err := l.Start(t.Context()); start != 3 || err != nil {
		t.Errorf("a fork starts behind %d, %v; want behind the compaction", start, err)
	}
	for i, e := range readAll(t, l)[:4] {
		if diff := cmp.Diff(want[i].Body, e.Body); diff != "" {
			t.Errorf("event %d of the fork (-want +got):\n%s", i+1, diff)
		}
	}
	if r, err := fresh.Fsck(t.Context(), ids[0], false); err != nil || !r.OK() || r.Torn > 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
}

// TestSpecThatIsNotThere checks that a session whose spec is gone or changed is damaged, in words that name the file,
// and whole again once a session with the same tools begins.
func TestSpecThatIsNotThere(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"missing": os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte(`{"name":"other"}`), 0o600) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Dir: t.TempDir(), Sync: SyncKill}
			bodies := withTools(t, bigTools(2))[:2]
			id, want := made(t, s, append(bodies, event.Titled{Title: "behind"})...)
			file := specFiles(t, s)[0]
			if err := harm(file); err != nil {
				t.Fatal(err)
			}
			fresh := &Store{Dir: s.Dir, Sync: SyncKill}
			got, err := reread(t, fresh, id)
			damage, ok := errors.AsType[*DamageError](err)
			if !ok || damage.Line != 2 || !strings.Contains(err.Error(), "specs/"+filepath.Base(file)) || len(got) != 1 {
				t.Errorf("read %d events, then %v", len(got), err)
			}
			r, err := fresh.Fsck(t.Context(), id, true)
			if err != nil || r.OK() || len(r.Damage) != 1 || r.Torn > 0 || r.Damage[0].Line != 2 {
				t.Errorf("check: %+v, %v", r, err)
			}
			if list, err := fresh.List(t.Context()); err != nil || list[0].Title != "behind" {
				t.Errorf("list: %+v, %v", list, err)
			}
			made(t, &Store{Dir: s.Dir, Sync: SyncKill}, bodies...)
			got, err = reread(t, fresh, id)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("mended by a new session: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestSpecThatCantBeRead checks that a failing disk does not count as damage: the log can be read later.
func TestSpecThatCantBeRead(t *testing.T) {
	m := newMemDisk()
	id, want := made(t, &Store{Dir: "/store", disk: m}, withTools(t, bigTools(1))[:2]...)
	s := &Store{Dir: "/store", disk: m}
	l, err := s.opened(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m.failAt = m.ops + 1 // the next that is opened is the spec
	for _, err := range l.Read(t.Context(), 1) {
		if _, damaged := errors.AsType[*DamageError](err); damaged || !errors.Is(err, syscall.EIO) {
			t.Errorf("read: %v, want EIO and no damage", err)
		}
	}
	if diff := cmp.Diff(want, readAll(t, l)); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

// TestSpecsAtOnce has several stores, as of several processes, write the same specs.
func TestSpecsAtOnce(t *testing.T) {
	dir, bodies := t.TempDir(), withTools(t, bigTools(5))
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], _ = made(t, &Store{Dir: dir}, bodies...) })
	}
	all.Wait()
	s := &Store{Dir: dir}
	for _, id := range ids {
		if events, err := reread(t, s, id); err != nil || len(events) != len(bodies) {
			t.Errorf("session %s holds %d events, %v", id, len(events), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.specsDir(), putMark+"*")); err != nil || len(left) > 0 {
		t.Errorf("half written specs are left: %q, %v", left, err)
	}
}

// TestSpecsOnABadDisk checks that a line holds its specs itself where they can't be kept once.
func TestSpecsOnABadDisk(t *testing.T) {
	t.Run("no folder", func(t *testing.T) {
		s := &Store{Dir: t.TempDir(), Sync: SyncKill}
		if err := os.WriteFile(s.specsDir(), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		id, want := made(t, s, withTools(t, bigTools(3))...)
		got, err := reread(t, s, id)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("full disk", func(t *testing.T) {
		for n := 1; ; n++ {
			m := newMemDisk()
			s := &Store{Dir: "/store", disk: m}
			l, err := s.create(t.Context(), empty)
			if err == nil {
				err = l.Lease(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			m.failAt, m.how = m.ops+n, failHalf
			want, failed := put(t.Context(), l, withTools(t, bigTools(2))[:2])
			_ = l.Close()
			hit := m.hit
			after := &Store{Dir: "/store", disk: m.crash(false, 0, false)}
			got, err := reread(t, after, l.ID())
			if err != nil || failed == nil && !cmp.Equal(want, got) {
				t.Errorf("%q at operation %d (%v): %d events are left, %v", hit, n, failed, len(got), err)
			}
			if hit == "" {
				return
			}
		}
	})
}

// TestSpecsReadOnly checks that reading works where nothing can be written, and writes nothing.
func TestSpecsReadOnly(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	id, want := made(t, s, withTools(t, bigTools(2))...)
	before := readOnly(t, s.Dir)
	got, err := reread(t, &Store{Dir: s.Dir}, id)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(before, contents(t, s.Dir)); diff != "" {
		t.Errorf("reading has changed (-was +is):\n%s", diff)
	}
}

// readOnly makes everything below a folder read-only, and returns its content.
func readOnly(t *testing.T, dir string) map[string]string {
	t.Helper()
	t.Cleanup(func() { chmod(t, dir, 0o700) })
	chmod(t, dir, 0o500)
	return contents(t, dir)
}

func chmod(t *testing.T, dir string, mode fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, mode)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// contents are all files below a folder, with their times.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = info.ModTime().Format(time.RFC3339Nano) + " " + string(bytes.ToValidUTF8(data, nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestReservedKinds checks that no event that reads as a reference can be appended.
func TestReservedKinds(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	l, err := s.create(t.Context(), empty)
	if err == nil {
		err = l.Lease(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, kind := range []string{"switched", "compacted", "rewound"} {
		raw := `{"tools":["#spec:` + strings.Repeat("0", digestLen) + `"]}`
		body := event.Unknown{Name: kind + specsMark, Must: true, Raw: json.RawMessage(raw)}
		if _, err := put(t.Context(), l, []event.Body{body}); !errors.Is(err, errReserved) {
			t.Errorf("%s is taken: %v", body.Name, err)
		}
	}
}
