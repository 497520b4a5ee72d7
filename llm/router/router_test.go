package router_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// vendor is a model that fails as told, request by request, and then answers.
type vendor struct {
	info llm.Info

	mu    sync.Mutex
	fails []*llm.Error // nil means it answers
	hold  *llm.Retry   // what it yields before anything else
	asked []llm.Request
}

func called(name string) *vendor { return &vendor{info: llm.Info{Provider: "p", Model: name}} }

func (v *vendor) Info() llm.Info { return v.info }

func (v *vendor) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		fail, hold := v.next(req)
		if ctx.Err() != nil {
			yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
		if hold != nil && !yield(llm.Chunk{Retry: hold}, nil) {
			return
		}
		if !yield(llm.Chunk{Text: "I am " + v.info.Model}, nil) {
			return
		}
		if fail != nil {
			yield(llm.Chunk{}, fail)
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say("I am " + v.info.Model), Stop: llm.StopEnd, Route: v.info.Route()}}, nil)
	}
}

func (v *vendor) next(req llm.Request) (fail *llm.Error, hold *llm.Retry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, req)
	if len(v.fails) > 0 {
		fail, v.fails = v.fails[0], v.fails[1:]
	}
	return fail, v.hold
}

func (v *vendor) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.asked)
}

func failing(kinds ...llm.Kind) []*llm.Error {
	var out []*llm.Error
	for _, k := range kinds {
		out = append(out, &llm.Error{Kind: k})
	}
	return out
}

// chain is a router over vendors of these names, in this order.
func chain(vendors ...*vendor) *router.Model {
	m := &router.Model{ID: "r"}
	for _, v := range vendors {
		m.Routes = append(m.Routes, router.Route{Name: v.info.Model, Model: v})
	}
	return m
}

func say(text string) llm.Request {
	return llm.Request{Session: "s", Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(text)}}}
}

// told summarises a stream: the chosen model, the reply, the end.
func told(t *testing.T, m llm.Model, req llm.Request) string {
	t.Helper()
	var out []string
	over := false
	for c, err := range m.Stream(t.Context(), req) {
		if over {
			t.Fatal("something follows the end")
		}
		switch {
		case err != nil:
			out, over = append(out, "failed: "+string(llm.AsError(err).Kind)), true
		case c.Routed != nil && c.Routed.Cause != nil:
			out = append(out, "to "+c.Routed.Info.Model+" after "+string(c.Routed.Cause.Kind))
		case c.Routed != nil:
			out = append(out, "to "+c.Routed.Info.Model)
		case c.Retry != nil:
			out = append(out, "held back")
		case c.Reply != nil:
			out, over = append(out, c.Reply.Route+" replied"), true
		}
	}
	if !over {
		t.Fatal("the stream has no end")
	}
	return strings.Join(out, ", ")
}

