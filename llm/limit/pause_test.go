package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
)

// sick is a vendor that fails n times in the same way.
func sick(n int, kind llm.Kind, wait time.Duration) *vendor {
	v := &vendor{info: llm.Info{Provider: "p"}}
	for range n {
		v.fails = append(v.fails, &llm.Error{Kind: kind, RetryAfter: wait})
	}
	return v
}

// refused asks and wants to be told at once to come back after a wait, with nothing sent.
func refused(t *testing.T, m llm.Model, kind llm.Kind, least, most time.Duration) {
	t.Helper()
	began := time.Now()
	held, failed := ask(t.Context(), m, say("hi"))
	if held != nil || failed == nil || failed.Kind != kind || failed.RetryAfter < least || failed.RetryAfter > most {
		t.Fatalf("held back %v, failed %+v; want %s, %v to %v", held, failed, kind, least, most)
	}
	if took := time.Since(began); took > 100*time.Millisecond { // which the lock of a file may take
		t.Errorf("it took %v", took)
	}
}

// processes are models of two processes with one key: limits that share no more than a file.
func processes(path string, v *vendor) (a, b llm.Model) {
	l := &limit.Limit{Path: path}
	other := l
	if path != "" {
		other = &limit.Limit{Path: path}
	}
	return l.Model(v), other.Model(v)
}

// TestLongPause checks that no request waits for a long pause, that the pause holds for all processes, and that one
// request in five minutes probes for its end.
func TestLongPause(t *testing.T) {
	for _, kind := range []llm.Kind{llm.KindRateLimited, llm.KindOverloaded} {
		both(t, func(t *testing.T, path string) {
			v := sick(2, kind, 24*time.Hour)
			a, b := processes(path, v)
			refused(t, a, kind, 24*time.Hour, 24*time.Hour) // by the vendor
			for range 10 {
				refused(t, a, llm.KindRateLimited, 5*time.Minute-time.Second, 5*time.Minute)
				refused(t, b, llm.KindRateLimited, 5*time.Minute-time.Second, 5*time.Minute)
			}
			if n := len(v.times()); n != 1 {
				t.Fatalf("the vendor was asked %d times", n)
			}
			time.Sleep(5 * time.Minute)
			refused(t, b, kind, 24*time.Hour, 24*time.Hour) // the probe, which hears the same
			refused(t, a, llm.KindRateLimited, 5*time.Minute-time.Second, 5*time.Minute)
			time.Sleep(5 * time.Minute)
			for range 3 { // the vendor is well: the probe ends the pause for all
				for _, m := range []llm.Model{b, a} {
					if held, failed := ask(t.Context(), m, say("hi")); held != nil || failed != nil {
						t.Fatalf("held back %v, failed %v", held, failed)
					}
				}
			}
		})
	}
}

// TestPauseSays checks the messages for people.
func TestPauseSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := processes("", sick(1, llm.KindRateLimited, 24*time.Hour))
		_, _ = ask(t.Context(), a, say("hi"))
		_, failed := ask(t.Context(), a, say("hi"))
		want := "p: rate limited: the vendor asked this key to wait, so nothing was sent; every 5m0s one request tries whether that still holds"
		if failed == nil || failed.Error() != want {
			t.Errorf("got  %v\nwant %s", failed, want)
		}
	})
}

// TestPauseEnds checks that a pause ends by itself, however long the vendor asks for.
func TestPauseEnds(t *testing.T) {
	for kind, most := range map[llm.Kind]time.Duration{
		llm.KindRateLimited: time.Hour, llm.KindOverloaded: time.Hour, llm.KindQuota: 25 * time.Hour,
	} {
		both(t, func(t *testing.T, path string) {
			v := sick(1, kind, 56*365*24*time.Hour)
			l := &limit.Limit{Path: path, Requests: 60, Tokens: 1000}
			_, _ = ask(t.Context(), l.Model(v), say("hi"))
			time.Sleep(most)
			for range 2 {
				if held, failed := ask(t.Context(), l.Model(v), say("hi")); held != nil || failed != nil {
					t.Errorf("%s: held back %v, failed %v", kind, held, failed)
				}
			}
		})
	}
}

// TestProbeSaysLess checks that the vendor's answer to a probe counts, even if it names a shorter pause.
func TestProbeSaysLess(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := sick(1, llm.KindRateLimited, time.Hour)
		v.fails = append(v.fails, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 10 * time.Second})
		a, b := processes(path, v)
		_, _ = ask(t.Context(), a, say("hi"))
		time.Sleep(5 * time.Minute)
		refused(t, a, llm.KindRateLimited, 10*time.Second, 10*time.Second)
		began := time.Now()
		held, failed := ask(t.Context(), b, say("hi"))
		if took := time.Since(began); len(held) != 1 || failed != nil || took < 9*time.Second || took > 12*time.Second {
			t.Errorf("held back %v for %v, failed %v", held, took, failed)
		}
	})
}

