package journeys_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// mover is a tool that would change the file named in its call; one whose name ends in moves would change another place
// in each mode.
func mover(ran *[]string) tool.Tool {
	put := writer(ran)
	first := put.Effects
	put.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
		list, err := first(ctx, c)
		if len(list) == 1 && strings.HasSuffix(list[0].Path, "/moves") {
			list[0].Path += "-" + string(c.Mode)
		}
		return list, err
	}
	return put
}

// decisions are those in a log.
func decisions(events []event.Event) (out []event.Decided) {
	for _, e := range events {
		if d, ok := e.Body.(event.Decided); ok {
			out = append(out, d)
		}
	}
	return out
}

// TestModeAnswersQuestions checks that a mode which is switched to while questions are open answers those calls that
// run unasked in it, by itself, and no others.
func TestModeAnswersQuestions(t *testing.T) {
	calls := []string{`{"path":"a"}`, `{"path":"../srv/x"}`, `{"path":".vscode/tasks.json"}`, `{"path":"moves"}`}
	for _, tc := range []struct {
		mode tool.Mode
		runs []string // of the calls
		left int
	}{
		{tool.ModeEdit, []string{"a"}, 3},
		{tool.ModeAuto, []string{"a"}, 3},
		{tool.ModeYolo, []string{"../srv/x", ".vscode/tasks.json", "a"}, 1},
		{tool.ModePlan, nil, 4},
		{tool.ModeAsk, nil, 4},
	} {
		t.Run(string(tc.mode), func(t *testing.T) {
			var ran []string
			lines := ""
			for _, args := range calls {
				lines += "call: put " + args + "\n"
			}
			a := inspan.Agent{Model: scripted(t, lines, "Done."), Tools: []tool.Tool{mover(&ran)}, Env: tool.Env{Root: "/w"}}
			log := event.NewMemory("m")
			s := open(t, &a, log)
			collect(t, s.Run(t.Context(), event.Say("go")))
			if n := len(s.Status().Waiting); n != len(calls) {
				t.Fatalf("%d calls wait", n)
			}
			s = open(t, &a, log) // also over a restart
			events := collect(t, s.Run(t.Context(), event.Switched{Mode: tc.mode}))
			slices.Sort(ran) // they run side by side
			if !slices.Equal(ran, tc.runs) || len(s.Status().Waiting) != tc.left {
				t.Errorf("ran %q, %d wait", ran, len(s.Status().Waiting))
			}
			got := decisions(events)
			for _, d := range got {
				if !d.Allow || d.Rule != "mode "+string(tc.mode) || d.By != "the user" || d.Scope != event.ScopeOnce || d.Question == 0 {
					t.Errorf("%+v", d)
				}
			}
			if len(got) != len(tc.runs) {
				t.Errorf("%d decisions", len(got))
			}
		})
	}
}

// TestModeAnswersASet checks that a mode answers those calls of a set that run unasked in it, and that the rest is
// asked about as before.
func TestModeAnswersASet(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.at("note", tool.Write), l.at("get", tool.Network), looping("note a", "get b", "note c", "get d")},
	}
	log := event.NewMemory("m")
	collect(t, open(t, a, log).Run(t.Context(), said("go")))
	s := open(t, a, log)
	if !s.Status().OnlyWaits || len(s.Status().Waiting) != 4 {
		t.Fatalf("%+v", s.Status())
	}
	got := decisions(collect(t, s.Run(t.Context(), event.Switched{Mode: tool.ModeEdit})))
	sets := inspan.Sets(s.Status().Questions())
	if len(got) != 2 || !slices.Equal(l.runs, []string{"note a"}) || len(sets) != 1 || len(sets[0].Set) != 2 || !s.Status().OnlyWaits {
		t.Fatalf("decided %+v, ran %q, waiting %+v", got, l.runs, sets)
	}
	collect(t, s.Run(t.Context(), event.Switched{Mode: tool.ModeYolo}))
	if !slices.Equal(l.runs, []string{"note a", "get b", "note c", "get d"}) || s.Status().Stopped == nil {
		t.Errorf("ran %q", l.runs)
	}
}

