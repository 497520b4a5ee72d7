package testkit

import (
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for something that takes milliseconds on an idle machine. A green
// test never waits that long, so the bound only decides how late a red one gives up.
const Patience = 3 * time.Minute

// WaitFor returns once cond is true. It fails the test at once if that takes longer than Patience. The parameter
// what names the condition in the failure, as in "the server to start". The failure also shows the results of the
// functions in state.
func WaitFor(t testing.TB, what string, cond func() bool, state ...func() string) {
	t.Helper()
	if Poll(Patience, cond) {
		return
	}
	seen := ""
	for _, f := range state {
		seen += "\n" + f()
	}
	t.Fatalf("waited %v for %s%s", Patience, what, seen)
}

// Poll reports whether cond became true within a bound. It checks often at first and then less often, as a
// check may cost a process, and the machine should be left to the work that is awaited.
func Poll(bound time.Duration, cond func() bool) bool {
	late := time.Now().Add(bound)
	for pause := time.Millisecond; ; {
		asked := time.Now()
		if cond() {
			return true
		}
		took := time.Since(asked)
		if time.Now().After(late) {
			return false
		}
		time.Sleep(pause)
		pause = min(2*pause, max(50*time.Millisecond, 3*took), 500*time.Millisecond)
	}
}

// Receive returns the next value of a channel. It fails the test at once if none comes within Patience,
// or the channel is closed.
func Receive[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v, open := <-from:
		if !open {
			t.Fatalf("waited for %s, and the channel was closed", what)
		}
		return v
	case <-time.After(Patience):
		t.Fatalf("waited %v for %s", Patience, what)
	}
	return v
}

// Patiently calls a function again as long as it fails because another process has a lock. Waiters for locks
// are not served in order, so one of many writers may wait longer than its own limit.
func Patiently(do func() error) (err error) {
	Poll(Patience, func() bool {
		err = do()
		return err == nil || !strings.Contains(err.Error(), "end that process, and try again")
	})
	return err
}
