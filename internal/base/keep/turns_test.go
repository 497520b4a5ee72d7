package keep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestTurns holds that only so many have a turn as may, that they can be told apart from none, and
// that nobody waits forever for one that hangs.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &keep.Turns{Most: 2}
		if p.Taken() {
			t.Error("nobody has a turn, and others wait")
		}
		var over []func()
		for range 2 {
			end, err := p.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			over = append(over, end)
		}
		if !p.Taken() {
			t.Error("as many as may have a turn, and one more would")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("somebody who has left waits: %v", err)
		}
		late, err := p.Take(t.Context()) // all of these hang
		if err != nil {
			t.Fatal(err)
		}
		late()
		if !p.Taken() {
			t.Error("one that had no place has given one back")
		}
		came := make(chan func())
		go func() {
			end, _ := p.Take(t.Context())
			came <- end
		}()
		synctest.Wait()
		over[0]()
		for _, end := range append(over[1:], <-came) {
			end()
		}
		began := time.Now()
		for range 2 {
			if _, err := p.Take(t.Context()); err != nil || time.Since(began) > 0 {
				t.Errorf("a turn that nobody has is waited for: %s, %v", time.Since(began), err)
			}
		}
	})
}
