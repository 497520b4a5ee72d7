package limit_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
)

// vendor is a model that counts when it was asked, fails as told and else
// answers with the usage it was given.
type vendor struct {
	info   llm.Info
	usage  llm.Usage
	routed *llm.Routed

	mu    sync.Mutex
	fails []*llm.Error
	asked []time.Time
}

func (v *vendor) Info() llm.Info { return v.info }

func (v *vendor) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if fail := v.next(); fail != nil {
			yield(llm.Chunk{}, fail)
			return
		}
		if v.routed != nil && !yield(llm.Chunk{Routed: v.routed}, nil) || !yield(llm.Chunk{Text: "yes"}, nil) {
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say("yes"), Stop: llm.StopEnd, Usage: v.usage}}, nil)
	}
}

func (v *vendor) next() (fail *llm.Error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, time.Now())
	if len(v.fails) > 0 {
		fail, v.fails = v.fails[0], v.fails[1:]
	}
	return fail
}

func (v *vendor) times() []time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.SortedFunc(slices.Values(v.asked), time.Time.Compare)
}

func say(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}}
}

// ask sends a request, and returns how long it had to wait and its error.
func ask(ctx context.Context, m llm.Model, req llm.Request) (held []llm.Retry, failed *llm.Error) {
	for c, err := range m.Stream(ctx, req) {
		if err != nil {
			failed = llm.AsError(err)
		}
		if c.Retry != nil {
			held = append(held, *c.Retry)
		}
	}
	return held, failed
}

// both runs a test with the state in memory and in a file.
func both(t *testing.T, f func(t *testing.T, path string)) {
	for _, where := range []string{"memory", "file"} {
		t.Run(where, func(t *testing.T) {
			path := ""
			if where == "file" {
				path = filepath.Join(t.TempDir(), "new folder", "state")
			}
			synctest.Test(t, func(t *testing.T) { f(t, path) })
		})
	}
}

// TestRequests checks the pace of one session: a tenth of a minute's worth at once, and then one every so often.
func TestRequests(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := &vendor{info: llm.Info{Provider: "p"}}
		m := (&limit.Limit{Path: path, Requests: 60}).Model(v)
		began := time.Now()
		for i := range 10 {
			held, failed := ask(t.Context(), m, say("hi"))
			if failed != nil {
				t.Fatal(failed)
			}
			if i < 7 && held != nil || i >= 7 && len(held) != 1 {
				t.Fatalf("request %d was held back %d times", i, len(held))
			}
			if i >= 7 {
				r := held[0]
				if r.Attempt != 1 || r.Wait != 1 || r.Cause.Kind != llm.KindRateLimited || r.Cause.Provider != "p" ||
					r.Cause.RetryAfter != time.Second || r.Cause.Message == "" {
					t.Errorf("request %d: %+v, %+v", i, r, r.Cause)
				}
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("10 requests took %v, want 3 s", took)
		}
		time.Sleep(time.Hour) // what was not used is not saved up
		began = time.Now()
		for range 10 {
			if _, failed := ask(t.Context(), m, say("hi")); failed != nil {
				t.Fatal(failed)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("after an hour 10 requests took %v, want 3 s", took)
		}
	})
}

// TestManyWait checks the pace of many concurrent sessions, each of which waits just once.
func TestManyWait(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := new(vendor)
		l := &limit.Limit{Path: path, Requests: 30}
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if held, failed := ask(t.Context(), l.Model(v), say("hi")); failed != nil || len(held) > 1 {
					t.Errorf("held back %d times, failed %v", len(held), failed)
				}
			})
		}
		wg.Wait()
		for i, at := range v.times() {
			// Waiting for the file's lock may take a few milliseconds.
			want := time.Duration(max(i-3, 0)) * 2 * time.Second
			if got := at.Sub(began); got < want-100*time.Millisecond || got > want+time.Second {
				t.Errorf("request %d was sent after %v, want %v", i, got, want)
			}
		}
	})
}

// TestTokens checks that a big prompt makes those after it wait.
func TestTokens(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := new(vendor)
		m := (&limit.Limit{Path: path, Tokens: 6000}).Model(v) // 100 a second
		for i, want := range []float64{0, 14, 20, 20} {
			held, failed := ask(t.Context(), m, say(strings.Repeat("x", 7000))) // 2000 tokens: 20 s, of which 6 are tolerated
			if failed != nil || want == 0 && held != nil || want > 0 && (len(held) != 1 || held[0].Wait != want) {
				t.Errorf("request %d: %+v, %v, want to wait %v", i, held, failed, want)
			}
		}
	})
}

// TestPause checks that all sessions pause when one is told to, and don't all return at once.
func TestPause(t *testing.T) {
	for _, kind := range []llm.Kind{llm.KindRateLimited, llm.KindOverloaded} {
		both(t, func(t *testing.T, path string) {
			v := &vendor{fails: []*llm.Error{{Kind: kind, RetryAfter: 50 * time.Second}}}
			l, other := &limit.Limit{Path: path}, new(vendor)
			began := time.Now()
			if held, failed := ask(t.Context(), l.Model(v), say("hi")); held != nil ||
				failed == nil || failed.Kind != kind || failed.RetryAfter != 50*time.Second {
				t.Errorf("held back %v, failed %v", held, failed)
			}
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					held, failed := ask(t.Context(), l.Model(other), say("hi"))
					if failed != nil || len(held) != 1 || held[0].Cause.Kind != llm.KindRateLimited || held[0].Wait != held[0].Cause.RetryAfter.Seconds() {
						t.Errorf("held back %v, failed %v", held, failed)
					}
				})
			}
			wg.Wait()
			asked := other.times()
			first, last := asked[0].Sub(began), asked[len(asked)-1].Sub(began)
			if first < 50*time.Second || last > 56*time.Second || last-first < time.Second {
				t.Errorf("they came back between %v and %v", first, last)
			}
			if held, _ := ask(t.Context(), l.Model(v), say("hi")); held != nil {
				t.Errorf("after the pause: held back %v", held)
			}
		})
	}
}

