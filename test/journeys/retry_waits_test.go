package journeys_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/limit"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/router"
)

// gate is a vendor behind a gateway that refuses requests while it is closed.
type gate struct {
	closed atomic.Bool
	asked  atomic.Int32
	header http.Header
}

func (g *gate) answer(*http.Request, []byte) anthropictest.Answer {
	g.asked.Add(1)
	if !g.closed.Load() {
		return anthropictest.Answer{Parts: llm.Say("Hello."), Stop: llm.StopEnd}
	}
	return anthropictest.Answer{Status: 429, Type: "rate_limit_error", Message: "Too many requests.", Header: g.header}
}

// vendors are real adapters with a fake server behind the gate, by name.
func vendors(t *testing.T, g *gate) map[string]llm.Model {
	key := func(context.Context) (string, error) { return "sk-test", nil }
	return map[string]llm.Model{
		"anthropic": &anthropic.Model{
			ID: "claude-opus-4-8", BaseURL: "http://fake", Key: key,
			HTTP: anthropictest.Transport(t, &anthropictest.Server{Answer: g.answer}),
		},
		"openai": &openai.Model{
			ID: "gpt-6-sol", BaseURL: "http://fake/v1", Key: key,
			HTTP: openaitest.Transport(t, &openaitest.Server{Answer: g.answer}),
		},
	}
}

// eachVendor runs a test with each vendor and two processes that share a key: limits over one file.
func eachVendor(t *testing.T, header http.Header, f func(t *testing.T, g *gate, one, two llm.Model)) {
	for _, name := range []string{"anthropic", "openai"} {
		path := filepath.Join(t.TempDir(), name+".pace")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{header: header}
				g.closed.Store(true)
				m := vendors(t, g)[name]
				f(t, g, (&limit.Limit{Path: path}).Model(m), (&limit.Limit{Path: path}).Model(m))
			})
		})
	}
}

// stops runs an agent and returns how that ended, and after how long.
func stops(t *testing.T, a inspan.Agent) (event.Stopped, time.Duration) {
	t.Helper()
	began := time.Now()
	got := last[event.Stopped](t, collect(t, a.Run(t.Context(), "go")))
	return got, time.Since(began)
}

// A person hears at once that the vendor asks for a day, in each process, and nothing is sent meanwhile. When the
// gateway is repaired, the next request that finds out is the end of it.
func TestOneHeaderStopsNobodyForADay(t *testing.T) {
	eachVendor(t, http.Header{"Retry-After": {"86400"}}, func(t *testing.T, g *gate, one, two llm.Model) {
		got, took := stops(t, inspan.Agent{Model: one})
		want := "try again in 24h0m0s (one request waits at most 1m0s)"
		if got.Cause != llm.KindRateLimited || !strings.Contains(got.Detail, want) {
			t.Errorf("stopped %+v", got)
		}
		if took > time.Minute {
			t.Errorf("one waited %v", took)
		}
		got, took = stops(t, inspan.Agent{Model: two})
		want = "the vendor asked this key to wait, so nothing was sent; every 5m0s one request tries whether that still holds; try again in 5m0s"
		if !strings.Contains(got.Detail, want) {
			t.Errorf("stopped %+v", got)
		}
		if n := g.asked.Load(); took > time.Minute || n != 1 {
			t.Errorf("two waited %v, the vendor was asked %d times", took, n)
		}
		g.closed.Store(false)
		time.Sleep(5 * time.Minute)
		for _, m := range []llm.Model{two, one} {
			if got, took := stops(t, inspan.Agent{Model: m}); got.Reason != event.ReasonDone || took > time.Second {
				t.Errorf("after %v stopped %+v", took, got)
			}
		}
	})
}

// Without a person, a session waits as long as it may and no longer, and continues soon after the gateway recovers.
func TestUnattendedWaitsAreBounded(t *testing.T) {
	eachVendor(t, http.Header{"Retry-After": {"86400"}}, func(t *testing.T, g *gate, one, two llm.Model) {
		got, took := stops(t, inspan.Agent{Model: one, Unattended: true})
		if got.Cause != llm.KindRateLimited || took > 15*time.Minute || !strings.Contains(got.Detail, "(one request waits at most 15m0s)") {
			t.Errorf("after %v one stopped %+v", took, got)
		}
		if got, took := stops(t, inspan.Agent{Model: two, Unattended: true}); got.Cause != llm.KindRateLimited || took > 15*time.Minute {
			t.Errorf("after %v two stopped %+v", took, got)
		}
		time.AfterFunc(time.Minute, func() { g.closed.Store(false) })
		if got, took := stops(t, inspan.Agent{Model: two, Unattended: true}); got.Reason != event.ReasonDone || took > 6*time.Minute {
			t.Errorf("after %v two stopped %+v", took, got)
		}
	})
}

