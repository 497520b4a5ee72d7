package harnesstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// Stores is an implementation of [store.Store], with ways to disturb it.
type Stores struct {
	// Open returns a new store without sessions. It registers its own cleanup with t.
	Open func(t *testing.T) store.Store
	// Reopen opens the same store once more, as another process would. Nil means not possible.
	Reopen func(t *testing.T, s store.Store) store.Store
	// LoseLease, FillStorage and Replace are as in [Logs], for the log of a session.
	LoseLease   func(t *testing.T, s store.Store, l store.Log)
	FillStorage func(t *testing.T, s store.Store, l store.Log) (empty func())
	Replace     func(t *testing.T, s store.Store, l store.Log)
}

// house is a store under test.
type house struct {
	Stores
	store store.Store
}

// TestStore proves that an implementation keeps the contract of [store.Store], and its logs
// that of [store.Log].
func TestStore(t *testing.T, stores Stores) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, house)
	}{
		{"log", storeLog},
		{"create", storeCreate},
		{"unknown", storeUnknown},
		{"child", storeChild},
		{"fork", storeFork},
		{"branch", storeBranch},
		{"tools", storeTools},
		{"list", storeList},
		{"resolve", storeResolve},
		{"search", storeSearch},
		{"holders", storeHolders},
		{"remove", storeRemove},
		{"blobs", storeBlobs},
		{"closed", storeClosed},
		{"wait elsewhere", storeWait},
		{"books", storeBooks},
		{"move", storeMove},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, house{stores, stores.Open(t)}) })
	}
}

// again returns the store as another process sees it, the same one if that is not possible.
func (h house) again(t *testing.T) store.Store {
	if h.Reopen == nil {
		return h.store
	}
	return h.Reopen(t, h.store)
}

// create makes a session into which events of every kind can be written.
func (h house) create(t *testing.T, bodies ...event.Body) store.Log {
	t.Helper()
	l, err := h.store.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leased(t, l, bodies...)
}

func leased(t *testing.T, l store.Log, bodies ...event.Body) store.Log {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(bodies) > 0 {
		logAppend(t, l, bodies...)
	}
	return l
}

// open opens a session from another process.
func (h house) open(t *testing.T, id string) store.Log {
	t.Helper()
	l, err := h.again(t).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}

func storeLog(t *testing.T, h house) {
	logs := Logs{
		Open:   func(t *testing.T) event.Log { return h.create(t) },
		Reopen: func(t *testing.T, l event.Log) event.Log { return h.open(t, l.(store.Log).ID()) },
	}
	if h.LoseLease != nil {
		logs.LoseLease = func(t *testing.T, l event.Log) { h.LoseLease(t, h.store, l.(store.Log)) }
	}
	if h.FillStorage != nil {
		logs.FillStorage = func(t *testing.T, l event.Log) func() { return h.FillStorage(t, h.store, l.(store.Log)) }
	}
	if h.Replace != nil {
		logs.Replace = func(t *testing.T, l event.Log) { h.Replace(t, h.store, l.(store.Log)) }
	}
	TestLog(t, logs)
}

func storeCreate(t *testing.T, h house) {
	var made []string
	for range 50 {
		l := h.create(t)
		if id := l.ID(); !store.IsID(id) || kin.Parent(id) != "" || slices.Contains(made, id) {
			t.Fatalf("a new session has the id %q beside %q", id, made)
		}
		made = append(made, l.ID())
		if got := logRead(t, l, 0); len(got) != 0 {
			t.Errorf("a new session holds %v", got)
		}
	}
	slices.Sort(made)
	if ids, err := h.again(t).IDs(t.Context()); err != nil || !slices.Equal(ids, made) {
		t.Errorf("IDs = %q, %v; want %q", ids, err, made)
	}
}

func storeUnknown(t *testing.T, h house) {
	for _, id := range []string{"20261121-131502-k3f9", "20261121-131502-k3f9.abcdef", "", "..", "last", "k3f9/../x"} {
		if _, err := h.store.Open(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%q): %v", id, err)
		}
		if _, err := h.store.Fork(t.Context(), id, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Fork(%q): %v", id, err)
		}
		if n, err := h.store.Usage(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Usage(%q): %d, %v", id, n, err)
		}
		if err := h.store.Remove(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Remove(%q): %v", id, err)
		}
		if who, err := h.store.Holder(t.Context(), id); who != nil || err != nil {
			t.Errorf("Holder(%q): %+v, %v", id, who, err)
		}
		for _, err := range store.Events(t.Context(), h.store, id) {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Events(%q): %v", id, err)
			}
		}
	}
	if ids, err := h.store.IDs(t.Context()); len(ids) > 0 || err != nil {
		t.Errorf("the store holds %q, %v", ids, err)
	}
}