// TestChain checks the consequence of each kind of failure of the first route.
func TestChain(t *testing.T) {
	const next = "to a, to b after %s, p/b replied"
	const up = "to a, failed: %s"
	for kind, want := range map[llm.Kind]string{
		llm.KindTransient:   up,
		llm.KindRateLimited: up,
		llm.KindTimeout:     up,
		llm.KindStreamCut:   up,
		llm.KindOverloaded:  next,
		llm.KindQuota:       next,
		llm.KindAuth:        next,
		llm.KindBilling:     next,
		llm.KindNoModel:     next,
		llm.KindNoTools:     next,
		llm.KindNoReply:     next,
		llm.KindAuthExpired: up,
		llm.KindHistory:     up,
		llm.KindTooLarge:    up,
		llm.KindRefused:     up,
		llm.KindInvalid:     up,
		llm.KindBudget:      up,
		llm.KindCancelled:   up,
	} {
		t.Run(string(kind), func(t *testing.T) {
			a, b := called("a"), called("b")
			a.fails = failing(kind)
			if got, want := told(t, chain(a, b), say("hi")), fmt.Sprintf(want, kind); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestChainWindow checks that a prompt that is too long goes only where there is known to be more room.
func TestChainWindow(t *testing.T) {
	small, unknown, medium, large := called("small"), called("unknown"), called("medium"), called("large")
	small.info.Window, medium.info.Window, large.info.Window = 8_000, 32_000, 64_000
	small.fails, large.fails = failing(llm.KindWindow), failing(llm.KindWindow)
	small.fails[0].Limit = 40_000 // it knows better
	m := chain(small, unknown, medium, large)
	if got, want := told(t, m, say("hi")), "to small, to large after context_overflow, failed: context_overflow"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := unknown.count() + medium.count(); n != 0 {
		t.Errorf("asked %d times where there is no more room", n)
	}
	alone := called("alone")
	alone.fails = failing(llm.KindWindow)
	if got, want := told(t, chain(alone, called("b")), say("hi")), "to alone, failed: context_overflow"; got != want {
		t.Errorf("nothing known: got  %s\nwant %s", got, want)
	}
}

// TestBestError checks which of several failures goes up.
func TestBestError(t *testing.T) {
	quota := func(d time.Duration) *llm.Error { return &llm.Error{Kind: llm.KindQuota, RetryAfter: d} }
	for _, tt := range []struct {
		name string
		a, b *llm.Error
		want string // of which route
	}{
		{"nothing helps: the first", &llm.Error{Kind: llm.KindAuth}, &llm.Error{Kind: llm.KindBilling}, "a"},
		{"waiting helps before nothing", &llm.Error{Kind: llm.KindAuth}, quota(time.Hour), "b"},
		{"the shorter wait", quota(3 * time.Hour), quota(time.Hour), "b"},
		{"the shorter wait first", quota(time.Hour), quota(3 * time.Hour), "a"},
		{"silence is long", quota(0), quota(3 * time.Hour), "b"},
		{"soon before some day", quota(time.Minute), &llm.Error{Kind: llm.KindOverloaded}, "b"},
		{"soon stays", &llm.Error{Kind: llm.KindOverloaded}, quota(time.Second), "a"},
		{"shorter text before nothing", &llm.Error{Kind: llm.KindAuth}, &llm.Error{Kind: llm.KindWindow}, "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := called("a"), called("b")
			a.info.Window, b.info.Window = 8000, 8000
			a.fails, b.fails = []*llm.Error{tt.a}, []*llm.Error{tt.b}
			tt.a.Provider, tt.b.Provider = "a", "b"
			var last error
			for _, err := range chain(a, b).Stream(t.Context(), say("hi")) {
				last = err
			}
			if got := llm.AsError(last); got == nil || got.Provider != tt.want {
				t.Errorf("got %v, want the failure of %s", got, tt.want)
			}
		})
	}
}

// TestHeldBack checks that a route whose wrapper waits long is left for another, and waited for if it is the last.
func TestHeldBack(t *testing.T) {
	for _, tt := range []struct {
		wait time.Duration
		want string
	}{
		{time.Minute, "to a, to b after rate_limited, held back, p/b replied"},
		{time.Second, "to a, held back, p/a replied"},
	} {
		a, b := called("a"), called("b")
		hold := &llm.Retry{Attempt: 1, Wait: tt.wait.Seconds(), Cause: &llm.Error{Kind: llm.KindRateLimited, RetryAfter: tt.wait}}
		a.hold, b.hold = hold, hold
		if got := told(t, chain(a, b), say("hi")); got != tt.want {
			t.Errorf("%v: got  %s\nwant %s", tt.wait, got, tt.want)
		}
	}
}

// TestPin follows a run whose calls were made by the second route.
func TestPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := called("a"), called("b")
		m := chain(a, b)
		m.Rules = []router.Rule{{Name: "a first", Use: []string{"a"}}}
		pinned := say("hi")
		pinned.Pin = "p/b"
		if got, want := told(t, m, pinned), "to b, p/b replied"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got, want := told(t, m, say("next")), "to a, p/a replied"; got != want {
			t.Errorf("outside the run: got  %s\nwant %s", got, want)
		}
		b.fails = failing(llm.KindBilling)
		if got, want := told(t, m, pinned), "to b, to a after billing, p/a replied"; got != want {
			t.Errorf("failing hard: got  %s\nwant %s", got, want)
		}
		if got, want := told(t, m, pinned), "to a, p/a replied"; got != want {
			t.Errorf("unhealthy: got  %s\nwant %s", got, want)
		}
		pinned.Pin = "p/gone"
		if got, want := told(t, m, pinned), "to a, p/a replied"; got != want {
			t.Errorf("unknown: got  %s\nwant %s", got, want)
		}
	})
}

