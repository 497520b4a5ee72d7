package subagent_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// runaway is a session that begins agents without end, 50 at once, each of which works without end.
func runaway(t *testing.T, perMinute *float64) *house {
	t.Helper()
	long := looking(nil)
	long.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		return tool.Text(strings.Repeat("and so on ", 800)), nil
	}
	h := newHouse(t, func(first string, turn int, _ llm.Request) (llm.Parts, error) {
		var parts llm.Parts
		if first != "start" {
			return append(parts, call(fmt.Sprint("x", turn), "look", map[string]any{"n": turn})), nil
		}
		for i := range 50 {
			parts = append(parts, spawn(fmt.Sprint("c", turn, "-", i), fmt.Sprint("part ", turn, i), "background", turn%2 == 0))
		}
		return parts, nil
	}, long)
	h.minute, h.usual = perMinute, true
	h.model.price = &llm.Price{Input: 30, Output: 150}
	h.model.costs = func(req llm.Request) llm.Usage {
		h.model.mu.Lock()
		defer h.model.mu.Unlock()
		h.model.prompts += req.Tokens()
		return llm.Usage{Input: req.Tokens(), Output: 20}
	}
	return h
}

// TestRunawayIsStopped checks that a session whose agents spend too fast is stopped with all of them within a
// minute and 2 percent of its budget, gives the reason why, asks nothing more, and continues on request.
func TestRunawayIsStopped(t *testing.T) {
	set := 5.0
	for name, c := range map[string]struct {
		set *float64
		at  float64
	}{"set": {&set, 5}, "usual": {nil, 10}} {
		t.Run(name, func(t *testing.T) { isStopped(t, runaway(t, c.set), c.at) })
	}
}

func isStopped(t *testing.T, h *house, perMinute float64) {
	const budget = 100.0
	s := h.open()
	defer closed(t, s)
	spent := func() float64 { return float64(h.model.asked)*20*150e-6 + float64(h.model.prompts)*30e-6 }
	began, asked := time.Now(), 0
	events := run(t, s, func(e event.Event) {
		if b, is := e.Body.(event.Cancelled); is && b.Limit == event.ReasonRate {
			h.model.mu.Lock()
			asked = h.model.asked
			h.model.mu.Unlock()
		}
	}, event.Switched{Limits: &event.Limits{Cost: budget}}, say("start"))
	st := s.Status()
	most := fmt.Sprintf("of at most $%.2f", perMinute)
	if st.Stopped == nil || st.Stopped.Reason != event.ReasonRate || !strings.Contains(st.Stopped.Detail, most) {
		t.Fatalf("%+v", st.Stopped)
	}
	if took := time.Since(began); took > time.Minute || spent() < perMinute/2 || max(spent(), st.Cost) > perMinute+0.02*budget {
		t.Errorf("$%.2f were spent in %v, and the session counts $%.2f", spent(), took, st.Cost)
	}
	if n := len(of[event.Spawned](events)); n >= 500 {
		t.Errorf("%d agents were begun", n)
	}
	if h.model.asked > asked+16 { // what was let out before may arrive a little later
		t.Errorf("the model was asked %d times after it was said that all stops", h.model.asked-asked)
	}
	if cancels := of[event.Cancelled](events); len(cancels) != 1 || cancels[0].Rate.Cost < perMinute {
		t.Errorf("it was said %+v", cancels)
	}
	before := h.model.asked
	run(t, s, nil, event.Said{})
	if more := h.model.asked - before; more < 10 || s.Status().Stopped.Reason != event.ReasonRate {
		t.Errorf("after somebody had agreed the model was asked %d times; %+v", more, s.Status().Stopped)
	}
}

// TestStopOutlivesTheProcess checks that a stopped tree stays stopped if the program is killed before the run has
// stopped: no agent continues, and no question is asked.
func TestStopOutlivesTheProcess(t *testing.T) {
	one := 1.0
	h := runaway(t, &one)
	s := h.open()
	for e, err := range s.Run(t.Context(), say("start")) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := e.Body.(event.Cancelled); is && b.Limit == event.ReasonRate {
			break
		}
	}
	closed(t, s)
	asked := h.model.asked
	again, err := h.host().Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	run(t, again, nil)
	if st := again.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonRate || h.model.asked > asked {
		t.Errorf("%+v, asked %d times more", st.Stopped, h.model.asked-asked)
	}
}

