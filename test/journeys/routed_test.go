package journeys_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/tool"
)

// weak is a model that makes a call that fails, as often as it is asked, where it is to repair something.
type weak struct{ window int }

func (w weak) Info() llm.Info {
	return llm.Info{Provider: "desk", Model: "weak", Window: w.window, MaxOutput: 1000}
}

func (w weak) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	v := &vendor{}
	said := ""
	for _, m := range req.Messages {
		if t := m.Parts.Text(); m.Role == llm.User && t != "" {
			said = t
		}
	}
	v.answers = []answer{{reply: llm.Reply{Route: "desk/weak", Stop: llm.StopEnd, Parts: llm.Say("Nothing to do.")}}}
	if strings.HasPrefix(said, "Mend") && req.Purpose == "" {
		v.answers[0].reply.Stop, v.answers[0].reply.Parts = llm.StopCalls, llm.Parts{llm.Call{ID: "c" + strconv.Itoa(len(req.Messages)), Name: "fail", Args: []byte("{}")}}
	}
	return v.Stream(ctx, req)
}

// strong is a model that is done at once.
type strong struct {
	vendor
	window int
}

func (s *strong) Info() llm.Info {
	return llm.Info{Provider: "far", Model: "strong", Window: s.window, MaxOutput: 1000, Prices: llm.Prices{{Input: 3, Output: 15}}}
}

func (s *strong) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	s.answers = append(s.answers, make([]answer, len(s.requests)+1-len(s.answers))...)
	s.answers[len(s.requests)].reply.Route = "far/strong"
	return s.vendor.Stream(ctx, req)
}

// routing is an agent whose tool fails, after a router of both.
func routing(w weak, s *strong) (*inspan.Agent, *router.Model) {
	m := &router.Model{
		ID:     "auto",
		Routes: []router.Route{{Name: "local", Model: w, Local: true}, {Name: "cloud", Model: s}},
		Rules: []router.Rule{
			{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud", "local"}},
			{Name: "easy", Use: []string{"local", "cloud"}},
		},
		Begin: "local",
	}
	fail := tool.New("fail", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{}, errors.New("no luck")
	})
	fail.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return nil, nil }
	return &inspan.Agent{Model: m, Tools: []tool.Tool{fail}, Unattended: true}, m
}

// answered are the routes that have answered, in order.
func answered(events []event.Event) (routes []string) {
	for _, e := range events {
		if r, ok := e.Body.(event.Replied); ok {
			routes = append(routes, r.Route)
		}
	}
	return routes
}

// TestRoutedByEvidence checks that a run without progress moves to the other model, that the next task begins anew, and
// that the log alone decides: a router that has seen nothing makes the same choice.
func TestRoutedByEvidence(t *testing.T) {
	log := event.NewMemory("s")
	a, _ := routing(weak{window: 100_000}, &strong{window: 100_000})
	s := open(t, a, log)
	got := collect(t, s.Run(t.Context(), event.Say("Mend it")))
	if want := []string{"desk/weak", "desk/weak", "desk/weak", "far/strong"}; !slices.Equal(answered(got), want) {
		t.Errorf("answered %q, want %q", answered(got), want)
	}
	if r := last[event.Routed](t, got); !strings.HasPrefix(r.Reason, "taken over from local: 3 calls or checks failed since a check succeeded;") {
		t.Errorf("the reason is %q", r.Reason)
	}
	if got := answered(collect(t, s.Run(t.Context(), event.Say("Thank you")))); !slices.Equal(got, []string{"desk/weak"}) {
		t.Errorf("the next task goes to %q", got)
	}
	var state loop.State
	decided := 0
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Body.(event.Routed); ok {
			_, m := routing(weak{window: 100_000}, &strong{window: 100_000})
			d := m.Decide(m.Features(state.Request()), router.View{})
			if route := map[string]string{"local": "desk/weak", "cloud": "far/strong"}[d.Use[0]]; route != r.Route || d.String() != r.Reason {
				t.Errorf("event %d: %s, %s; again %s, %s", e.Seq, r.Route, r.Reason, route, d)
			}
			decided++
		}
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if decided != 5 {
		t.Errorf("%d decisions", decided)
	}
}

// TestRoutedToASmallerWindow checks that the conversation is cut to fit the model that takes over.
func TestRoutedToASmallerWindow(t *testing.T) {
	big := &strong{window: 12_000}
	a, _ := routing(weak{window: 100_000}, big)
	s := open(t, a, event.NewMemory("s"))
	for range 6 {
		collect(t, s.Run(t.Context(), event.Say(strings.Repeat("It goes on and on. ", 600))))
	}
	if len(big.requests) > 0 {
		t.Fatal("asked before")
	}
	got := collect(t, s.Run(t.Context(), event.Say("Mend it")))
	if st := last[event.Stopped](t, got); st.Reason != event.ReasonDone || len(big.requests) != 1 || big.requests[0].Tokens() > 12_000 {
		t.Errorf("%+v after %d requests", st, len(big.requests))
	}
	last[event.Compacted](t, got)
}

// TestJudgedOnce checks that the log keeps a judge's verdict on a task as long as it applies.
func TestJudgedOnce(t *testing.T) {
	var state loop.State
	for i, tt := range []struct {
		body event.Body
		want string
	}{
		{event.Say("Mend it"), ""},
		{event.Routed{Route: "a/b", Judge: "c/d", Judged: "hard"}, "hard"},
		{event.Failed{Cause: llm.KindOverloaded}, "hard"},
		{event.Stopped{Reason: event.ReasonFailed}, "hard"},
		{event.Say("And that"), ""},
	} {
		if err := state.Apply(event.Event{Seq: uint64(i + 1), Session: "s", Body: tt.body}); err != nil {
			t.Fatal(err)
		}
		if got := state.Request().Work.Judged; got != tt.want {
			t.Errorf("after %T it is %q, want %q", tt.body, got, tt.want)
		}
	}
}
