package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
)

// proxied is a store behind a proxy, and one that is not.
func proxied(t *testing.T) (c postgres.Config, cut, direct *postgres.Store, p *testkit.Proxy) {
	t.Helper()
	c = fresh(t)
	c.Poll = time.Hour
	direct = open(t, c)
	p, err := testkit.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	behind := c
	behind.URL = p.URL("postgres")
	cut = open(t, behind)
	t.Cleanup(func() { // after the stores
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { _ = cut.Close() })
	return c, cut, direct, p
}

// TestCuts cuts the connection of an append at every few bytes of the request and of the answer. Each append is stored
// once, and both the driver and the sender of inputs get an error.
func TestCuts(t *testing.T) {
	_, s, direct, p := proxied(t)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := writer{log: l, name: "driver", as: drive(t, l, 1, 0)}
	in := writer{log: l, name: "input"}
	var acked []string
	n := 0
	check := func(w *writer, asked, answer int) {
		t.Helper()
		n++
		text := fmt.Sprintf("%s number %d.", w.name, n)
		cut := p.Arm(text, asked, answer)
		if err := w.append(t.Context(), text); err != nil {
			t.Fatalf("cut at %d and %d: %v", asked, answer, err)
		}
		<-cut.Done
		if w == &in {
			d.as.After++
		}
		acked = append(acked, text)
	}
	for _, w := range []*writer{&d, &in} {
		for asked := 0; asked <= 1400; asked += 70 { // beyond its end the whole of it arrives
			check(w, asked, 0)
		}
		for answer := 0; answer <= 200; answer += 10 {
			check(w, -1, answer)
		}
		for range 20 { // the server may still be at it when the client asks what became of it
			check(w, -1, -1)
		}
	}
	again, err := direct.Open(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	holds(t, again, acked)
}

// TestInFlight has an append wait in the server while its connection is lost. The client asks, finds
// nothing, and sends it again: then the server performs both.
func TestInFlight(t *testing.T) {
	for name, epoch := range map[string]uint64{"driver": 1, "input": 0} {
		t.Run(name, func(t *testing.T) {
			c, s, direct, p := proxied(t)
			l, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := writer{log: l, name: "writer", as: event.Driver{}}
			if epoch > 0 {
				w.as = drive(t, l, epoch, 0)
			}
			blocker, err := connect(t, c)
			if err != nil {
				t.Fatal(err)
			}
			tx, err := blocker.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SELECT FROM sessions WHERE id = $1 FOR UPDATE", l.ID()); err != nil {
				t.Fatal(err)
			}
			cut := p.Arm("once", -1, -1)
			ended := make(chan error, 1)
			go func() { ended <- w.append(t.Context(), "once") }()
			<-cut.Done
			blocked(t, c, 2)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if err := w.append(t.Context(), "and then"); err != nil {
				t.Fatal(err)
			}
			again, err := direct.Open(t.Context(), l.ID())
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			holds(t, again, []string{"once", "and then"})
		})
	}
}

// blocked returns once so many appends wait for a lock.
func blocked(t *testing.T, c postgres.Config, want int) {
	t.Helper()
	conn, err := connect(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Minute); ; {
		var n int
		const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH head%'"
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d appends wait, want %d", n, want)
		}
	}
}

// TestParted cuts a driver off for longer than its lease. Another takes over, and the first learns of
// it with its next append.
func TestParted(t *testing.T) {
	c, _, _, p := proxied(t)
	c.Lease, c.Patience = shortLease, 100*time.Millisecond
	direct := open(t, c)
	behind := c
	behind.URL = p.URL("postgres")
	s := open(t, behind)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	as := drive(t, l, 1, 0)
	other, err := direct.Open(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	p.Part(true)
	if _, err := l.AppendAs(t.Context(), as, note("into the void")); err == nil || errors.Is(err, event.ErrFenced) {
		t.Errorf("an append that can't arrive: %v", err)
	}
	takeOver(t, other)
	second := claimed(t, other, 2)
	p.Part(false)
	if _, err := l.AppendAs(t.Context(), as, note("late")); !errors.Is(err, event.ErrFenced) {
		t.Errorf("after the parting: %v, want ErrFenced", err)
	}
	if _, err := other.AppendAs(t.Context(), second, note("goes on")); err != nil {
		t.Error(err)
	}
	holds(t, other, []string{"goes on"})
	if who, err := direct.Holder(t.Context(), l.ID()); err != nil || who == nil {
		t.Errorf("Holder: %v, %v", who, err)
	}
}

// TestLostAndFree gives the lease back to a driver that was cut off, if no other driver has taken it.
func TestLostAndFree(t *testing.T) {
	c := fresh(t)
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	as := drive(t, l, 1, 0)
	sql(t, c, "UPDATE drivers SET until = clock_timestamp() - interval '1 second'")
	if who, err := s.Holder(t.Context(), l.ID()); who != nil || err != nil {
		t.Errorf("the holder of a lease that has ended: %v, %v", who, err)
	}
	events, err := l.AppendAs(t.Context(), as, note("late"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Open(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Lease(t.Context()); err != nil {
		t.Errorf("the lease of a process that is not heard of: %v", err)
	}
	as.After = events[0].Seq
	if _, err := l.AppendAs(t.Context(), as, note("too late")); !errors.Is(err, event.ErrFenced) {
		t.Errorf("once another has it: %v, want ErrFenced", err)
	}
}

// TestUnreached checks that operations end when their context does, and that Close does not hang.
func TestUnreached(t *testing.T) {
	_, s, _, p := proxied(t)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Part(true)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := l.Append(ctx, event.Titled{Title: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append: %v", err)
	}
	if _, err := s.List(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("List: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