// TestUsualRateIsNoRunaway checks that agents with usual spending are not stopped.
func TestUsualRateIsNoRunaway(t *testing.T) {
	h := newHouse(t, fan(40, func(int, int) (llm.Parts, error) { return llm.Say("x"), nil }))
	h.usual = true
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	if st := s.Status(); st.Stopped.Reason != event.ReasonDone || st.Cost < 4 {
		t.Errorf("%+v for $%.2f", st.Stopped, st.Cost)
	}
}

// TestQuotaPausesTheTree checks that a used-up quota of one agent has all others and their parent wait, once, and that
// neither is anything sent meanwhile nor an agent begun; also after the program was killed.
func TestQuotaPausesTheTree(t *testing.T) {
	work, told := make(chan struct{}), make(chan struct{})
	var in atomic.Int32
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		select {
		case <-told:
			t.Error("the model was asked while the quota was used up")
		default:
		}
		if task == "part 0" {
			<-work
			return nil, &llm.Error{Kind: llm.KindQuota, RetryAfter: time.Hour, Message: "no more today"}
		}
		return fan(9, func(_, turn int) (llm.Parts, error) {
			return llm.Parts{call(fmt.Sprint("x", turn), "look", nil)}, nil
		})(task, turn, req)
	}, looking(func(ctx context.Context, _ *tool.Call) error {
		if in.Add(1) == 7 {
			close(work)
		}
		select { // then each has a request before it
		case <-told:
		case <-ctx.Done():
		}
		return ctx.Err()
	}))
	h.adjust = func(a *inspan.Agent) {
		a.Limits.Retry = 2 * time.Hour
		a.Judges = []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (v tool.Verdict, err error) {
			if c.ID == "c8" {
				v.Action = tool.Ask
			}
			return v, nil
		})}
	}
	s := h.open()
	var p event.Paused
	events := watched(t, s, func(e event.Event) {
		if b, is := e.Body.(event.Paused); is {
			p = b
			close(told)
			if err := s.Send(t.Context(), event.Decided{Call: "c8", Allow: true}); err != nil {
				t.Error(err)
			}
		}
	}, say("start"))
	closed(t, s)
	if n := len(of[event.Paused](events)); n != 1 || p.Child == "" || p.Message != "no more today" || time.Until(p.Until) < 50*time.Minute {
		t.Errorf("paused %d times: %+v", n, p)
	}
	if begun := of[event.Spawned](events); len(begun) != 8 {
		t.Errorf("%d agents were begun, not 8 and one that waits", len(begun))
	}
	again, err := h.host().Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	if events := watched(t, again, nil); len(of[event.Paused](events))+len(of[event.Spawned](events)) > 0 {
		t.Errorf("after a restart: %d times paused, %d begun", len(of[event.Paused](events)), len(of[event.Spawned](events)))
	}
}

// watched drives a session for a while that it spends waiting, or until it stops.
func watched(t *testing.T, s *inspan.Session, on func(e event.Event), inputs ...event.Body) (events []event.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	quiet := time.AfterFunc(5*time.Second, cancel)
	defer quiet.Stop()
	for e, err := range s.Run(ctx, inputs...) {
		quiet.Reset(2 * time.Second)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		if on != nil && err == nil {
			on(e)
		}
		events = append(events, e)
	}
	return events
}

