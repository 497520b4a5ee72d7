package journeys_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// polite is a tool that asks twice while it runs.
func polite() tool.Tool {
	t := tool.New("polite", "asks", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		if c.Ask == nil {
			return tool.Text("nobody is there to answer"), nil
		}
		var said []string
		for _, q := range []string{"which bird?", "sure?"} {
			answer, err := c.Ask(ctx, q, []string{"heron", "egret"})
			if err != nil {
				return tool.Result{}, err
			}
			said = append(said, fmt.Sprintf("%q", answer))
		}
		return tool.Text(strings.Join(said, " ")), nil
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External, Text: "ask"}}, nil
	}
	return t
}

func politely(t *testing.T, change func(*inspan.Agent)) (*inspan.Session, *event.Memory) {
	t.Helper()
	a := inspan.Agent{Model: scripted(t, `call: polite {}`, "done"), Tools: []tool.Tool{polite()}, Mode: "yolo", Env: tool.Env{Root: "/w"}}
	if change != nil {
		change(&a)
	}
	log := event.NewMemory("s")
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// TestAskWhileRunning checks that a running call gets the person's answer, and that nothing of a question remains once
// the call has ended.
func TestAskWhileRunning(t *testing.T) {
	s, _ := politely(t, nil)
	answers := []event.Decided{{Allow: true, Answer: "a kingfisher"}, {Reason: "no"}}
	var ended []event.Ended
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Raised:
			p := inspan.PendingOf(inspan.Question{Raised: b, Seq: e.Seq})
			if raised := s.Status().Raised; len(raised) != 1 || !p.IsQuestion || p.Agent != "polite" || b.Child != "" ||
				!strings.HasPrefix(p.Preview, "which bird?\n1. heron") && !strings.HasPrefix(p.Preview, "sure?") {
				t.Fatalf("raised: %+v", raised)
			}
			d := answers[0]
			answers, d.Call = answers[1:], b.ID
			if err := s.Send(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		case event.Ended:
			ended = append(ended, b)
		}
	}
	if len(ended) != 1 || !strings.Contains(ended[0].Parts.Text(), "\"a kingfisher\" \"\"") || len(s.Status().Raised) > 0 {
		t.Errorf("%+v, %+v", ended, s.Status().Raised)
	}
}

func TestAskNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*inspan.Agent)
		want   string
	}{
		"unattended": {func(a *inspan.Agent) { a.Unattended = true }, "nobody is there to answer"},
		"too late":   {func(a *inspan.Agent) { a.Approvals.Timeout = time.Millisecond }, `"" ""`},
	} {
		s, _ := politely(t, tc.change)
		ended := bodiesOf[event.Ended](drivenTo(t, s, said("go")))
		if len(ended) != 1 || !strings.Contains(ended[0].Parts.Text(), tc.want) || len(s.Status().Raised) > 0 {
			t.Errorf("%s: %+v, %+v", name, ended, s.Status().Raised)
		}
	}
}

// TestAskInterrupted checks that an interrupt ends a call that waits for an answer, and that a question whose program
// is gone is not asked any more.
func TestAskInterrupted(t *testing.T) {
	s, _ := politely(t, nil)
	var last event.Ended
	for e, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Raised:
			if err := s.Send(t.Context(), event.Cancelled{By: "ann"}); err != nil {
				t.Fatal(err)
			}
		case event.Ended:
			last = b
		}
	}
	if last.Outcome != event.OutcomeCancelled || len(s.Status().Raised) > 0 {
		t.Errorf("%+v, %+v", last, s.Status().Raised)
	}

	s, log := politely(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range s.Run(ctx, said("go")) {
		if err != nil {
			break // by us
		}
		if _, ok := e.Body.(event.Raised); ok {
			cancel()
		}
	}
	a := inspan.Agent{Model: scripted(t, "done"), Tools: []tool.Tool{polite()}, Mode: "yolo", Env: tool.Env{Root: "/w"}}
	again, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	drivenTo(t, again, event.Steered{Origin: event.OriginPerson, Parts: llm.Say("and?")})
	if left := again.Status().Raised; len(left) > 0 {
		t.Errorf("%+v", left)
	}
}

// TestInterruptBeforeCallsBegin checks that an interrupt counts that comes when the calls are decided on and none has
// begun.
func TestInterruptBeforeCallsBegin(t *testing.T) {
	var s *inspan.Session
	began := false
	slow := tool.New("slow", "takes long", func(ctx context.Context, _ *tool.Call, _ struct{}) (tool.Result, error) {
		began = true
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	a := inspan.Agent{
		Model: scripted(t, `call: slow {}`, "done"), Tools: []tool.Tool{slow}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Workspace: inspan.Workspace{Checkpoint: func(ctx context.Context) (event.Checkpoint, error) {
			if began {
				return event.Checkpoint{}, nil
			}
			return event.Checkpoint{}, s.Send(ctx, event.Cancelled{By: "ann"})
		}},
	}
	var err error
	if s, err = a.Open(t.Context(), event.NewMemory("s")); err != nil {
		t.Fatal(err)
	}
	drivenTo(t, s, said("go"))
	if st := s.Status().Stopped; st == nil || st.Reason != event.ReasonCancelled {
		t.Errorf("%+v", st)
	}
}
