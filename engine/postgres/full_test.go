package postgres_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/testkit"
	"github.com/inspan/inspan/event"
)

// TestFullDisk fills the disk of the database while a driver appends. What was acknowledged is there
// when there is room again, and the driver goes on.
func TestFullDisk(t *testing.T) {
	fresh(t)
	dir, err := os.MkdirTemp("/tmp", "inspan-full-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m,mode=0777"); err != nil {
		t.Skipf("SKIPPED: only root can mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	own, err := testkit.Start(dir, "max_wal_size = 48MB", "min_wal_size = 32MB", "restart_after_crash = off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Remove() })
	c := postgres.Config{URL: own.URL("postgres"), Lease: time.Hour, Patience: 2 * time.Second}
	s := open(t, c)
	l, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := writer{log: l, name: "driver", as: drive(t, l, 1, 0)}
	filler := fill(t, dir)
	big := strings.Repeat("0123456789abcdef", 1<<12)
	var acked []string
	for n := 0; ; n++ {
		text := fmt.Sprint(n, " ", noise(big, n))
		if err = w.append(t.Context(), text); err != nil {
			t.Logf("after %d events: %.200v", n, err)
			break
		}
		if acked = append(acked, text); n > 10000 {
			t.Fatal("the disk is never full")
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := own.Up(); err != nil { // it may have stopped at the full disk
		t.Log("it runs still:", !strings.Contains(err.Error(), "FATAL"))
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
}

// fill takes all room of a disk, but for some of it.
func fill(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	const left = 4 << 20
	if _, err := io.CopyN(f, zeros{}, int64(disk.Bavail)*disk.Bsize-left); err != nil {
		t.Fatal(err)
	}
	return path
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// noise is a text that does not compress.
func noise(text string, seed int) string {
	out, x := []byte(text), uint64(seed)*2654435761+1
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = 'a' + byte(x%26)
	}
	return string(out)
}
