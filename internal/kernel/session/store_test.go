package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

func TestCreate(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 15, 2, 0, time.UTC)
	s := &Store{
		Dir: filepath.Join(t.TempDir(), "a", "b"), Sync: SyncKill,
		now:    func() time.Time { return at },
		random: strings.NewReader("\x13\x03\x0f\x09" + "\x13\x03\x0f\x09" + "\x00\x01\x02\x03"), // the second time it is taken
	}
	for _, want := range []string{"20261121-131502-k3f9", "20261121-131502-0123"} {
		l, err := s.create(t.Context(), empty)
		if err != nil {
			t.Fatal(err)
		}
		if l.ID() != want {
			t.Errorf("id is %s, want %s", l.ID(), want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(filepath.Join(s.Dir, "20261121-131502-k3f9"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v, %v", info.Mode(), err)
	}
	info, err = os.Stat(filepath.Join(s.Dir, "20261121-131502-k3f9", logName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log has mode %v, %v", info.Mode(), err)
	}
}

// TestChild checks that a parent and a name identify one session, that it is removed with its parent, and that "last"
// never means it.
func TestChild(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	parent, err := s.create(t.Context(), empty)
	if err != nil {
		t.Fatal(err)
	}
	write := func(l *Log, body event.Body) {
		t.Helper()
		err := l.Lease(t.Context())
		if err == nil {
			_, err = put(t.Context(), l, []event.Body{body})
		}
		if err = errors.Join(err, l.Release()); err != nil {
			t.Fatal(err)
		}
	}
	write(parent, event.Opened{Format: 1})
	mustAppend(t, parent, said("x"))
	open := func(of, name string, wantNew bool) *Log {
		t.Helper()
		l, isNew, err := s.Child(t.Context(), of, name)
		if err != nil || isNew != wantNew {
			t.Fatalf("child %q of %s: new %v, %v", name, of, isNew, err)
		}
		t.Cleanup(func() { l.Close() }) //nolint:errcheck // may be closed already
		return l.(*Log)
	}
	first := open(parent.ID(), "call 1", true)
	open(parent.ID(), "call 1", true) // it is still empty
	write(first, event.Opened{Format: 1, Parent: parent.ID()})
	if again := open(parent.ID(), "call 1", false); again.ID() != first.ID() || !strings.HasPrefix(again.ID(), parent.ID()+".") {
		t.Errorf("the same name gives %s and %s", first.ID(), again.ID())
	}
	if other := open(parent.ID(), "call 2", true); other.ID() == first.ID() {
		t.Error("two names give one session")
	}
	grandchild := open(first.ID(), "call 1", true)
	if last, err := store.Resolve(t.Context(), s, "last"); err != nil || last != parent.ID() {
		t.Errorf("last is %s, %v", last, err)
	}
	if _, _, err := s.Child(t.Context(), "../x", "call"); err == nil {
		t.Error("a child of what is no session")
	}
	// Leftovers of a crash in the middle are no obstacle.
	third, err := store.ChildID(parent.ID(), "call 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir, buildMark+third), 0o700); err != nil {
		t.Fatal(err)
	}
	open(parent.ID(), "call 3", true)
	if err := s.Remove(t.Context(), parent.ID()); err != nil {
		t.Fatal(err)
	}
	if left, err := s.ids(); err != nil || len(left) > 0 {
		t.Errorf("%v are left, also %s; %v", left, grandchild.ID(), err)
	}
}

func TestResolve(t *testing.T) {
	m := newMemDisk()
	m.nodes["/store"] = &memFile{dir: true}
	for _, id := range []string{"20261120-000000-aaaa", "20261121-131502-k3f9", "20261121-131503-abcd"} {
		m.nodes["/store/"+id] = &memFile{dir: true}
		m.nodes["/store/"+id+"/"+logName] = new(memFile)
	}
	s := &Store{Dir: "/store", disk: m}
	begun := driven(t, s)
	mustAppend(t, begun, said("x"))
	empty := driven(t, s) // its program was killed before it began
	if begun.ID() == empty.ID() {
		t.Fatal(empty.ID())
	}
	tests := []struct{ text, want, wantErr string }{
		{"20261121-131502-k3f9", "20261121-131502-k3f9", ""},
		{"k3f9", "20261121-131502-k3f9", ""},
		{"20261120", "20261120-000000-aaaa", ""},
		{"", "", "no session is named"},
		{"last", begun.ID(), ""},
		{"20261121", "", "matches several: 20261121-131502-k3f9, 20261121-131503-abcd"},
		{"zzzz", "", `no session matches "zzzz"`},
		{"../x", "", "no session matches"},
	}
	for _, test := range tests {
		got, err := store.Resolve(t.Context(), s, test.text)
		if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, %q", test.text, got, err, test.want, test.wantErr)
		}
	}
	if _, err := store.Resolve(t.Context(), (&Store{Dir: "/none", disk: m}), "last"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("last of none: %v", err)
	}
}

func TestListAndSearch(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	s := &Store{Dir: t.TempDir(), Sync: SyncKill, now: func() time.Time { now = now.Add(time.Second); return now }}
	l := driven(t, s)
	mustAppend(t, l, event.Opened{Format: 1, Root: "/w"}, said("fix  the\n\tbug"), event.Asked{Turn: 1})
	mustAppend(t, l, event.Replied{Parts: llm.Say("The Bug is fixed")}, event.Stopped{Reason: event.ReasonDone})
	mustAppend(t, l, event.Titled{Title: "one"}, event.Titled{Title: "two"})
	child := driven(t, s)
	mustAppend(t, child, event.Opened{Format: 1, Parent: l.ID()}, said("no match"))
	broken := driven(t, s)
	mustAppend(t, broken, event.Opened{Format: 1}, said("this bug"), said("gone"), said("more"))
	damage(t, broken, `"gone"`)
	if err := os.Mkdir(filepath.Join(s.Dir, "20261121-000000-0000"), 0o700); err != nil {
		t.Fatal(err)
	}

	infos, err := s.List(t.Context())
	if err != nil || len(infos) != 4 {
		t.Fatalf("List = %v, %v; want 4 sessions", infos, err)
	}
	if d := infos[0].Damage; infos[0].ID != broken.ID() || infos[0].Events != 2 || d == nil || !strings.Contains(d.Error(), "line 3") {
		t.Errorf("damaged session is listed as %+v", infos[0])
	}
	if infos[1].Parent != l.ID() {
		t.Errorf("child is listed as %+v", infos[1])
	}
	want := store.Info{
		ID: l.ID(), Title: "two", Root: "/w", Events: 7, Size: l.tail.Off, Preview: "fix the bug", Stop: event.ReasonDone,
		Created: infos[2].Created, Modified: infos[2].Created.Add(2 * time.Second),
	}
	if diff := cmp.Diff(want, infos[2]); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if infos[3].Damage == nil {
		t.Errorf("a folder without a log is listed as fine")
	}
	mustAppend(t, l, event.Asked{Turn: 1})
	if id, err := store.Resolve(t.Context(), s, "last"); err == nil && id == child.ID() {
		t.Errorf("last is %s, a child", id)
	}

	var hits, errs []string
	for hit, err := range s.Search(t.Context(), regexp.MustCompile("(?i)bug")) {
		if err != nil {
			errs = append(errs, hit.Session)
			continue
		}
		hits = append(hits, fmt.Sprintf("%s %d %s %s", hit.Session, hit.Seq, hit.Kind, hit.Text))
	}
	wantHits := []string{
		broken.ID() + " 2 said this bug",
		l.ID() + " 2 said fix the bug",
		l.ID() + " 4 replied The Bug is fixed",
	}
	if diff := cmp.Diff(wantHits, hits); diff != "" {
		t.Errorf("Search (-want +got):\n%s", diff)
	}
	if want := []string{broken.ID(), "20261121-000000-0000"}; !slices.Equal(errs, want) {
		t.Errorf("Search failed for %v, want %v", errs, want)
	}
}

// TestSearchInLines checks that matches are found whatever form their text has in a line.
func TestSearchInLines(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	l := driven(t, s)
	texts := []string{"plain word", `a "quoted\ word`, "line\nbreak\ttab", "a <b> & c", "größe 大\u2028x", "\x7f del"}
	bodies := []event.Body{event.Opened{Format: 1}, event.Replied{Parts: llm.Parts{llm.Text{Text: "spans "}, llm.Text{Text: "parts"}}, Stop: llm.StopEnd}}
	for _, text := range texts {
		bodies = append(bodies, said(text))
	}
	mustAppend(t, l, bodies...)
	for _, text := range append(texts, "spans parts", "ans par") {
		n := 0
		for _, err := range s.Search(t.Context(), regexp.MustCompile(regexp.QuoteMeta(text))) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != 1 {
			t.Errorf("%q: %d hits", text, n)
		}
	}
}

// TestSearchOfMany checks that the hits of many sessions come in order, including those of a very long one, and
// that a search ends when nothing more is wanted.
func TestSearchOfMany(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	s := &Store{Dir: t.TempDir(), Sync: SyncKill, now: func() time.Time { now = now.Add(time.Second); return now }}
	var want []string
	for i := range 60 {
		l, n := driven(t, s), 2
		if i == 30 {
			n = longSearch + 7
		}
		bodies, lines := []event.Body{event.Opened{Format: 1}}, []string{}
		for k := range n {
			bodies = append(bodies, said(fmt.Sprint("bug ", k)), event.Titled{Title: "bug"})
			lines = append(lines, fmt.Sprintf("%s %d", l.ID(), 2*k+2))
		}
		mustAppend(t, l, bodies...)
		want = append(lines, want...)
	}
	for _, most := range []int{1, longSearch, len(want) - 1, len(want) + 1} {
		var got []string
		for hit, err := range s.Search(t.Context(), regexp.MustCompile("bug")) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, fmt.Sprintf("%s %d", hit.Session, hit.Seq)); len(got) == most {
				break
			}
		}
		if !slices.Equal(got, want[:min(most, len(want))]) {
			t.Errorf("%d of at most %d hits, or in another order", len(got), most)
		}
	}
}

// put appends inputs without a lease, and other events as the driver.
func put(ctx context.Context, l *Log, bodies []event.Body) ([]event.Event, error) {
	if slices.ContainsFunc(bodies, func(b event.Body) bool { return !event.Input(b) }) {
		return harnesstest.Write(ctx, l, bodies...)
	}
	return l.Append(ctx, bodies...)
}

func mustAppend(t *testing.T, l *Log, bodies ...event.Body) []event.Event {
	t.Helper()
	events, err := put(t.Context(), l, bodies)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// damage changes a byte of the text in a log.
func damage(t *testing.T, l *Log, text string) {
	t.Helper()
	path := filepath.Join(l.dir, logName)
	data, err := os.ReadFile(path)
	at := bytes.Index(data, []byte(text))
	if err != nil || at < 0 {
		t.Fatal(at, err)
	}
	data[at+1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFork(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	l := driven(t, s)
	all := mustAppend(t, l, event.Opened{Format: 1}, said("a"), event.Asked{}, said("b"), said("c"))
	blob, err := l.Blobs().Put(t.Context(), strings.NewReader("big"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{1, 4, 5, 0} {
		f, err := s.fork(t.Context(), l.ID(), seq)
		if err != nil {
			t.Fatal(err)
		}
		n := seq
		if seq == 0 {
			n = 5
		}
		got := readAll(t, f)
		if diff := cmp.Diff(all[:n], got[:n]); diff != "" {
			t.Errorf("copied events (-want +got):\n%s", diff)
		}
		last := got[n]
		if last.Session != f.ID() || last.Seq != n+1 || last.Body != (event.Forked{From: l.ID(), Seq: n}) {
			t.Errorf("fork at %d goes on with %+v", seq, last)
		}
		if data := get(t, f, blob); data != "big" {
			t.Errorf("blob of the fork is %q", data)
		}
		if got := mustAppend(t, f, said("d")); got[0].Seq != n+2 {
			t.Errorf("next event of the fork has number %d", got[0].Seq)
		}
		if r, err := s.Fsck(t.Context(), f.ID(), false); err != nil || !r.OK() || r.Torn > 0 {
			t.Errorf("fork is %+v, %v", r, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := readAll(t, l); len(got) != 5 {
		t.Errorf("the original holds %d events now", len(got))
	}
	if _, err := s.fork(t.Context(), l.ID(), 6); err == nil {
		t.Errorf("fork behind the end succeeded")
	}
	damage(t, l, `"b"`)
	if f, err := s.fork(t.Context(), l.ID(), 3); err != nil {
		t.Errorf("fork before the damage: %v", err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, l *Log, name string) string {
	t.Helper()
	r, err := l.Blobs().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestLongBlob checks that a blob is whole that the disk began to write before its end.
func TestLongBlob(t *testing.T) {
	l := driven(t, &Store{Dir: t.TempDir()})
	want := strings.Repeat("0123456789abcde\n", 5*aheadBy/2/16) + "end"
	name, err := l.Blobs().Put(t.Context(), strings.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, l, name); got != want {
		t.Errorf("%d of %d bytes are there, or others", len(got), len(want))
	}
}

func TestBlobs(t *testing.T) {
	l := driven(t, &Store{Dir: t.TempDir()})
	const name = "sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	for range 2 {
		got, err := l.Blobs().Put(t.Context(), strings.NewReader("hello"))
		if err != nil || got != name {
			t.Fatalf("Put = %q, %v", got, err)
		}
	}
	failing := io.MultiReader(strings.NewReader("x"), keep.Reading(canceled(t), nil))
	if _, err := l.Blobs().Put(t.Context(), failing); !errors.Is(err, context.Canceled) {
		t.Errorf("Put of a reader that fails: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, blobsName))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want one file", entries, err)
	}
	if got := get(t, l, name); got != "hello" {
		t.Errorf("Get = %q", got)
	}
	for _, bad := range []string{"", "..", "../log.jsonl", "sha256-" + strings.Repeat("0", 64), name + "/", strings.ToUpper(name)} {
		if _, err := l.Blobs().Get(t.Context(), bad); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get(%q): %v, want fs.ErrNotExist", bad, err)
		}
	}
	if err := os.WriteFile(filepath.Join(l.dir, blobsName, name), []byte("jello"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := l.Blobs().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); !errors.Is(err, keep.ErrBlob) {
		t.Errorf("reading a changed blob: %v", err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestFsckAndSalvage(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	l := driven(t, s)
	blob, err := l.Blobs().Put(t.Context(), strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	missing := "sha256-" + strings.Repeat("0", 64)
	mustAppend(t, l, event.Opened{Format: 1}, said("a "+missing), said("gone"), said("c "+blob), said("d"))
	check := func(want Report) {
		t.Helper()
		got, err := s.Fsck(t.Context(), l.ID(), true)
		want.ID, want.Size, want.Index, want.Missing = l.ID(), got.Size, "missing", []string{missing}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Fsck: %v (-want +got):\n%s", err, diff)
		}
	}
	check(Report{Events: 5})
	appendBytes(t, l, `{"crc":"00`)
	check(Report{Events: 5, Torn: 10, Repaired: true})
	check(Report{Events: 6})
	damage(t, l, `"gone"`)
	if err := os.WriteFile(filepath.Join(l.dir, blobsName, blob), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var at int64
	for _, line := range goodLines(mustReadFile(t, filepath.Join(l.dir, logName)))[:2] {
		at += int64(len(line)) + 1
	}
	bad := &DamageError{Line: 3, Offset: at, Why: "checksum does not match"}
	check(Report{Events: 2, Damage: []*DamageError{bad}, Bad: []string{blob}})

	var got []string
	for rec, err := range s.Salvage(t.Context(), l.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(rec.Event.Seq, rec.Damage != nil))
	}
	if want := []string{"1 false", "2 false", "3 true", "4 false", "5 false", "6 false"}; !slices.Equal(got, want) {
		t.Errorf("Salvage yields %v, want %v", got, want)
	}
}

func appendBytes(t *testing.T, l *Log, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(l.dir, logName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func mustReadFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRemove(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	l := driven(t, s)
	if err := s.Remove(t.Context(), l.ID()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("Remove of a driven session: %v, want store.ErrBusy", err)
	}
	child, _, err := s.Child(t.Context(), l.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if err := errors.Join(l.Release(), child.Lease(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), l.ID()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("Remove of a session whose child is driven: %v, want store.ErrBusy", err)
	}
	if ids, err := s.ids(); err != nil || len(ids) != 2 {
		t.Errorf("%v are left, %v", ids, err)
	}
	if err := child.Release(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), l.ID()); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) != 0 {
		t.Errorf("the store holds %v, %v", entries, err)
	}
	if err := s.Remove(t.Context(), l.ID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second Remove: %v", err)
	}
}

func TestLease(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	a := driven(t, s)
	b, err := s.opened(t.Context(), a.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := a.Lease(t.Context()); err != nil {
		t.Errorf("second Lease of the holder: %v", err)
	}
	err = b.Lease(t.Context())
	if busy, ok := errors.AsType[*store.BusyError](err); !ok || busy.PID != os.Getpid() {
		t.Errorf("Lease = %v, want busy by this process", err)
	}
	if _, err := b.AppendAs(t.Context(), event.Driver{}, said("x"), event.Note{}); !errors.Is(err, event.ErrNotDriver) {
		t.Errorf("append without the lease: %v", err)
	}
	mustAppend(t, b, said("x"))
	if err := errors.Join(a.Release(), a.Release()); err != nil {
		t.Error(err)
	}
	if _, err := a.AppendAs(t.Context(), event.Driver{After: 1}, event.Note{}); !errors.Is(err, event.ErrNotDriver) {
		t.Errorf("append after Release: %v", err)
	}
	if err := b.Lease(t.Context()); err != nil {
		t.Errorf("Lease after Release: %v", err)
	}
	mustAppend(t, b, event.Note{})
}

func TestIndex(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	bodies := talk(1000)
	for _, i := range []int{300, 900} {
		bodies[i] = event.Compacted{Snapshot: json.RawMessage(`{}`)}
	}
	id := written(t, s, bodies)
	path := filepath.Join(s.Dir, id, indexName)
	l, err := s.opened(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	l.saveIndexNow(true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	good := mustReadFile(t, path)
	state := func(want string) {
		t.Helper()
		if r, err := s.Fsck(t.Context(), id, false); err != nil || r.Index != want {
			t.Errorf("index is %q, %v; want %q", r.Index, err, want)
		}
		openAndFold(t, s, id, 100)
		readEverywhere(t, s, id, 1000)
	}
	state("ok")
	for i := 0; i < len(good); i += Stride() {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		write(t, path, bad)
		openAndFold(t, s, id, 100)
	}
	state("wrong")
	write(t, path, nil)
	state("wrong")
	for _, change := range []func(*index){
		func(x *index) { x.Last.CRC++ },
		func(x *index) { x.Last.Off++ },
		func(x *index) { x.Last.Off = 1 << 40 },
		func(x *index) { x.Last.Off = -5 },
		func(x *index) { x.Marks.Points[1].Off = -5 },
		func(x *index) { slices.Reverse(x.Marks.Points) },
		func(x *index) { x.Marks.Points[len(x.Marks.Points)-1].Seq = 900 },
		func(x *index) { x.Marks.Compacted[0].CRC++ },
		func(x *index) { x.Last.Seq-- },
	} {
		var x index
		if err := json.Unmarshal(append([]byte("{"), good[headLen:]...), &x); err != nil {
			t.Fatal(err)
		}
		change(&x)
		write(t, path, sealed(t, x))
		state("wrong")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	state("missing")
}

// sealed returns the content of a file with this index.
func sealed(t *testing.T, x index) []byte {
	t.Helper()
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	line := append(appendCRC([]byte(crcHead), chain(0, data[1:])), crcTail...)
	return append(line, data[1:]...)
}

// readEverywhere opens a session of n events and reads from many places.
func readEverywhere(t *testing.T, s *Store, id string, n int) {
	t.Helper()
	l, err := s.opened(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for after := 0; after < n; after += 137 {
		next := uint64(after) + 1
		for e, err := range l.Read(t.Context(), uint64(after)) {
			if err != nil || e.Seq != next {
				t.Fatalf("read after %d: number %d, %v; want %d", after, e.Seq, err, next)
			}
			next++
		}
		if next != uint64(n)+1 {
			t.Fatalf("read after %d: ends before %d", after, next)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGroupCommit lets appends wait for a sync that does not end: all that
// came meanwhile must be served by one more.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c commit
		syncs, gate := 0, make(chan struct{})
		sync1 := func() error { syncs++; <-gate; return nil }
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				if err := c.wait(int64(i)+1, sync1); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if syncs != 1 {
			t.Errorf("%d syncs run at once", syncs)
		}
		close(gate)
		group.Wait()
		if syncs > 2 {
			t.Errorf("%d syncs for 10 appends, want at most 2", syncs)
		}
	})
}

// TestGroupCommitFails lets the one sync fail that all wait for: all fail, and
// none tries again.
func TestGroupCommitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c commit
		syncs, gate := 0, make(chan struct{})
		fail := func() error { syncs++; <-gate; return syscall.EIO }
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				if err := c.wait(int64(i)+1, fail); !errors.Is(err, syscall.EIO) {
					t.Errorf("append %d: %v, want EIO", i, err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		group.Wait()
		if syncs != 1 {
			t.Errorf("%d syncs, want 1", syncs)
		}
	})
}

// TestWaitAcross checks that a log learns at once of an append by another log of the same store, and soon of one by
// another store.
func TestWaitAcross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := withLog(nil)
		l, err := (&Store{Dir: "/store", disk: m}).opened(t.Context(), sampleID)
		if err != nil {
			t.Fatal(err)
		}
		for other, want := range map[*Store]time.Duration{l.store: 0, {Dir: "/store", disk: m}: pollEvery} {
			b, err := other.opened(t.Context(), sampleID)
			if err != nil {
				t.Fatal(err)
			}
			was := b.tail.Seq
			began, woken := time.Now(), make(chan error, 1)
			go func() { woken <- b.Wait(t.Context(), was) }()
			synctest.Wait()
			mustAppend(t, l, said("x"))
			if err := <-woken; err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > want {
				t.Errorf("woken after %v, want at most %v", took, want)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestClosed(t *testing.T) {
	l := driven(t, &Store{Dir: t.TempDir()})
	woken := make(chan error, 1)
	go func() { woken <- l.Wait(t.Context(), 5) }()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := l.Append(t.Context(), said("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append: %v", err)
	}
	for _, err := range l.Read(t.Context(), 0) {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Read: %v", err)
		}
	}
	if err := l.Lease(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Lease: %v", err)
	}
}

func TestAppendRefuses(t *testing.T) {
	l := driven(t, &Store{Dir: t.TempDir(), Sync: SyncKill})
	for _, b := range []event.Body{
		event.Delta{Text: "x"},
		event.Progress{},
		event.Unknown{Name: "x", Raw: json.RawMessage("{\n}")},
		event.Unknown{Name: "x", Raw: json.RawMessage(`{`)},
		event.Unknown{Name: "", Raw: json.RawMessage(`{}`)},
		event.Unknown{Name: "said", Raw: json.RawMessage(`3`)},
		event.Judged{Args: json.RawMessage(`{`)},
		said(strings.Repeat("x", maxLine)),
	} {
		if _, err := l.AppendAs(t.Context(), event.Driver{}, said("ok"), b); err == nil {
			t.Errorf("append of a %T succeeded", b)
		}
	}
	if got := readAll(t, l); len(got) != 0 {
		t.Errorf("the log holds %d events", len(got))
	}
}

// TestManyOpen opens a thousand logs at once, a hundred in make test, and weighs them.
func TestManyOpen(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	id := written(t, s, talk(10_000))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // pools of what ran before are emptied by the second
	runtime.ReadMemStats(&before)
	many := 1000
	if testing.Short() {
		many = 100
	}
	logs := make([]*Log, many)
	for i := range logs {
		l, err := s.opened(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = l
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(len(logs))
	t.Logf("an open log of 10,000 events takes %d bytes", each)
	if each <= 0 || each > 50_000 {
		t.Errorf("an open log takes %d bytes, want under 50,000", each)
	}
	for _, l := range logs {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.bells) != 0 {
		t.Errorf("%d bells are left", len(s.bells))
	}
}

// TestLockIsReplaced checks that appends exclude each other although someone has removed their lock file.
func TestLockIsReplaced(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	a := driven(t, s)
	b, err := s.opened(t.Context(), a.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	mustAppend(t, a, said("1"))
	mustAppend(t, b, said("2"))
	if err := os.Remove(filepath.Join(a.dir, lockName)); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Log{a, b} {
		mustAppend(t, l, said("3"))
		if there, err := l.lock.Is(filepath.Join(a.dir, lockName)); err != nil || !there {
			t.Errorf("a log is locked by a file that is gone: %v", err)
		}
	}
	if n := len(readAll(t, a)); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
}