// TestRulesHoldInAnotherMode checks that a rule which asks or denies is not answered by a mode.
func TestRulesHoldInAnotherMode(t *testing.T) {
	for _, action := range []tool.Action{tool.Ask, tool.Deny} {
		var ran []string
		a := inspan.Agent{Model: scripted(t, `call: put {"path":"a"}`, "Done."), Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"}}
		log := event.NewMemory("m")
		collect(t, open(t, &a, log).Run(t.Context(), event.Say("go")))
		a.Rules = []inspan.Rule{{Action: action, Text: "write(a)", Scope: "user"}} // since then
		s := open(t, &a, log)
		if events := collect(t, s.Run(t.Context(), event.Switched{Mode: tool.ModeEdit})); len(decisions(events)) > 0 || len(ran) > 0 {
			t.Errorf("%s: %+v, ran %q", action, decisions(events), ran)
		}
	}
}

// TestConductorTakesAModeUp checks that a run which waits for answers takes a mode up at once, and that the questions
// it does not answer stay open.
func TestConductorTakesAModeUp(t *testing.T) {
	for _, together := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var ran []string
			a := &inspan.Agent{
				Model: scripted(t, `call: put {"path":"a"}`+"\n"+`call: put {"path":"../srv/x"}`, "Done."),
				Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"},
			}
			c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s")), AnswerWait: -1, AskConcurrently: together}
			var mode []event.Body
			c.BeforeRun = func() []event.Body { now := mode; mode = nil; return now }
			var taken []error
			if together {
				c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
					<-ctx.Done()
					taken = append(taken, fmt.Errorf("%s: %w", p.Call.Args, context.Cause(ctx)))
					return nil, ctx.Err()
				}
			}
			done := make(chan error)
			go func() { done <- c.Run(t.Context(), said("go")) }()
			synctest.Wait()
			mode = []event.Body{event.Switched{Mode: tool.ModeEdit}}
			c.Rerun()
			synctest.Wait()
			w := c.Session.Status().Waiting
			if !slices.Equal(ran, []string{"a"}) || len(w) != 1 || len(taken) > 1 || together != (len(taken) == 1) {
				t.Fatalf("together %v: ran %q, waiting %+v, taken back %v", together, ran, w, taken)
			}
			if _, err := c.Send(t.Context(), event.Decided{Call: w[0].Call.ID, Question: w[0].Question, Allow: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			c.Rerun() // at no question
			if err := <-done; err != nil || len(ran) != 2 || c.Session.Status().Stopped == nil {
				t.Errorf("ran %q, %+v, %v", ran, c.Session.Status(), err)
			}
		})
	}
}

// TestEditsForASession checks that an approval of all edits covers them in this session, even after a restart, and
// neither other places nor other sessions.
func TestEditsForASession(t *testing.T) {
	var ran, kept []string
	a := inspan.Agent{
		Model: scripted(t, `call: put {"path":"a"}`, `call: put {"path":"b/c"}`, `call: put {"path":".vscode/tasks.json"}`, "Done."),
		Tools: []tool.Tool{writer(&ran)}, Env: tool.Env{Root: "/w"},
		Approvals: inspan.Approvals{Remember: func(_ context.Context, _ event.Scope, rules []string) error {
			kept = append(kept, rules...)
			return nil
		}},
	}
	log := event.NewMemory("m")
	s := open(t, &a, log)
	collect(t, s.Run(t.Context(), event.Say("go")))
	w := s.Status().Waiting
	if len(w) != 1 || len(w[0].Offers) != 1 || w[0].Offers[0].Reach != event.ReachEdits {
		t.Fatalf("waiting %+v", w)
	}
	s = open(t, &a, log)
	collect(t, s.Run(t.Context(), event.Decided{Call: w[0].Call.ID, Allow: true, Scope: event.ScopeSession, Reach: event.ReachEdits}))
	if w = s.Status().Waiting; !slices.Equal(ran, []string{"a", "b/c"}) || len(w) != 1 || len(w[0].Offers) != 0 || kept != nil {
		t.Errorf("ran %q, waiting %+v, kept %q", ran, w, kept)
	}
	if got := s.Status().Granted; !slices.Equal(got, []string{"edits"}) {
		t.Errorf("granted %q", got)
	}
}
