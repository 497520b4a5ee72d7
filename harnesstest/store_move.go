package harnesstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// storeMove checks that a session and its children are the same, byte for byte, in another store and back, that
// a copy can be repeated, and that an incomplete copy is invisible.
func storeMove(t *testing.T, h house) {
	if _, ok := h.store.(store.Mover); !ok {
		t.Skip("the store moves no sessions")
	}
	ctx := t.Context()
	first := h.create(t, event.Opened{Format: event.Format, Root: "/w"}, event.Titled{Title: "a title"},
		event.Switched{Route: "p/m", Tools: []llm.ToolSpec{{Name: "read", Description: strings.Repeat("reads ", 80)}}},
		event.Say("what was said"), event.Unknown{Name: "odd", Raw: []byte(`{ "a" : "\u00e9", "b":[1, 2] }`)})
	child, _, err := h.store.Child(ctx, first.ID(), "call")
	if err != nil {
		t.Fatal(err)
	}
	leased(t, child, event.Opened{Format: event.Format, Root: "/w"})
	blob, err := first.Blobs().Put(ctx, strings.NewReader(strings.Repeat("content", 1<<16)))
	if err != nil {
		t.Fatal(err)
	}
	there := h.Open(t)
	if _, err := store.Copy(ctx, h.again(t), there, first.ID()); !errors.Is(err, store.ErrBusy) && h.Reopen != nil {
		t.Errorf("a session that is driven was copied: %v", err)
	}
	if err := errors.Join(first.Close(), child.Close()); err != nil {
		t.Fatal(err)
	}
	moved(t, h.store, there, first.ID(), child.ID())
	moved(t, h.store, there, first.ID(), child.ID()) // once more
	back := h.Open(t)
	moved(t, there, back, first.ID(), child.ID())

	l, err := back.Open(ctx, first.ID())
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Blobs().Get(ctx, blob)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || len(content) != 7<<16 {
		t.Errorf("the blob: %d bytes, %v", len(content), err)
	}
	leased(t, l, event.Say("more")) // it continues there
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Copy(ctx, h.store, back, first.ID()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another session was overwritten: %v", err)
	}
	unseen(t, h, first.ID())
}

// moved copies a session, and compares both stores' information about it.
func moved(t *testing.T, from, to store.Store, id, child string) {
	t.Helper()
	copied, err := store.Copy(t.Context(), from, to, id)
	if err != nil || len(copied) != 2 || copied[0] != child || copied[1] != id {
		t.Fatalf("copied %q: %v", copied, err)
	}
	var lines [2][][]byte
	var heads [2]store.Info
	for i, s := range []store.Store{from, to} {
		for line, err := range s.(store.Mover).Lines(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			lines[i] = append(lines[i], bytes.Clone(line))
		}
		list, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if info.ID == id {
				heads[i] = info
			}
		}
	}
	if len(lines[0]) == 0 || !bytes.Equal(bytes.Join(lines[0], nil), bytes.Join(lines[1], nil)) {
		t.Errorf("%d lines became %d, or others", len(lines[0]), len(lines[1]))
	}
	if a, b := heads[0], heads[1]; a.Title != b.Title || a.Root != b.Root || a.Preview != b.Preview || !a.Created.Equal(b.Created) {
		t.Errorf("the list tells of it %+v, and elsewhere %+v", a, b)
	}
}

// unseen checks that a session whose lines end in an error, or jump, does not exist.
func unseen(t *testing.T, h house, id string) {
	t.Helper()
	s := h.Open(t)
	into, broken := s.(store.Mover), errors.New("it broke")
	cut := func(yield func([]byte, error) bool) {
		for line, err := range h.store.(store.Mover).Lines(t.Context(), id) {
			if !yield(line, err) {
				return
			}
		}
		yield(nil, broken)
	}
	jumps := func(yield func([]byte, error) bool) {
		n := 0
		for line, err := range h.store.(store.Mover).Lines(t.Context(), id) {
			if n++; n != 2 && !yield(line, err) {
				return
			}
		}
	}
	var none iter.Seq2[io.Reader, error] = func(func(io.Reader, error) bool) {}
	if err := into.Receive(t.Context(), id, cut, none); !errors.Is(err, broken) {
		t.Errorf("lines that break off: %v", err)
	}
	if err := into.Receive(t.Context(), id, jumps, none); err == nil {
		t.Error("lines with a gap were taken")
	}
	if err := into.Receive(t.Context(), "../x", cut, none); err == nil {
		t.Error("an id that is a path was taken")
	}
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("there are sessions: %v, %v", list, err)
	}
}