// TestProbeUnused checks that a probe that was not sent is left to the next.
func TestProbeUnused(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		l, v := &limit.Limit{Path: path}, new(vendor)
		_, _ = ask(t.Context(), l.Model(sick(1, llm.KindRateLimited, time.Hour)), say("hi"))
		time.Sleep(5 * time.Minute)
		_, _ = ask(t.Context(), l.Model(sick(1, llm.KindInvalid, 0)), say("hi")) // the probe, which tells nothing
		time.Sleep(5*time.Minute - 30*time.Second)
		refused(t, l.Model(v), llm.KindRateLimited, 29*time.Second, 30*time.Second)
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = ask(ctx, l.Model(v), say("hi"))
		if held, failed := ask(t.Context(), l.Model(v), say("hi")); held != nil || failed != nil || len(v.times()) != 1 {
			t.Errorf("held back %v, failed %v", held, failed)
		}
	})
}

// TestQuota checks that no request waits for hours, and that only probes are sent.
func TestQuota(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := sick(2, llm.KindQuota, 3*time.Hour)
		m := (&limit.Limit{Path: path, Requests: 60}).Model(v)
		_, _ = ask(t.Context(), m, say("hi"))
		for range 10 {
			refused(t, m, llm.KindQuota, 3*time.Hour-time.Second, 3*time.Hour+time.Minute)
		}
		time.Sleep(time.Hour)
		refused(t, m, llm.KindQuota, 3*time.Hour, 3*time.Hour) // the probe
		for range 10 {
			refused(t, m, llm.KindQuota, 3*time.Hour-time.Second, 3*time.Hour+time.Minute)
		}
		if n := len(v.times()); n != 2 {
			t.Errorf("the vendor was asked %d times", n)
		}
		time.Sleep(3*time.Hour + time.Minute)
		for range 2 {
			if held, failed := ask(t.Context(), m, say("hi")); held != nil || failed != nil {
				t.Errorf("after the pause: held back %v, failed %v", held, failed)
			}
		}
	})
}

// TestFarPlace checks that a place further away than a minute is not taken, but told.
func TestFarPlace(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		v := new(vendor)
		m := (&limit.Limit{Path: path, Tokens: 6000}).Model(v)             // 100 a second
		_, _ = ask(t.Context(), m, say(strings.Repeat("x", 7000*4)))       // 80 s
		refused(t, m, llm.KindRateLimited, 73*time.Second, 74*time.Second) // of which 6 are tolerated
		refused(t, m, llm.KindRateLimited, 73*time.Second, 74*time.Second) // and the first one takes up nothing
		time.Sleep(14 * time.Second)
		if held, failed := ask(t.Context(), m, say("hi")); failed != nil || len(held) != 1 || held[0].Wait < 59 || held[0].Wait > 60 {
			t.Errorf("held back %v, failed %v", held, failed)
		}
	})
}

// TestPauseAfterPause checks that one request does not wait for a minute again and again.
func TestPauseAfterPause(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		l, began := &limit.Limit{Path: path}, time.Now()
		pause := func() { _, _ = ask(t.Context(), l.Model(sick(1, llm.KindRateLimited, 40*time.Second)), say("hi")) }
		pause()
		done := make(chan *llm.Error)
		go func() {
			_, failed := ask(t.Context(), l.Model(new(vendor)), say("hi"))
			done <- failed
		}()
		time.Sleep(39 * time.Second)
		go pause() // waits a little, and is asked to wait again
		failed := <-done
		if took := time.Since(began); took > 66*time.Second {
			t.Errorf("it waited %v, failed %v", took, failed)
		}
	})
}

// TestWaitHasACause checks that a wait that is ended gives the reason why.
func TestWaitHasACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := (&limit.Limit{Requests: 1}).Model(new(vendor))
		_, _ = ask(t.Context(), m, say("hi"))
		late := errors.New("the time is up")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		began := time.Now()
		_, failed := ask(ctx, m, say("hi"))
		if took := time.Since(began); failed == nil || failed.Kind != llm.KindCancelled || !errors.Is(failed, late) || took != time.Second {
			t.Errorf("%v after %v", failed, took)
		}
	})
}

