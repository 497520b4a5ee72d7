package postgres_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/store"
)

// TestLost kills a process that drives. Others learn which session it has lost, and when another has
// taken that over, it is not lost any more.
func TestLost(t *testing.T) {
	c := fresh(t)
	c.Lease = shortLease
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Create(t.Context()) // of a process that lives
	if err == nil {
		err = kept.Lease(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asDriver+"="+strings.Join([]string{c.URL, c.Schema, l.ID()}, "\n"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it drives
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	began := time.Now()
	for id, err := range s.Lost(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if id != l.ID() {
			t.Fatalf("session %s is lost, whose process lives", id)
		}
		if err := l.Lease(t.Context()); err != nil {
			t.Fatal(err)
		}
		break
	}
	t.Logf("taken over after %v with a lease of %v", time.Since(began), shortLease)
	ctx, stop := context.WithTimeout(t.Context(), 2*shortLease)
	defer stop()
	if lost := lostUntil(ctx, s); len(lost) > 0 {
		t.Errorf("lost, though taken over: %q", lost)
	}
}

// TestOffered lets go of a session in the middle of its work. Another process learns of it at once,
// however long leases are, and one that is driven is not offered.
func TestOffered(t *testing.T) {
	c := fresh(t)
	s, other := open(t, c), open(t, c)
	var ids []string
	for range 2 {
		l, err := s.Create(t.Context())
		if err == nil {
			ids, err = append(ids, l.ID()), l.Lease(t.Context())
		}
		if err == nil && len(ids) == 1 {
			err = l.Release()
		}
		if err == nil {
			err = s.Offer(t.Context(), l.ID())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, err := range other.Lost(t.Context()) {
		if err != nil || id != ids[0] {
			t.Fatalf("lost: %q, %v, and not %q", id, err, ids[0])
		}
		break
	}
	l, err := other.Open(t.Context(), ids[0])
	if err == nil {
		err = l.Lease(t.Context())
	}
	if err != nil {
		t.Error(err)
	}
}

// lostUntil are the sessions that are lost until ctx ends, once each.
func lostUntil(ctx context.Context, s *postgres.Store) (ids []string) {
	for id, err := range s.Lost(ctx) {
		if err == nil && !slices.Contains(ids, id) { // the database may be away
			ids = append(ids, id)
		}
	}
	return ids
}

// TestNothingLost restarts the database, which is away for longer than leases last. No one else could reach it
// either, so no process has lost a session.
func TestNothingLost(t *testing.T) {
	fresh(t) // skips without PostgreSQL
	own, err := testkit.Start("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	c := postgres.Config{URL: own.URL("postgres"), Lease: shortLease}
	a, b := open(t, c), open(t, c)
	var l store.Log
	if l, err = a.Create(t.Context()); err == nil {
		err = l.Lease(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var lost []string
	var group sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group.Go(func() { lost = lostUntil(ctx, b) })
	if err := own.Down("fast"); err != nil {
		t.Fatal(err)
	}
	waitFor(t.Context(), 3*shortLease)
	if err := own.Up(); err != nil {
		t.Fatal(err)
	}
	waitFor(t.Context(), 3*shortLease)
	stop()
	group.Wait()
	if len(lost) > 0 {
		t.Errorf("lost, though the database was away for all: %q", lost)
	}
	if who, err := b.Holder(t.Context(), l.ID()); err != nil || who == nil {
		t.Error(errors.Join(err, errors.New("the process has not kept its session")))
	}
}