func storeChild(t *testing.T, h house) {
	parent := h.create(t, logSay(1))
	child := func(of, name string, isNew bool) store.Log {
		t.Helper()
		l, fresh, err := h.again(t).Child(t.Context(), of, name)
		if err != nil || fresh != isNew || kin.Parent(l.ID()) != of {
			t.Fatalf("child %q of %s: new %v, %v", name, of, fresh, err)
		}
		t.Cleanup(func() { _ = l.Close() }) // it may be closed already
		return l
	}
	first := child(parent.ID(), "call 1", true)
	child(parent.ID(), "call 1", true) // it is still empty
	leased(t, first, logSay(1))
	if again := child(parent.ID(), "call 1", false); again.ID() != first.ID() {
		t.Errorf("the same name gives %s and %s", first.ID(), again.ID())
	}
	if other := child(parent.ID(), "call 2", true); other.ID() == first.ID() {
		t.Error("two names give one session")
	}
	child(first.ID(), "call 1", true)
	for _, of := range []string{"", "../x", strings.Repeat(parent.ID(), 5)} {
		if _, _, err := h.store.Child(t.Context(), of, "call"); err == nil {
			t.Errorf("%q has a child", of)
		}
	}
}

func storeFork(t *testing.T, h house) {
	l := h.create(t, event.Opened{Format: event.Format, Root: "/w"}, logSay(1), logSay(2))
	blob, err := l.Blobs().Put(t.Context(), strings.NewReader("big"))
	if err != nil {
		t.Fatal(err)
	}
	all := logRead(t, l, 0)
	for _, seq := range []uint64{1, 2, 3, 0} {
		fork, err := h.store.Fork(t.Context(), l.ID(), seq)
		if err != nil {
			t.Fatal(err)
		}
		leased(t, fork)
		if seq == 0 {
			seq = 3
		}
		got := logRead(t, fork, 0)
		logSame(t, got[:seq], all[:seq])
		if last := got[seq:]; len(last) != 1 || last[0].Session != fork.ID() || last[0].Body != (event.Forked{From: l.ID(), Seq: seq}) {
			t.Errorf("a fork at %d goes on with %v", seq, last)
		}
		if got := logAppend(t, fork, logSay(9)); got[0].Seq != seq+2 {
			t.Errorf("the next event of a fork at %d has number %d", seq, got[0].Seq)
		}
		if got := blobText(t, fork, blob); got != "big" {
			t.Errorf("the fork's blob holds %q", got)
		}
	}
	logSame(t, logRead(t, l, 0), all)
	if _, err := h.store.Fork(t.Context(), l.ID(), 4); err == nil {
		t.Error("a fork behind the end")
	}
	if ids, err := h.store.IDs(t.Context()); len(ids) != 5 || err != nil {
		t.Errorf("there are %q, %v; want one session and four forks", ids, err)
	}
}