// TestPausePaced checks that those who come during a pause are sent at the usual pace after it.
func TestPausePaced(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := &vendor{fails: []*llm.Error{{Kind: llm.KindRateLimited, RetryAfter: 40 * time.Second}}}
		l := &limit.Limit{Path: path, Requests: 60}
		began := time.Now()
		if _, failed := ask(t.Context(), l.Model(v), say("hi")); failed == nil {
			t.Error("it did not fail as told")
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, failed := ask(t.Context(), l.Model(v), say("hi")); failed != nil {
					t.Error(failed)
				}
			})
		}
		wg.Wait()
		// Seven at once after 40 s, and 13 more, one a second.
		if took := time.Since(began); took < 53*time.Second || took > 54*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestPauseWhileWaiting checks that a request that waits for its turn heeds a pause that comes meanwhile.
func TestPauseWhileWaiting(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		l := &limit.Limit{Path: path, Requests: 1}
		v := new(vendor)
		began := time.Now()
		_, _ = ask(t.Context(), l.Model(v), say("hi")) // the next one is due in 54 s
		done := make(chan []llm.Retry)
		go func() {
			held, _ := ask(t.Context(), l.Model(v), say("hi"))
			done <- held
		}()
		synctest.Wait()
		failing := &vendor{fails: []*llm.Error{{Kind: llm.KindRateLimited, RetryAfter: 58 * time.Second}}}
		_, _ = ask(t.Context(), (&limit.Limit{Path: path}).Model(failing), say("hi"))
		held := <-done
		took := time.Since(began)
		if path == "" { // another Limit without a file is another key
			if len(held) != 1 || took != 54*time.Second {
				t.Errorf("held back %d times, for %v", len(held), took)
			}
		} else if len(held) != 2 || took < 58*time.Second || took > 59*time.Second {
			t.Errorf("held back %d times, for %v", len(held), took)
		}
	})
}

// TestCancelWaiting checks that a wait ends with its context, and that the place is free again.
func TestCancelWaiting(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := new(vendor)
		m := (&limit.Limit{Path: path, Requests: 1}).Model(v)
		began := time.Now()
		_, _ = ask(t.Context(), m, say("hi"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, failed := ask(ctx, m, say("hi"))
		if took := time.Since(began); failed == nil || failed.Kind != llm.KindCancelled || took != time.Second {
			t.Errorf("%v after %v", failed, took)
		}
		if _, failed := ask(ctx, m, say("hi")); failed == nil || failed.Kind != llm.KindCancelled {
			t.Errorf("cancelled before: %v", failed)
		}
		for range m.Stream(t.Context(), say("hi")) { //nolint:errcheck // no one listens
			break
		}
		if n := len(v.times()); n != 1 {
			t.Errorf("the vendor was asked %d times", n)
		}
		if held, _ := ask(t.Context(), m, say("hi")); len(held) != 1 || time.Since(began) != 54*time.Second {
			t.Errorf("held back %v, until %v", held, time.Since(began))
		}
	})
}

// TestDamagedPace checks that an unreadable state does no harm.
func TestDamagedPace(t *testing.T) {
	for name, spoil := range damages() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pace")
			synctest.Test(t, func(t *testing.T) {
				v := &vendor{fails: []*llm.Error{{Kind: llm.KindRateLimited, RetryAfter: time.Hour}}}
				m := (&limit.Limit{Path: path, Requests: 60}).Model(v)
				_, _ = ask(t.Context(), m, say("hi"))
				spoil(t, path)
				for i := range 9 {
					if held, failed := ask(t.Context(), m, say("hi")); failed != nil || (len(held) > 0) != (i >= 7) {
						t.Errorf("request %d: held back %v, failed %v", i, held, failed)
					}
				}
			})
		})
	}
}

// damages are ways in which a file can be damaged.
func damages() map[string]func(t *testing.T, path string) {
	change := func(f func(old []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			old, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string]func(t *testing.T, path string){
		"empty":    change(func([]byte) []byte { return nil }),
		"zeros":    change(func(old []byte) []byte { return make([]byte, len(old)) }),
		"cut":      change(func(old []byte) []byte { return old[:100] }),
		"long":     change(func(old []byte) []byte { return append(old, strings.Repeat("x", 10_000)...) }),
		"flipped":  change(func(old []byte) []byte { old[30] ^= 1; return old }),
		"not ours": change(func([]byte) []byte { return []byte("hello\n") }),
		"gone": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// TestClockSetBack checks that a state from the future is not waited for.
func TestClockSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pace")
	v := &vendor{fails: []*llm.Error{{Kind: llm.KindRateLimited, RetryAfter: time.Hour}}}
	_, _ = ask(t.Context(), (&limit.Limit{Path: path}).Model(v), say("hi")) // at the real time
	synctest.Test(t, func(t *testing.T) {                                   // which is long after that of a bubble
		if held, failed := ask(t.Context(), (&limit.Limit{Path: path}).Model(v), say("hi")); held != nil || failed != nil {
			t.Errorf("held back %v, failed %v", held, failed)
		}
	})
}

// TestNoFile checks that the limit still applies without a file.
func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := (&limit.Limit{Path: filepath.Join(path, "below a file"), Requests: 60}).Model(new(vendor))
		began := time.Now()
		for range 10 {
			if _, failed := ask(t.Context(), m, say("hi")); failed != nil {
				t.Fatal(failed)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("10 requests took %v, want 3 s", took)
		}
	})
}
