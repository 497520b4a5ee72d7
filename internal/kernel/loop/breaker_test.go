package loop_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

func tooFast() event.Body {
	return event.Cancelled{By: loop.By, Reason: "$12 within a minute", Limit: event.ReasonRate, All: true, Rate: &event.Rate{Cost: 12}}
}

// TestBrake checks that a run that has used too much stops for that reason, that its calls learn of it, that messages
// sent meanwhile do not begin another run, and that the next run continues.
func TestBrake(t *testing.T) {
	tp := roomy(t, 100_000, event.Levers{}.Stated())
	tp.add(event.Asked{Turn: 1}, unmeasured(llm.StopCalls, call("c1", "look")), said("And then the other."), tooFast())
	end, is := tp.Next().(loop.End)
	if !is || !strings.Contains(end.Ended[0].Parts.Text(), "spent too much within a minute") {
		t.Fatalf("%s, %+v", tp.next(), end)
	}
	tp.add(end.Ended[0])
	stop, is := tp.Next().(loop.Stop)
	if !is || stop.Stopped.Reason != event.ReasonRate || stop.Stopped.Detail != "$12 within a minute" {
		t.Fatalf("%+v", stop)
	}
	tp.add(stop.Stopped)
	if tp.Run.Active || len(tp.Queue) != 1 || tp.BreakerRate.Cost != 12 {
		t.Errorf("it goes on: %v, %d wait, at %v", tp.Run.Active, len(tp.Queue), tp.BreakerRate)
	}
	tp.add(tooFast(), event.Said{})
	tp.want("ask")
	if tp.Run.BreakerReason != "" {
		t.Errorf("the run after it is stopped, too: %s", tp.Run.BreakerReason)
	}
}

// TestPause checks that a pause puts off the next request, also over a reply that was under way and over a snapshot,
// and that neither an earlier end of another wait nor a new run is held up by it.
func TestPause(t *testing.T) {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tp := roomy(t, 100_000, event.Levers{}.Stated())
	tp.add(event.Asked{Turn: 1}, event.Paused{Until: until, Cause: llm.KindQuota}, event.Failed{Cause: llm.KindTransient, Retry: 1},
		unmeasured(llm.StopCalls, call("c1", "look")), allowed("c1"), event.Started{Call: "c1"}, ended("c1", "ok"))
	raw, err := tp.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var again loop.State
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*loop.State{tp.State, &again} {
		if ask, is := s.Next().(loop.Ask); !is || !ask.NotBefore.Equal(until) || ask.WaitCause != llm.KindQuota {
			t.Errorf("%+v", s.Next())
		}
	}
	tp.add(event.Cancelled{}, event.Stopped{Reason: event.ReasonCancelled}, event.Said{})
	if ask, is := tp.Next().(loop.Ask); !is || !ask.NotBefore.IsZero() {
		t.Errorf("%+v", tp.Next())
	}
}
