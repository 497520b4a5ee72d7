package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
)

// TestFullDisk fills the disk of the database while a driver appends: first there is no room for tables, then none for
// the write-ahead log, and the server crashes. Once there is room again, all acknowledged events are there, and the
// driver continues.
func TestFullDisk(t *testing.T) {
	for name, reuse := range map[string]bool{"tables": false, "write-ahead log": true} {
		t.Run(name, func(t *testing.T) {
			own, disk := small(t)
			c := postgres.Config{URL: own.URL("postgres"), Lease: time.Hour, Patience: 2 * time.Second}
			s := open(t, c)
			l, err := s.Create(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := writer{log: l, name: "driver", as: drive(t, l, 1, 0)}
			if reuse {
				leaveRoom(t, own, s)
			}
			if err := disk.Fill(2 << 20); err != nil {
				t.Fatal(err)
			}
			acked := untilFull(t, &w)
			if err := disk.Empty(); err != nil {
				t.Fatal(err)
			}
			_ = own.Down("immediate") // it may have crashed
			if err := own.Up(); err != nil {
				t.Fatal(err)
			}
			for n := range 3 {
				text := fmt.Sprint("more ", n)
				err := w.append(t.Context(), text)
				if errors.Is(err, event.ErrGrown) { // the one that failed was stored
					w.as.After++
					err = w.append(t.Context(), text)
				}
				if err != nil {
					t.Fatal(err)
				}
				acked = append(acked, text)
			}
			holds(t, l, acked)
		})
	}
}

// small is a cluster on a small disk.
func small(t *testing.T) (*testkit.Cluster, *testkit.Disk) {
	t.Helper()
	fresh(t)
	disk, err := testkit.NewDisk("256m")
	if err != nil {
		t.Skipf("SKIPPED: only root can mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := disk.Remove(); err != nil {
			t.Error(err)
		}
	})
	own, err := testkit.Start(disk.Dir, "wal_recycle = off", "restart_after_crash = off", "autovacuum = off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Remove(); err != nil {
			t.Error(err)
		}
	})
	return own, disk
}

// leaveRoom has the tables of events hold much that is free.
func leaveRoom(t *testing.T, own *testkit.Cluster, s *postgres.Store) {
	t.Helper()
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := writer{log: l, name: "driver", as: drive(t, l, 1, 0)}
	for n := range 500 {
		if err := w.append(t.Context(), noise(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Close(), s.Remove(t.Context(), l.ID())); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"VACUUM (TRUNCATE false) inspan.events", "CHECKPOINT"} {
		if err := own.Exec(t.Context(), "postgres", sql); err != nil {
			t.Fatal(err)
		}
	}
}

// untilFull appends until an append fails, and returns the acknowledged events.
func untilFull(t *testing.T, w *writer) (acked []string) {
	t.Helper()
	for n := range 5000 {
		text := fmt.Sprint(n, " ", noise(n))
		if err := w.append(t.Context(), text); err != nil {
			t.Logf("after %d events: %.200v", n, err)
			return acked
		}
		acked = append(acked, text)
	}
	t.Fatal("the disk is never full")
	return nil
}

// noise is a text of 64 KB that does not compress.
func noise(seed int) string {
	out, x := make([]byte, 64<<10), uint64(seed)*2654435761+1
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = 'a' + byte(x%26)
	}
	return string(out)
}
