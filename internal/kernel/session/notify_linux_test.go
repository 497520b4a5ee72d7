package session

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestTold checks that a log among many learns from the system of another process's append, long before it would have
// looked, and that nothing remains once all logs are closed.
func TestTold(t *testing.T) {
	for range 5 { // on a busy machine it may take longer than until a look
		if toldOfAppend(t) {
			return
		}
	}
	t.Error("the logs do not learn of an append before they would have looked")
}

// toldOfAppend reports whether all logs have learned of an append before they would have looked.
func toldOfAppend(t *testing.T) bool {
	t.Helper()
	here := &Store{Dir: t.TempDir(), Sync: SyncKill}
	elsewhere := &Store{Dir: here.Dir, Sync: SyncKill}
	l := driven(t, here)
	mustAppend(t, l, said("1"))
	var logs []*Log
	var waiting sync.WaitGroup
	var late atomic.Bool
	ctx, cancel := context.WithTimeout(t.Context(), lookEvery-time.Second)
	defer cancel()
	for range fewLogs + 1 {
		other, err := elsewhere.opened(t.Context(), l.ID())
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, other)
		waiting.Go(func() {
			if err := other.Wait(ctx, 1); err != nil {
				late.Store(true)
			}
		})
	}
	if !listening(ctx, elsewhere, 1) {
		late.Store(true)
	}
	mustAppend(t, l, said("2"))
	waiting.Wait()
	for _, other := range logs {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
	rest, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	if !listening(rest, elsewhere, 0) {
		t.Error("the system still tells of files when all logs are closed")
	}
	return !late.Load()
}

// TestLooks checks that the system is not used for a short wait among few logs, and that such a wait still ends soon.
func TestLooks(t *testing.T) {
	here := &Store{Dir: t.TempDir(), Sync: SyncKill}
	elsewhere := &Store{Dir: here.Dir, Sync: SyncKill}
	l := driven(t, here)
	other, err := elsewhere.opened(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	was := other.tail.Seq
	woken := make(chan error)
	go func() { woken <- other.Wait(t.Context(), was) }()
	mustAppend(t, l, said("1"))
	if err := <-woken; err != nil {
		t.Error(err)
	}
	if elsewhere.notifier.watcher != nil {
		t.Error("the system was asked to tell of appends")
	}
}

// listening waits until the system tells the store of so many files. It reports false if that is not so
// before the context ends.
func listening(ctx context.Context, s *Store, files int) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		s.notifier.mu.Lock()
		n, open := len(s.notifier.files), s.notifier.watcher != nil
		s.notifier.mu.Unlock()
		if n == files && open == (files > 0) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// BenchmarkIdle measures the cost of a thousand logs that wait and get nothing.
func BenchmarkIdle(b *testing.B) {
	const most = 1000
	here := &Store{Dir: b.TempDir(), Sync: SyncKill}
	elsewhere := &Store{Dir: here.Dir, Sync: SyncKill}
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	for range most {
		l, err := here.create(ctx, empty)
		if err != nil {
			b.Fatal(err)
		}
		other, err := elsewhere.Open(ctx, l.ID())
		if err != nil {
			b.Fatal(err)
		}
		waiting.Go(func() { _ = other.Wait(ctx, 0); _ = other.Close(); _ = l.Close() }) // it ends by ctx
	}
	began, cpu := time.Now(), used(b)
	for b.Loop() {
		<-time.After(2 * lookEvery)
	}
	b.ReportMetric(100*float64(used(b)-cpu)/float64(time.Since(began)), "%core")
	b.ReportMetric(0, "ns/op")
	cancel()
	waiting.Wait()
}

// used is the time of the processor that this process has used.
func used(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
