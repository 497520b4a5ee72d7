package testkit_test

import (
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// test is a test whose end can be had early.
type test struct {
	testing.TB
	cleanups []func()
	failed   bool
}

func (t *test) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *test) Error(...any)     { t.failed = true }

func (t *test) end() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}

func TestAfter(t *testing.T) {
	for _, ends := range []bool{true, false} {
		part := &test{TB: t}
		if ends {
			testkit.After(part)
		} else {
			testkit.AfterWithin(part, 100*time.Millisecond)
		}
		done := make(chan struct{})
		go func() { <-done }()
		if ends {
			part.Cleanup(func() { close(done) })
		}
		part.end()
		if part.failed == ends {
			t.Errorf("the goroutine ends: %v, it failed: %v", ends, part.failed)
		}
		if !ends {
			close(done)
		}
	}
}