// A time of day is not a number of seconds.
func TestRetryAfterATimeOfDay(t *testing.T) {
	for name, spell := range map[string]func(time.Time) string{
		"seconds": func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) },
		"millis":  func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) },
		"RFC3339": func(at time.Time) string { return at.Format(time.RFC3339) },
		"HTTP":    func(at time.Time) string { return at.UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			eachVendor(t, header, func(t *testing.T, g *gate, one, _ llm.Model) {
				header.Set("Retry-After", spell(time.Now().Add(20*time.Second)))
				time.AfterFunc(10*time.Second, func() { g.closed.Store(false) })
				got, took := stops(t, inspan.Agent{Model: one})
				if got.Reason != event.ReasonDone || took < 19*time.Second || took > 22*time.Second {
					t.Errorf("after %v stopped %+v", took, got)
				}
			})
		})
	}
}

// All waits for an allowance together are bounded.
func TestAllowancesAreNotAwaitedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{}
		for range 50 {
			v.answers = append(v.answers, fails(llm.KindQuota, 10*time.Hour))
		}
		got, took := stops(t, inspan.Agent{Model: v, Unattended: true})
		want := "try again in 10h0m0s (one request waits at most 25h0m0s)"
		if got.Cause != llm.KindQuota || took != 20*time.Hour || !strings.Contains(got.Detail, want) {
			t.Errorf("after %v stopped %+v", took, got)
		}
	})
}

// waiting is the log of a session that was left in a wait of a day.
func waiting(t *testing.T, kind llm.Kind) event.Log {
	t.Helper()
	log := event.NewMemory("s")
	a := &inspan.Agent{Model: &vendor{answers: []answer{fails(kind, 24*time.Hour)}}, Limits: inspan.Limits{Retry: 48 * time.Hour}}
	play(t, a, log, func(_ *inspan.Session, e event.Event) bool { _, failed := e.Body.(event.Failed); return !failed }, said("go"))
	return log
}

// A wait that a log asks for is bounded by the patience of the process that continues the session.
func TestOldWaitsAreBounded(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		kind  llm.Kind
		agent inspan.Agent
		pass  time.Duration // before it is resumed
		want  time.Duration
	}{
		"a person":                    {kind: llm.KindRateLimited},
		"a person, an allowance":      {kind: llm.KindQuota},
		"nobody":                      {kind: llm.KindRateLimited, agent: inspan.Agent{Unattended: true}},
		"nobody, an allowance":        {kind: llm.KindQuota, agent: inspan.Agent{Unattended: true}, want: day},
		"nobody, an allowance, never": {kind: llm.KindQuota, agent: inspan.Agent{Unattended: true, Limits: inspan.Limits{Retry: -1}}},
		"patient":                     {kind: llm.KindQuota, agent: inspan.Agent{Limits: inspan.Limits{RetryLong: true}}, want: day},
		"told to wait":                {kind: llm.KindRateLimited, agent: inspan.Agent{Limits: inspan.Limits{Retry: day}}, want: day},
		"told to wait less":           {kind: llm.KindQuota, agent: inspan.Agent{Unattended: true, Limits: inspan.Limits{Retry: 23 * time.Hour}}},
		"a person, at its end":        {kind: llm.KindRateLimited, pass: day - 50*time.Second, want: 50 * time.Second},
		"nobody, at its end": {
			kind: llm.KindRateLimited, agent: inspan.Agent{Unattended: true}, pass: day - 10*time.Minute, want: 10 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := waiting(t, tc.kind)
				time.Sleep(tc.pass)
				began := time.Now()
				a := tc.agent
				a.Model = &vendor{}
				if got := last[event.Stopped](t, collect(t, open(t, &a, log).Run(t.Context()))); got.Reason != event.ReasonDone {
					t.Errorf("stopped %+v", got)
				}
				if took := time.Since(began); took != tc.want {
					t.Errorf("waited %v, want %v", took, tc.want)
				}
			})
		})
	}
}

