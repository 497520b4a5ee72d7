package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/event"
)

// waiting has a store wait for the first event of a session, and returns once it waits.
func waiting(t *testing.T, s *postgres.Store, id string, after uint64) <-chan error {
	t.Helper()
	l, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan error, 1)
	go func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer stop()
		ended <- l.Wait(ctx, after)
	}()
	return ended
}

// TestNotified has a wait that looks at the database only after an hour learn of an append elsewhere, even when the
// connection for notifications was lost.
func TestNotified(t *testing.T) {
	c := fresh(t)
	c.Poll = time.Hour
	a := open(t, c)
	l, err := a.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stores []*postgres.Store
	for range 3 {
		stores = append(stores, open(t, c))
	}
	for n := range uint64(20) {
		var all []<-chan error
		for _, s := range stores {
			all = append(all, waiting(t, s, l.ID(), n))
		}
		began := time.Now()
		if _, err := l.Append(t.Context(), event.Say("x")); err != nil {
			t.Fatal(err)
		}
		for _, ended := range all {
			if err := <-ended; err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
		}
	}
}

// TestMissed has the database say nothing of an append: a wait finds it by looking.
func TestMissed(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c := fresh(t)
		c.Poll = 20 * time.Millisecond
		s := open(t, c)
		l, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			sql(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
		}
		for n := range uint64(20) { // some of the waits have begun before the update
			ended := waiting(t, s, l.ID(), n)
			sql(t, c, "UPDATE sessions SET last_seq = $1", n+1)
			if err := <-ended; err != nil {
				t.Fatalf("connection lost: %t: %v", lost, err)
			}
		}
	}
}

// TestRewound lets a standby take over that lacks the last event. A later wait for the event before it must not return
// at once, again and again.
func TestRewound(t *testing.T) {
	c := fresh(t)
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), event.Say("1"), event.Say("2")); err != nil {
		t.Fatal(err)
	}
	sql(t, c, "DELETE FROM events WHERE seq = 2")
	sql(t, c, "UPDATE sessions SET last_seq = 1")
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := l.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait for an event that is lost: %v", err)
	}
	ended := waiting(t, s, l.ID(), 1)
	if _, err := l.Append(t.Context(), event.Say("another 2")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRenewed checks a lease for several times its length.
func TestRenewed(t *testing.T) {
	c := fresh(t)
	c.Lease = 2 * time.Second
	a, b := open(t, c), open(t, c)
	l, err := a.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Open(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * c.Lease); time.Now().Before(end); {
		if err := other.Lease(t.Context()); err == nil {
			t.Fatal("a second lease was given")
		}
	}
	if err := a.Close(); err != nil { // which closes the log
		t.Fatal(err)
	}
	if err := other.Lease(t.Context()); err != nil {
		t.Errorf("after the other store was closed: %v", err)
	}
}