// storeBranch proves a [store.Brancher]: a child that begins as a copy is made once.
func storeBranch(t *testing.T, h house) {
	brancher, ok := h.store.(store.Brancher)
	if !ok {
		t.Skip("the store is no store.Brancher")
	}
	l := h.create(t, event.Opened{Format: event.Format, Root: "/w"}, logSay(1))
	blob, err := l.Blobs().Put(t.Context(), strings.NewReader("big"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := store.ChildID(l.ID(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{true, false} {
		child, isNew, err := brancher.Branch(t.Context(), l.ID(), l.ID(), "copy")
		if err != nil || isNew != first || child.ID() != want {
			t.Fatalf("%v, new: %t, want %t", err, isNew, first)
		}
		leased(t, child)
		got := logRead(t, child, 0)
		logSame(t, got[:2], logRead(t, l, 0))
		if got[2].Body != (event.Forked{From: l.ID(), Seq: 2}) || blobText(t, child, blob) != "big" {
			t.Errorf("the copy goes on with %v", got[2:])
		}
		if first {
			logAppend(t, child, logSay(9))
		} else if len(got) != 4 {
			t.Errorf("opened again it has %d events", len(got))
		}
		if err := child.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := brancher.Branch(t.Context(), "20000101-000000-aaaaaaaa", l.ID(), "other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// blobText reads a blob to its end.
func blobText(t *testing.T, l store.Log, name string) string {
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

func storeList(t *testing.T, h house) {
	labels := map[string]string{"ticket": "7", "arm": "b"}
	opened := event.Opened{Format: event.Format, Root: "/w", Labels: labels}
	first := h.create(t, opened, event.Say("fix  the\n\tbug"), event.Asked{Turn: 1}, event.Stopped{Reason: event.ReasonDone}, event.Titled{Title: "one"})
	empty := h.create(t)
	running := h.create(t, opened, event.Pinned{}, event.Say("go on"), event.Pinned{On: true}, event.Stopped{Reason: event.ReasonDone}, event.Asked{Turn: 1})
	child, _, err := h.store.Child(t.Context(), first.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	leased(t, child, event.Opened{Format: event.Format, Root: "/c", Parent: first.ID()}, event.Say("work"))
	want := map[string]store.Info{
		first.ID():   {Title: "one", Root: "/w", Labels: labels, Preview: "fix the bug", Stop: event.ReasonDone, Events: 5},
		empty.ID():   {Empty: true},
		running.ID(): {Root: "/w", Labels: labels, Preview: "go on", Pinned: true, Events: 6},
		child.ID():   {Root: "/c", Preview: "work", Events: 2, Parent: first.ID()},
	}
	list, err := h.again(t).List(t.Context())
	if err != nil || len(list) != len(want) {
		t.Fatalf("List: %v, %v", list, err)
	}
	for i, got := range list {
		if i > 0 && got.Modified.After(list[i-1].Modified) {
			t.Errorf("%s comes behind %s, and changed later", got.ID, list[i-1].ID)
		}
		w := want[got.ID]
		w.ID, w.Size, w.Created, w.Modified = got.ID, got.Size, got.Created, got.Modified
		if diff := cmp.Diff(w, got); diff != "" || got.Created.IsZero() || got.Modified.Before(got.Created) {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
}

func storeResolve(t *testing.T, h house) {
	l := h.create(t, logSay(1))
	child, _, err := h.store.Child(t.Context(), l.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	leased(t, child, logSay(2))
	h.create(t) // empty
	for _, name := range []string{l.ID(), "last", l.ID()[len("20060102-150405-"):]} {
		if id, err := store.Resolve(t.Context(), h.again(t), name); id != l.ID() || err != nil {
			t.Errorf("%q is %q, %v; want %s", name, id, err, l.ID())
		}
	}
	for _, name := range []string{"", "zzzz", "../" + l.ID()} {
		if id, err := store.Resolve(t.Context(), h.store, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q is %q, %v", name, id, err)
		}
	}
	if id, err := store.Resolve(t.Context(), h.store, "2"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), l.ID()) {
		t.Errorf("the beginning of all is %q, %v", id, err)
	}
}

func storeSearch(t *testing.T, h house) {
	l := h.create(t, event.Say("the first bug"), event.Titled{Title: "a bug"})
	logAppend(t, l, event.Replied{Parts: llm.Say("The Bug is fixed")}, event.Note{Text: "bug"}, event.Ended{Call: "1", Parts: llm.Say("bug 3")},
		event.Steered{Parts: llm.Say("bug 4"), By: "ann"})
	h.create(t, event.Say("nothing"))
	var hits []string
	for hit, err := range h.again(t).Search(t.Context(), regexp.MustCompile("(?i)bug")) {
		if err != nil || hit.Session != l.ID() || hit.Time.IsZero() {
			t.Errorf("hit %+v, %v", hit, err)
		}
		hits = append(hits, fmt.Sprint(hit.Seq, " ", hit.Kind, " by ", hit.By, ": ", hit.Text))
	}
	if diff := cmp.Diff([]string{"1 said by : the first bug", "3 replied by : The Bug is fixed", "5 ended by : bug 3", "6 steered by ann: bug 4"}, hits); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	for _, err := range h.store.Search(t.Context(), regexp.MustCompile(".")) {
		if err != nil {
			t.Error(err)
		}
		break // it must leave nothing locked
	}
	logAppend(t, l, logSay(2))
}

func storeHolders(t *testing.T, h house) {
	l := h.create(t, logSay(1))
	h.open(t, h.create(t).ID())
	other := h.open(t, l.ID())
	busy, ok := errors.AsType[*store.BusyError](other.Lease(t.Context()))
	if !ok || !errors.Is(busy, store.ErrBusy) {
		t.Errorf("the lease of another was given or refused as %v", busy)
	}
	who, err := h.again(t).Holder(t.Context(), l.ID())
	if err != nil || who == nil || who.Session != l.ID() || who.PID != busy.PID || !who.Since.Equal(busy.Since) {
		t.Errorf("Holder: %+v, %v; the lease says %+v", who, err, busy)
	}
	if held, err := h.again(t).Held(t.Context()); err != nil || len(held) != 2 {
		t.Errorf("Held: %+v, %v; want two", held, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if who, err := h.again(t).Holder(t.Context(), l.ID()); who != nil || err != nil {
		t.Errorf("after it was closed: %+v, %v", who, err)
	}
	if err := other.Lease(t.Context()); err != nil {
		t.Errorf("the lease of a log that was closed: %v", err)
	}
}

func storeRemove(t *testing.T, h house) {
	l, kept := h.create(t, logSay(1)), h.create(t, logSay(2))
	child, _, err := h.store.Child(t.Context(), l.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	leased(t, child, logSay(3))
	for _, holder := range []store.Log{l, child} {
		if err := h.again(t).Remove(t.Context(), l.ID()); !errors.Is(err, store.ErrBusy) {
			t.Errorf("removed while one of the family is driven: %v", err)
		}
		if got := logRead(t, child, 0); len(got) != 1 {
			t.Errorf("a removal that was refused left %v", got)
		}
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.again(t).Remove(t.Context(), l.ID()); err != nil {
		t.Fatal(err)
	}
	if ids, err := h.store.IDs(t.Context()); err != nil || !slices.Equal(ids, []string{kept.ID()}) {
		t.Errorf("left are %q, %v; want %s", ids, err, kept.ID())
	}
	if _, err := h.store.Open(t.Context(), child.ID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the child of what was removed: %v", err)
	}
}

func storeBlobs(t *testing.T, h house) {
	a, b := h.create(t), h.create(t)
	before, err := h.store.Usage(t.Context(), a.ID())
	if err != nil {
		t.Fatal(err)
	}
	name, err := a.Blobs().Put(t.Context(), strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if after, err := h.again(t).Usage(t.Context(), a.ID()); err != nil || after < before+5 {
		t.Errorf("a session takes %d bytes, %v, and took %d without its blob of 5", after, err, before)
	}
	if again, err := a.Blobs().Put(t.Context(), strings.NewReader("hello")); again != name || err != nil {
		t.Errorf("the same content is %q, %v", again, err)
	}
	if _, err := b.Blobs().Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another session's blob: %v", err)
	}
	for _, bad := range []string{"", "..", "../log.jsonl", name + "/", strings.ToUpper(name)} {
		if _, err := a.Blobs().Get(t.Context(), bad); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get(%q): %v", bad, err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := blobText(t, a, name); got != "hello" {
		t.Errorf("after the log was closed it holds %q", got)
	}
	if got := blobText(t, h.open(t, a.ID()), name); got != "hello" {
		t.Errorf("from elsewhere it holds %q", got)
	}
}

func storeClosed(t *testing.T, h house) {
	l := h.create(t, logSay(1))
	ended := make(chan error, 1)
	go func() { ended <- l.Wait(t.Context(), 1) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, errAppend := l.Append(t.Context(), logSay(2))
	var errRead error
	for _, errRead = range l.Read(t.Context(), 0) {
	}
	for what, err := range map[string]error{"Append": errAppend, "Read": errRead, "Lease": l.Lease(t.Context()), "Wait": logSoon(t, ended)} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s of a closed log: %v", what, err)
		}
	}
	if got := logRead(t, h.open(t, l.ID()), 0); len(got) != 1 {
		t.Errorf("the log holds %v", got)
	}
}

// storeWait checks that a log learns of appends through another log of the same session.
func storeWait(t *testing.T, h house) {
	l := h.create(t, logSay(1))
	other := h.open(t, l.ID())
	for n := uint64(1); n <= 3; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), logPatience)
		ended := make(chan error, 1)
		go func() { ended <- other.Wait(ctx, n) }()
		logAppend(t, l, logSay(int(n)))
		if err := logSoon(t, ended); err != nil {
			t.Errorf("Wait: %v", err)
		}
		cancel()
	}
}
