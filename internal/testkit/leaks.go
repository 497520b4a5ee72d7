package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and ends the process. It fails if a new goroutine is left at the end.
func Main(m *testing.M) {
	if os.Args[0] == "inspan-keeper" { // otherwise it would run the tests again, and start the next one
		fmt.Fprintln(os.Stderr, "this test program was started as a keeper; its TestMain must call sandbox.Keeper first")
		os.Exit(2)
	}
	before := goleak.IgnoreCurrent()
	code := m.Run()
	if err := left(before, Patience); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// After fails a test if it leaves a goroutine after after all its cleanups: call it first.
func After(t testing.TB) { AfterWithin(t, Patience) }

// AfterWithin is After with its own limit for the end of goroutines.
func AfterWithin(t testing.TB, bound time.Duration) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := left(before, bound); err != nil {
			t.Error(err)
		}
	})
}

// left waits for goroutines that are about to end: a connection that an HTTP server closes takes half a
// second, and a busy machine makes everything late.
func left(before goleak.Option, bound time.Duration) (err error) {
	Poll(bound, func() bool {
		err = goleak.Find(before)
		return err == nil
	})
	return err
}