// Whoever says something new to a session that was left in a long wait is answered, and hears of it
// if it is still too early.
func TestNewWordsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := waiting(t, llm.KindQuota)
		began := time.Now()
		v := &vendor{answers: []answer{fails(llm.KindQuota, 24*time.Hour)}}
		var got []event.Stopped
		for _, e := range collect(t, open(t, &inspan.Agent{Model: v}, log).Run(t.Context(), said("something new"))) {
			if b, ok := e.Body.(event.Stopped); ok {
				got = append(got, b)
			}
		}
		if len(got) != 2 || !strings.Contains(got[0].Detail, "try again in 24h0m0s") || got[1].Reason != event.ReasonDone {
			t.Errorf("stopped %+v", got) // what was asked before, and then what is new
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

// waits are agents that will wait for a while, each in a way of its own.
func waits() map[string]func(*testing.T) (*inspan.Agent, event.Log) {
	return map[string]func(*testing.T) (*inspan.Agent, event.Log){
		"held": func(t *testing.T) (*inspan.Agent, event.Log) {
			m := (&limit.Limit{Requests: 1}).Model(&vendor{})
			stops(t, inspan.Agent{Model: m})
			return &inspan.Agent{Model: m}, event.NewMemory("s")
		},
		"retried": func(*testing.T) (*inspan.Agent, event.Log) {
			return &inspan.Agent{Model: &vendor{answers: []answer{fails(llm.KindRateLimited, 50*time.Second)}}}, event.NewMemory("s")
		},
		"resumed": func(t *testing.T) (*inspan.Agent, event.Log) {
			return &inspan.Agent{Model: &vendor{}, Limits: inspan.Limits{Retry: 48 * time.Hour}}, waiting(t, llm.KindRateLimited)
		},
	}
}

// An interrupt ends any wait, and does not hold back a later message.
func TestInterruptsEndAllWaits(t *testing.T) {
	for name, from := range waits() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, log := from(t)
				s := open(t, a, log)
				began, sent := time.Now(), false
				var ended []event.Reason
				for e, err := range s.Run(t.Context(), said("go")) {
					if err != nil {
						t.Fatal(err)
					}
					if b, ok := e.Body.(event.Stopped); ok {
						ended = append(ended, b.Reason)
					}
					f, failed := e.Body.(event.Failed)
					p, paused := e.Body.(event.Progress)
					if !sent && (failed && f.Retry > 0 || paused && p.Wait > 0) {
						sent = true
						send(t, s, event.Cancelled{By: "me"})
					}
				}
				if took := time.Since(began); len(ended) == 0 || ended[0] != event.ReasonCancelled || took > time.Second {
					t.Errorf("after %v stopped %v", took, ended)
				}
			})
		})
	}
}

// The end of a context ends a wait wherever it is, and is the error.
func TestDeadlinesEndAllWaits(t *testing.T) {
	for name, from := range waits() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, log := from(t)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				var end error
				for _, err := range open(t, a, log).Run(ctx, said("go")) {
					end = err
				}
				if took := time.Since(began); !errors.Is(end, context.DeadlineExceeded) || took != 10*time.Second {
					t.Errorf("after %v: %v", took, end)
				}
			})
		})
	}
}

// TestRetryForBoundsEarlierWaits checks that a wait requested for an earlier request lasts no longer than one request
// may wait.
func TestRetryForBoundsEarlierWaits(t *testing.T) {
	eachVendor(t, http.Header{"Retry-After": {"25"}}, func(t *testing.T, g *gate, one, two llm.Model) {
		if got, took := stops(t, inspan.Agent{Model: one, Limits: inspan.Limits{Retry: 2 * time.Second}}); got.Cause != llm.KindRateLimited || took > 3*time.Second {
			t.Errorf("stopped %+v after %v", got, took)
		}
		g.closed.Store(false)
		if got, took := stops(t, inspan.Agent{Model: two, Limits: inspan.Limits{Retry: 3 * time.Second}}); got.Cause != llm.KindRateLimited || took > 3*time.Second {
			t.Errorf("the next stopped %+v after %v", got, took)
		}
		if got, took := stops(t, inspan.Agent{Model: two, Limits: inspan.Limits{Retry: time.Minute}}); got.Reason != event.ReasonDone || took < 20*time.Second {
			t.Errorf("with more patience it stopped %+v after %v", got, took)
		}
	})
}

// named is a vendor's model of a name and a window.
type named struct {
	*vendor
	window int
	down   bool
}

func (n *named) Info() llm.Info {
	return llm.Info{Provider: "test", Model: fmt.Sprint(n.window), Window: n.window, MaxOutput: 1000}
}

func (n *named) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if n.down {
		return (&vendor{answers: []answer{fails(llm.KindOverloaded, 0)}}).Stream(ctx, req)
	}
	return n.vendor.Stream(ctx, req)
}

// TestSmallerWindowTakesOver checks that a conversation is cut to fit the model that is up while models with a larger
// window are down, and that the wait for those is short.
func TestSmallerWindowTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big, small := &named{vendor: &vendor{}, window: 200_000}, &named{vendor: &vendor{}, window: 12_000}
		a := &inspan.Agent{Unattended: true, Model: &router.Model{Routes: []router.Route{{Name: "big", Model: big}, {Name: "small", Model: small}}}}
		s := open(t, a, event.NewMemory("s"))
		for i := range 12 {
			collect(t, s.Run(t.Context(), event.Say(fmt.Sprintf("Part %d. ", i)+strings.Repeat("It goes on and on. ", 300))))
		}
		if len(small.requests) > 0 {
			t.Fatal("the small one was asked although the other is up")
		}
		big.down = true
		began := time.Now()
		got := collect(t, s.Run(t.Context(), event.Say("And now?")))
		if st := last[event.Stopped](t, got); st.Reason != event.ReasonDone || len(small.requests) == 0 {
			t.Errorf("%+v after %d requests to the small one", st, len(small.requests))
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
