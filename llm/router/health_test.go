package router_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// TestUnhealthy follows one route that fails and recovers, second by second.
func TestUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := called("a"), called("b")
		m := chain(a, b)
		for i, step := range []struct {
			wait  time.Duration
			fails *llm.Error
			want  string
		}{
			{0, &llm.Error{Kind: llm.KindTransient}, "to a, failed: transient"},
			{0, nil, "to a, p/a replied"}, // the count starts over
			{0, &llm.Error{Kind: llm.KindTransient}, "to a, failed: transient"},
			{0, &llm.Error{Kind: llm.KindTimeout}, "to a, to b after timeout, p/b replied"},
			{29 * time.Second, nil, "to b, p/b replied"},
			{time.Second, &llm.Error{Kind: llm.KindStreamCut}, "to a, to b after stream_cut, p/b replied"},
			{59 * time.Second, nil, "to b, p/b replied"},
			{time.Second, nil, "to a, p/a replied"}, // back to the first
			{0, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 20 * time.Second}, "to a, failed: rate_limited"},
			{0, nil, "to a, p/a replied"},
			{0, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: 45 * time.Second}, "to a, to b after rate_limited, p/b replied"},
			{44 * time.Second, nil, "to b, p/b replied"},
			{time.Second, nil, "to a, p/a replied"},
			{0, &llm.Error{Kind: llm.KindQuota, RetryAfter: 3 * time.Hour}, "to a, to b after quota, p/b replied"},
			{time.Hour - 1, nil, "to b, p/b replied"}, // which no vendor can prolong
			{1, nil, "to a, p/a replied"},
		} {
			time.Sleep(step.wait)
			if step.fails != nil {
				a.fails = []*llm.Error{step.fails}
			}
			if got := told(t, m, say("hi")); got != step.want {
				t.Fatalf("step %d: got  %s\nwant %s", i, got, step.want)
			}
		}
	})
}

// TestPause checks that pauses double up to ten minutes, and that a late success does not hide a newer failure.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(router.Health)
		for i, want := range []time.Duration{0, 30, 60, 120, 240, 480, 600, 600} {
			h.Failed("p/a", &llm.Error{Kind: llm.KindTransient})
			v := h.View()
			if got := v.Models["p/a"].Until.Sub(v.At); want > 0 && got != want*time.Second || want == 0 && got > 0 {
				t.Errorf("after %d failures: %v, want %v", i+1, got, want*time.Second)
			}
		}
		before := time.Now()
		time.Sleep(time.Second)
		h.Failed("p/a", &llm.Error{Kind: llm.KindTransient})
		h.Answered("p/a", before)
		if len(h.View().Models) == 0 {
			t.Error("a request sent before the failure made the model healthy")
		}
		h.Answered("p/a", time.Now())
		if len(h.View().Models) != 0 {
			t.Error("a reply did not make the model healthy")
		}
		h.Failed("p/a", &llm.Error{Kind: llm.KindInvalid})
		if len(h.View().Models) != 0 {
			t.Error("a bad request is counted against the model")
		}
	})
}

// TestAllUnhealthy checks that the route that may recover first is still asked, and only that one.
func TestAllUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := called("a"), called("b")
		m := chain(a, b)
		m.Health = new(router.Health)
		m.Health.Failed("p/a", &llm.Error{Kind: llm.KindRateLimited, RetryAfter: time.Hour})
		m.Health.Failed("p/b", &llm.Error{Kind: llm.KindRateLimited, RetryAfter: time.Minute})
		b.fails = failing(llm.KindTransient)
		if got, want := told(t, m, say("hi")), "to b, failed: transient"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		b.fails = failing(llm.KindAuth)
		if got, want := told(t, m, say("hi")), "to b, to a after auth, p/a replied"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestReserve checks that an unhealthy route helps out when the others can't be helped, but not when they may answer
// soon.
func TestReserve(t *testing.T) {
	for kind, want := range map[llm.Kind]string{
		llm.KindAuth:       "to b, to a after auth, p/a replied",
		llm.KindOverloaded: "to b, failed: overloaded",
	} {
		a, b := called("a"), called("b")
		b.fails = failing(kind)
		m := chain(a, b)
		m.Health = new(router.Health)
		m.Health.Failed("p/a", &llm.Error{Kind: llm.KindBilling})
		if got := told(t, m, say("hi")); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
