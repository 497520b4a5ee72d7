package harnesstest

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// storeBooks checks that a book is one log for all that open it, keeps its events, has one server, and is not a
// session.
func storeBooks(t *testing.T, h house) {
	books, ok := h.store.(store.Booker)
	if !ok {
		t.Skip("the store keeps no books")
	}
	for _, name := range []string{"", "a/b", "..", "Server", strings.Repeat("a", 33)} {
		if l, err := books.Book(t.Context(), name); err == nil {
			t.Errorf("there is a book called %q: %v", name, l.Close())
		}
	}
	book := func(s store.Store) store.Log {
		l, err := s.(store.Booker).Book(t.Context(), "server")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	l, other := book(h.store), book(h.again(t))
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Lease(t.Context()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second server has the book: %v", err)
	}
	for i, l := range []store.Log{l, other} {
		if _, err := l.Append(t.Context(), event.Recorded{Of: "token", ID: strconv.Itoa(i), Value: json.RawMessage(`{"a":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := logRead(t, book(h.again(t)), 0); len(got) != 2 || got[1].Session != l.ID() || !store.IsBook(l.ID()) {
		t.Errorf("the book holds %v", got)
	}
	if ids, err := h.store.IDs(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("sessions %v, %v", ids, err)
	}
	if list, err := h.store.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list %v, %v", list, err)
	}
	if held, err := h.store.Held(t.Context()); err != nil || len(held) != 0 {
		t.Errorf("held %v, %v", held, err)
	}
}
