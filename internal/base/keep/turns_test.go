package keep_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// TestTurns checks that only the allowed number has a turn at once, that turns can be told apart from none, and that no
// one waits forever for one that hangs.
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

// TestTurnsMove checks that a caller keeps waiting while turns before it end, however long that takes.
func TestTurnsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &keep.Turns{Most: 1}
		var mu sync.Mutex
		now, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				end, err := p.Take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				count(1)
				time.Sleep(2 * time.Second)
				count(-1)
				end()
			})
		}
		wg.Wait()
		if most != 1 {
			t.Errorf("%d had a turn at once, want 1", most)
		}
	})
}
