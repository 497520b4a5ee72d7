package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long what has been ended may take to be gone: a connection that an
// HTTP server closes waits half a second, and a program with the race detector ends a
// second late.
const patience = 5 * time.Second

// Main runs the tests of a package, and ends the process. It fails if a goroutine is
// left that was not there when it began.
func Main(m *testing.M) {
	if os.Args[0] == "inspan-keeper" { // the tests would run anew, in it, and start the next one
		fmt.Fprintln(os.Stderr, "this test program was started as a keeper; its TestMain must call sandbox.Keeper first")
		os.Exit(2)
	}
	before := goleak.IgnoreCurrent()
	code := m.Run()
	if err := left(before); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// After fails a test if it leaves a goroutine behind, once all that it cleans up is
// cleaned up: it is called first.
func After(t testing.TB) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := left(before); err != nil {
			t.Error(err)
		}
	})
}

func left(before goleak.Option) error {
	for late := time.Now().Add(patience); ; {
		if err := goleak.Find(before); err == nil || time.Now().After(late) {
			return err
		}
	}
}