// TestLimitsCountReviewsAndSummaries checks that once a limit is reached neither the reviewer is asked, nor the model
// for a summary.
func TestLimitsCountReviewsAndSummaries(t *testing.T) {
	for limit, reviews := range map[float64]int{0.05: 0, 5: 1} {
		var ran atomic.Int32
		h := newHouse(t, func(_ string, turn int, _ llm.Request) (llm.Parts, error) {
			if turn == 0 {
				return llm.Parts{call("c1", "change", nil)}, nil
			}
			return llm.Say("done"), nil
		}, changing(&ran))
		second := &mind{says: func(string, int, llm.Request) (llm.Parts, error) {
			return llm.Say(`{"verdict":"allow","reason":"fine"}`), nil
		}}
		h.adjust = func(a *inspan.Agent) {
			a.Mode = tool.ModeAuto
			a.Judges = []tool.Judge{&guard.Reviewer{Model: second, Allows: tool.ModeAuto}}
		}
		s := h.open()
		run(t, s, nil, event.Switched{Limits: &event.Limits{Cost: limit}}, say("start"))
		if second.asked != reviews {
			t.Errorf("with a limit of $%v the reviewer was asked %d times", limit, second.asked)
		}
		closed(t, s)
	}
	h := newHouse(t, func(string, int, llm.Request) (llm.Parts, error) {
		return llm.Say("done" + strings.Repeat(" and so on", 8_000)), nil
	})
	h.model.costs = func(req llm.Request) llm.Usage { return llm.Usage{Input: req.Tokens(), Output: 1} }
	s := h.open()
	defer closed(t, s)
	for range 6 {
		run(t, s, nil, say("go on"))
	}
	for _, limit := range []float64{0.05, 50} {
		before := h.model.asked
		events := run(t, s, nil, event.Switched{Limits: &event.Limits{Cost: limit}}, event.Compact{})
		if asked := h.model.asked > before; asked != (limit == 50) {
			t.Errorf("with a limit of $%v the model was asked for a summary: %v; %+v", limit, asked, of[event.Kept](events))
		}
	}
}

// TestPromptsCountBeforehand checks that a request whose prompt alone would go beyond the limit of money is not sent.
func TestPromptsCountBeforehand(t *testing.T) {
	wide := looking(nil)
	wide.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		return tool.Text(strings.Repeat("seen ", 4_000)), nil
	}
	for _, price := range []llm.Price{{Input: 3, Output: 15}, {Input: 30, CacheRead: 3, Output: 15}} {
		h := newHouse(t, func(_ string, turn int, _ llm.Request) (llm.Parts, error) {
			return llm.Parts{call(fmt.Sprint("x", turn), "look", map[string]any{"n": turn})}, nil
		}, wide)
		spent := 0.0
		h.model.price = &price
		h.model.costs = func(req llm.Request) llm.Usage {
			spent += float64(req.Tokens())*3e-6 + 20*15e-6
			return llm.Usage{CacheRead: req.Tokens(), Output: 20}
		}
		if price.CacheRead == 0 {
			h.model.costs = func(req llm.Request) llm.Usage {
				spent += float64(req.Tokens())*3e-6 + 20*15e-6
				return llm.Usage{Input: req.Tokens(), Output: 20}
			}
		}
		s := h.open()
		run(t, s, nil, event.Switched{Limits: &event.Limits{Cost: 0.1}}, say("start"))
		st := s.Status()
		if spent > 0.101 || spent < 0.03 || st.Stopped.Reason != event.ReasonBudget || !strings.Contains(st.Stopped.Detail, "the next request alone costs $0.") {
			t.Errorf("%+v: $%.4f of $0.10 were spent; %+v", price, spent, st.Stopped)
		}
		closed(t, s)
	}
}

// TestUsualRateIsLearned checks that a session whose minutes are dear may spend ten times as much in one as it usually
// does, and no more.
func TestUsualRateIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := looking(nil)
		wait.Run = func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
			return tool.Text("seen"), keep.Sleep(ctx, time.Minute)
		}
		h := newHouse(t, func(task string, turn int, _ llm.Request) (parts llm.Parts, _ error) {
			switch {
			case task != "start":
				return llm.Parts{call(fmt.Sprint("x", turn), "look", map[string]any{"n": turn})}, nil
			case turn < 10:
				return llm.Parts{call(fmt.Sprint("x", turn), "look", map[string]any{"n": turn})}, nil
			}
			for i := range 50 {
				parts = append(parts, spawn(fmt.Sprint("c", i), fmt.Sprint("part ", i)))
			}
			return parts, nil
		}, wait)
		h.usual, h.store = true, &store.Memory{}
		h.model.price = &llm.Price{Output: 2_000_000} // two dollars a reply: a usual minute has one
		s := h.open()
		defer closed(t, s)
		run(t, s, nil, say("start"))
		if st := s.Status(); st.Stopped.Reason != event.ReasonRate || !strings.Contains(st.Stopped.Detail, "of at most $20.00") {
			t.Errorf("%+v", st.Stopped)
		}
	})
}