// TestRouted checks the report about a choice.
func TestRouted(t *testing.T) {
	a, b := called("a"), called("b")
	a.fails = failing(llm.KindOverloaded)
	m := chain(a, b)
	m.Rules = []router.Rule{{Name: "long", When: router.Cond{MinTokens: 1000}, Use: []string{"a", "b"}}}
	var got []llm.Routed
	for c, err := range m.Stream(t.Context(), say(strings.Repeat("word ", 1000))) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Routed != nil {
			got = append(got, *c.Routed)
		}
	}
	want := []llm.Routed{
		{Info: a.info, Rule: "long", Reason: "1,050 tokens, at least 1,000"},
		{Info: b.info, Rule: "long", Reason: "next in line; 1,050 tokens, at least 1,000", Cause: &llm.Error{Kind: llm.KindOverloaded}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNobodyListens checks that a stream ends when its consumer leaves, and does not count as a failure: a stream that
// continued would panic.
func TestNobodyListens(t *testing.T) {
	for stop := range 3 {
		a, b := called("a"), called("b")
		a.fails = failing(llm.KindOverloaded)
		m := chain(a, b)
		m.Health = new(router.Health)
		seen := 0
		for _, err := range m.Stream(t.Context(), say("hi")) {
			if err != nil || seen == stop {
				break
			}
			seen++
		}
		if asked := b.count(); asked != max(stop-2, 0) || stop < 2 && len(m.Health.View().Models) != 0 {
			t.Errorf("left at chunk %d: b was asked %d times, health %v", stop, asked, m.Health.View().Models)
		}
	}
}

func TestCancelled(t *testing.T) {
	a, b := called("a"), called("b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, err := range chain(a, b).Stream(ctx, say("hi")) {
		last = err
	}
	if got := llm.AsError(last); got == nil || got.Kind != llm.KindCancelled || b.count() != 0 {
		t.Errorf("got %v, and b was asked %d times", last, b.count())
	}
}

// TestCutShort checks that a route that breaks its contract counts as cut.
func TestCutShort(t *testing.T) {
	m := &router.Model{Routes: []router.Route{{Name: "silent", Model: silent{}}}}
	if got, want := told(t, m, say("hi")), "to silent, failed: stream_cut"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type silent struct{}

func (silent) Info() llm.Info { return llm.Info{Model: "silent"} }
func (silent) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(func(llm.Chunk, error) bool) {}
}

// TestManySessions lets many sessions share a router whose first route falters.
func TestManySessions(t *testing.T) {
	a, b := called("a"), called("b")
	for range 40 {
		a.fails = append(a.fails, &llm.Error{Kind: llm.KindOverloaded}, nil)
	}
	m := chain(a, b)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			req := say("hello")
			req.Session = fmt.Sprint(i % 5)
			for range 20 {
				replied := false
				for c, err := range m.Stream(t.Context(), req) {
					if err != nil {
						t.Error(err)
					}
					replied = c.Reply != nil
				}
				if !replied {
					t.Error("no reply")
				}
				req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Parts: llm.Say("yes")},
					llm.Message{Role: llm.User, Parts: llm.Say("go on")})
			}
		})
	}
	wg.Wait()
}

func TestInfo(t *testing.T) {
	a, b := called("a"), called("b")
	a.info = llm.Info{Window: 8000, MaxOutput: 0, NoTools: true, Prices: llm.Prices{{Input: 1}}}
	b.info = llm.Info{Window: 200_000, MaxOutput: 4000, Images: true, Prices: llm.Prices{{Input: 1}}}
	m := &router.Model{ID: "hybrid", Routes: []router.Route{{Name: "a", Model: a}, {Name: "b", Model: b}}}
	want := llm.Info{Provider: "router", Model: "hybrid", Window: 200_000, MaxOutput: 4000, Images: true, Prices: llm.Prices{{Input: 1}}}
	if diff := cmp.Diff(want, m.Info()); diff != "" {
		t.Error(diff)
	}
	b.info.Prices, b.info.NoTools = llm.Prices{{Input: 2}}, true
	if got := m.Info(); got.Prices != nil || !got.NoTools {
		t.Errorf("got %+v, want no prices and no tools", got)
	}
}

func TestCheck(t *testing.T) {
	ok := func() *router.Model { return chain(called("a"), called("b")) }
	rule := func(r router.Rule) func(*router.Model) {
		return func(m *router.Model) { r.Name = "x"; m.Rules = []router.Rule{{Use: []string{"a"}}, r} }
	}
	for _, tt := range []struct {
		change func(*router.Model)
		want   string
	}{
		{func(*router.Model) {}, ""},
		{func(m *router.Model) { m.Routes = nil }, "there are no routes"},
		{func(m *router.Model) { m.Routes[1].Name = "" }, "route 2 has no name"},
		{func(m *router.Model) { m.Routes[1].Name = "a" }, `two routes are called "a"`},
		{func(m *router.Model) { m.Routes[1].Model = nil }, `route "b" has no model`},
		{func(m *router.Model) { m.Force = "c" }, `force names the route "c"; known: a, b`},
		{func(m *router.Model) { m.Private = []string{"a", "("} }, "private pattern 2: "},
		{rule(router.Rule{Use: []string{"c"}}), `rule 2 ("x") names the route "c"; known: a, b`},
		{rule(router.Rule{Use: []string{"a", "a"}}), `rule 2 ("x") names "a" twice`},
		{rule(router.Rule{}), `rule 2 ("x") uses no route`},
		{rule(router.Rule{Use: []string{"a"}, When: router.Cond{MinTokens: 2, MaxTokens: 1}}), "never matches: min_tokens"},
		{rule(router.Rule{Use: []string{"a"}, When: router.Cond{Said: "("}}), `rule 2 ("x"): said: `},
		{func(m *router.Model) { m.Begin = "desk" }, `begin is "desk"; use "local", "cloud", or nothing`},
		{rule(router.Rule{Use: []string{"a"}, MaxCost: -1}), "a bound is negative"},
	} {
		m := ok()
		tt.change(m)
		err := m.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
		if got := told(t, m, say("hi")); (tt.want != "") != (got == "failed: invalid_request") {
			t.Errorf("%q: %s", tt.want, got)
		}
	}
}