// TestHostilePace checks that a file with a valid checksum is not trusted blindly either, whether an older version or
// an attacker wrote it.
func TestHostilePace(t *testing.T) {
	const far, before = "9000000000000000000", "-9000000000000000000"
	for name, text := range map[string]string{
		"paused":    `{"requests":0,"tokens":0,"paused":` + far + `,"kind":"rate_limited","written":0}`,
		"no kind":   `{"requests":0,"tokens":0,"paused":` + far + `,"kind":"","written":0}`,
		"some kind": `{"requests":0,"tokens":0,"paused":` + far + `,"kind":"` + strings.Repeat("x", 100) + `","written":0}`,
		"no probe":  `{"requests":0,"tokens":0,"paused":` + far + `,"kind":"overloaded","written":0,"probe":` + far + `}`,
		"owed":      `{"requests":` + far + `,"tokens":` + far + `,"paused":0,"kind":"","written":0}`,
		"overdue": `{"requests":` + before + `,"tokens":` + before + `,"paused":` + before +
			`,"kind":"","written":0,"probe":` + before + `}`,
		"all together": `{"requests":` + far + `,"tokens":` + far + `,"paused":` + far + `,"kind":"x","written":0,"probe":` + far + `}`,
	} {
		both(t, func(t *testing.T, path string) {
			if path == "" {
				return
			}
			l := &limit.Limit{Path: path, Requests: 60, Tokens: 100_000}
			_, _ = ask(t.Context(), l.Model(new(vendor)), say("hi"))
			text := []byte(fmt.Sprintf("%-246s", text))
			if !json.Valid(text) {
				t.Fatal("a bad case")
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(text), text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = ask(t.Context(), l.Model(sick(9, llm.KindInvalid, 0)), say("hi")) // no probe will lift it
			time.Sleep(time.Hour)
			v := new(vendor)
			if _, failed := ask(t.Context(), l.Model(v), say("hi")); failed != nil || len(v.times()) != 1 {
				t.Errorf("%s: an hour later: %v", name, failed)
			}
		})
	}
}

// FuzzPace checks that, whatever the file contains, a request is sent within the longest wait for limits, and no wait
// is longer than it should be.
func FuzzPace(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), int64(0), "", int64(0))
	f.Add(int64(1)<<62, int64(-1)<<63, int64(1)<<62, int64(1)<<62, "quota", int64(0))
	f.Fuzz(func(t *testing.T, requests, tokens, paused, probe int64, kind string, written int64) {
		text, err := json.Marshal(map[string]any{
			"requests": requests, "tokens": tokens, "paused": paused, "probe": probe, "kind": kind, "written": written,
		})
		if err != nil || len(text) > 246 {
			return
		}
		path := t.TempDir() + "/pace"
		padded := fmt.Appendf(nil, "%-246s", text)
		if err := os.WriteFile(path, fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(padded), padded), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			l := &limit.Limit{Path: path, Requests: 60, Tokens: 100_000}
			began := time.Now()
			for time.Since(began) < 26*time.Hour {
				asked := time.Now()
				_, failed := ask(t.Context(), l.Model(new(vendor)), say("hi"))
				if took := time.Since(asked); took > 67*time.Second {
					t.Fatalf("it waited %v", took)
				}
				if failed == nil {
					return
				}
				if failed.RetryAfter <= 0 || failed.RetryAfter > 26*time.Hour {
					t.Fatalf("told to wait %v", failed.RetryAfter)
				}
				time.Sleep(failed.RetryAfter)
			}
			t.Fatal("nothing was sent for a day and more")
		})
	})
}

// TestPausesOfModels checks that models of one key pause apart and keep the pace of the key together, and that being
// held to the pace pauses nothing.
func TestPausesOfModels(t *testing.T) {
	both(t, func(t *testing.T, path string) {
		key := &limit.Limit{Path: path, Tokens: 6000, Unpaused: true} // 100 a second
		model := func(v *vendor) llm.Model { return (&limit.Limit{}).Model(key.Model(v)) }
		sick, well := model(sick(1, llm.KindRateLimited, 24*time.Hour)), model(new(vendor))
		refused(t, sick, llm.KindRateLimited, 24*time.Hour, 24*time.Hour)
		refused(t, sick, llm.KindRateLimited, 5*time.Minute-time.Second, 5*time.Minute)
		if _, failed := ask(t.Context(), well, say(strings.Repeat("x", 7000*4))); failed != nil {
			t.Fatal(failed)
		}
		for range 2 {
			if _, failed := ask(t.Context(), well, say("hi")); failed == nil || !strings.Contains(failed.Error(), "held back to keep to the limits") {
				t.Errorf("got %v", failed)
			}
		}
		time.Sleep(74 * time.Second)
		if held, failed := ask(t.Context(), well, say("hi")); held != nil || failed != nil {
			t.Errorf("held back %v, failed %v", held, failed)
		}
	})
}
