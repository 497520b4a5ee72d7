//go:build linux || darwin

package session

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/store"
)

// whoHolds fails the test if that can't be told.
func whoHolds(t *testing.T, s *Store, id string) *store.Holder {
	t.Helper()
	h, err := s.Holder(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHolder(t *testing.T) {
	l := idle(t)
	if h := whoHolds(t, l.store, l.id); h != nil {
		t.Errorf("nobody drives, got %+v", h)
	}
	before := time.Now().Add(-time.Second)
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := whoHolds(t, l.store, l.id)
	if h == nil || h.PID != os.Getpid() || h.Session != l.id || !h.Here() || h.Since.Before(before) {
		t.Errorf("this process drives, got %+v", h)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if h := whoHolds(t, l.store, l.id); h != nil {
		t.Errorf("it was released, got %+v", h)
	}
	for _, id := range []string{"", "../x", "20261121-131502-aaaa"} {
		if h := whoHolds(t, l.store, id); h != nil {
			t.Errorf("%q: %+v", id, h)
		}
	}
}

// TestHolderDies looks for a driver that is another process: it counts while it is
// stopped, and no longer once it was killed.
func TestHolderDies(t *testing.T) {
	l := idle(t)
	p := start(t, l, "p", 0)
	if got := p.line(t); got != "driver" {
		t.Fatalf("child says %q", got)
	}
	for _, sig := range []syscall.Signal{syscall.SIGCONT, syscall.SIGSTOP} {
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if h := whoHolds(t, l.store, l.id); h == nil || h.PID != p.cmd.Process.Pid {
			t.Errorf("after %v: %+v, want %d", sig, h, p.cmd.Process.Pid)
		}
	}
	held, err := l.store.Held(t.Context())
	if err != nil || len(held) != 1 || held[0].Session != l.id {
		t.Errorf("held: %+v, %v", held, err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if h := whoHolds(t, l.store, l.id); h != nil {
		t.Errorf("it is dead, got %+v", h)
	}
}

// TestZombieHoldsNothing looks for a killed driver that was not reaped: its number still stands for a process.
func TestZombieHoldsNothing(t *testing.T) {
	l := idle(t)
	p := start(t, l, "p", 0)
	p.line(t)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	late := time.Now().Add(3 * time.Minute)
	for whoHolds(t, l.store, l.id) != nil {
		if time.Now().After(late) {
			t.Fatal("the dead driver is still seen")
		}
	}
	if gone(p.cmd.Process.Pid) {
		t.Error("there is nothing left to mistake for a driver")
	}
}

// TestStaleLease looks at leases that name a process that does not hold them.
func TestStaleLease(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]store.BusyError{
		"lives":     {PID: os.Getpid(), Host: host}, // such as when the number was given anew
		"elsewhere": {PID: os.Getpid(), Host: "elsewhere.invalid"},
		"dead":      {PID: 1 << 30, Host: host},
		"nobody":    {Host: host},
	} {
		l := idle(t)
		raw, err := json.Marshal(who)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.dir, leaseName), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if h := whoHolds(t, l.store, l.id); h != nil {
			t.Errorf("%s: %+v", name, h)
		}
		if err := l.Lease(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHolderElsewhere looks at a lease that is held by a process of another machine,
// which shares the disk.
func TestHolderElsewhere(t *testing.T) {
	l := idle(t)
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(store.BusyError{PID: 1, Host: "elsewhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, leaseName), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	h := whoHolds(t, l.store, l.id)
	if h == nil || h.Here() || h.Host != "elsewhere.invalid" {
		t.Errorf("got %+v", h)
	}
}

// TestLockOutlivesItsHolder looks at a lock that a copy of a dead driver's file keeps.
func TestLockOutlivesItsHolder(t *testing.T) {
	l := idle(t)
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(store.BusyError{PID: 1 << 30, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, leaseName)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if h := whoHolds(t, l.store, l.id); h != nil {
		t.Errorf("got %+v", h)
	}
}

// TestLockWithoutName takes the lease while another open file has its lock for a moment, as a process does that
// asks who drives the session.
func TestLockWithoutName(t *testing.T) {
	l := idle(t)
	f, err := os.Open(filepath.Join(l.dir, leaseName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 200 {
		if got, err := keep.TryLock(f, false); err != nil || !got {
			t.Fatal(got, err)
		}
		unlocked := make(chan error)
		go func() { unlocked <- keep.Unlock(f) }()
		if err := errors.Join(l.Lease(t.Context()), <-unlocked, l.Release()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenIsNotHeld has a lease open that this process does not hold.
func TestOpenIsNotHeld(t *testing.T) {
	l := idle(t)
	path := filepath.Join(l.dir, leaseName)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, known := holds(os.Getpid(), t.TempDir()); !known {
		t.Skip("there is no list of open files")
	}
	if held, known := holds(os.Getpid(), path); held || !known {
		t.Errorf("held %v, known %v", held, known)
	}
}

// TestLookingDisturbsNobody asks for the holder while leases are taken and given up.
func TestLookingDisturbsNobody(t *testing.T) {
	l := idle(t)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := l.store.Held(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2000 {
		err := l.Lease(t.Context())
		if err == nil {
			err = l.Release()
		}
		if errors.Is(err, store.ErrBusy) {
			t.Error("whoever looked was taken for a driver")
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wait.Wait()
}

func TestHeldIsSorted(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Sync: SyncKill}
	want := map[string]bool{}
	for i := range 4 {
		l := driven(t, s)
		if i%2 == 0 {
			want[l.id] = true
		} else if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	odd := driven(t, s) // its lease can't be read, which hides no other
	if err := odd.Release(); err != nil {
		t.Fatal(err)
	}
	lease := filepath.Join(s.Dir, odd.id, leaseName)
	if err := errors.Join(os.Remove(lease), os.Symlink(lease, lease)); err != nil {
		t.Fatal(err)
	}
	want[odd.id] = true
	held, err := s.Held(t.Context())
	if err != nil || len(held) != len(want) {
		t.Fatalf("%+v, %v", held, err)
	}
	for i, h := range held {
		if !want[h.Session] || i > 0 && held[i-1].Session >= h.Session {
			t.Errorf("%+v", held)
		}
	}
	if list, err := (&Store{Dir: filepath.Join(s.Dir, "none")}).Held(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a folder that is not there: %v, %v", list, err)
	}
}
