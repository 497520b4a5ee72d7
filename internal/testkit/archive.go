package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/harnesstest"
	"github.com/inspan/inspan/internal/kernel/session"
)

// Archive fills a folder with sessions that ended an hour ago; of 10,000 one waits. It leaves the index that
// every list writes. "task N" was said to the session with the number N; the last one is the newest.
func Archive(t testing.TB, dir string, n int) {
	t.Helper()
	s, old := &session.Store{Dir: dir, Sync: session.SyncKill}, time.Now().Add(-time.Hour)
	for i := range n {
		l, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bodies := []event.Body{
			event.Opened{Format: event.Format, Root: "/w/shop"}, event.Say(fmt.Sprint("task ", i)), event.Asked{Turn: 1, Route: "p/m"},
		}
		if i%10_000 != 0 {
			bodies = append(bodies, event.Stopped{Reason: event.ReasonDone})
		}
		if err := l.Lease(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := harnesstest.Write(t.Context(), l, bodies...); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, l.ID(), "log.jsonl"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
}
