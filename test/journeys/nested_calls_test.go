package journeys_test

// Calls that a call makes while it runs.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// inTurn makes calls one after the other, and returns their results.
func inTurn(words ...string) tool.Tool {
	return recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		var out []string
		for _, w := range words {
			text, err := do("note", w)
			if err != nil {
				return strings.Join(out, ", "), err
			}
			out = append(out, text)
		}
		return strings.Join(out, ", "), nil
	})
}

// TestCallsWithinCalls checks that a call made by another is judged, stored and run like a call of the model, and that
// the model sees only the result of its own call.
func TestCallsWithinCalls(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.writer(), inTurn("a", "b")},
	}
	s := open(t, a, event.NewMemory("s"))
	events := collect(t, s.Run(t.Context(), said("go")))
	id := last[event.Ended](t, events).Call
	got := strings.ReplaceAll(of(events), id, "c")
	want := "judged c<; started c<; judged c/1<c; started c/1<c; ok c/1<c; judged c/2<c; started c/2<c; ok c/2<c; ok c<"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(l.runs, []string{"note a", "note b"}) {
		t.Errorf("ran %q", l.runs)
	}
	if text := last[event.Ended](t, events).Parts.Text(); text != "noted a, noted b" {
		t.Errorf("brought %q", text)
	}
	for _, e := range events {
		if j, ok := e.Body.(event.Judged); ok && j.Parent != "" && (j.Tool != "note" || j.Args == nil || len(j.Effects) != 1) {
			t.Errorf("judged %+v", j)
		}
	}
	if st := s.Status(); st.Calls != 3 || len(st.OpenCalls) > 0 {
		t.Errorf("status: %d calls, open %v", st.Calls, st.OpenCalls)
	}
}

// TestCallsWithinCallsAreJudged checks that no nested call runs that would not have run alone: rules, modes and unknown
// tools count for it, and the outer call learns of it.
func TestCallsWithinCallsAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		call, mode, outcome, says string
		rules                     []inspan.Rule
	}{
		"a rule":         {"note", "yolo", "denied", "Denied by", []inspan.Rule{{Action: tool.Deny, Text: "note"}}},
		"a mode":         {"note", "plan", "denied", "plan", nil},
		"nobody there":   {"note", "ask", "denied", "nobody is here", nil},
		"no such tool":   {"nothing", "yolo", "invalid", `There is no tool "nothing"`, nil},
		"makes no calls": {"lone", "yolo", "failed", "no Do", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			lone := tool.New("lone", "", func(_ context.Context, c *tool.Call, _ wordArgs) (tool.Result, error) {
				if c.Do == nil {
					return tool.Result{}, errors.New("no Do")
				}
				return tool.Text("has Do"), nil
			})
			lone.Effects = tool.NoEffects
			var failed *tool.CallError
			r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
				_, err := do(tc.call, "a")
				errors.As(err, &failed)
				return "went on", nil
			})
			a := &inspan.Agent{
				Model: scripted(t, oneRecipe, "Done."), Mode: tool.Mode(tc.mode), Env: tool.Env{Root: "/w"}, Rules: tc.rules, Unattended: true,
				Tools: []tool.Tool{l.writer(), lone, r},
			}
			events := collect(t, a.Run(t.Context(), "go"))
			if failed == nil || failed.Outcome != tc.outcome || !strings.Contains(failed.Text, tc.says) {
				t.Fatalf("%+v", failed)
			}
			if len(l.runs) > 0 || last[event.Ended](t, events).Parts.Text() != "went on" {
				t.Errorf("ran %q; %s", l.runs, last[event.Ended](t, events).Parts.Text())
			}
		})
	}
}

// TestCallsWithinCallsAreOrdered checks that parallel nested calls run in parallel, unless they conflict.
func TestCallsWithinCallsAreOrdered(t *testing.T) {
	both := make(chan string, 2)
	meet := tool.New("meet", "", func(ctx context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		both <- in.Word
		for len(both) < 2 {
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			default:
			}
		}
		return tool.Text(in.Word), nil
	})
	meet.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Network, Text: "example.com"}}, nil
	}
	var mu sync.Mutex
	busy, met := 0, false
	alone := tool.New("alone", "", func(context.Context, *tool.Call, wordArgs) (tool.Result, error) {
		mu.Lock()
		busy++
		met = met || busy > 1
		mu.Unlock()
		defer func() { mu.Lock(); busy--; mu.Unlock() }()
		return tool.Text("ok"), nil
	})
	alone.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{writes("/w/a")}, nil }
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		var all sync.WaitGroup
		errs := make([]error, 6)
		for i, name := range []string{"meet", "meet", "alone", "alone", "alone", "alone"} {
			all.Go(func() { _, errs[i] = do(name, fmt.Sprint(i)) })
		}
		all.Wait()
		return "ok", errors.Join(errs...)
	})
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{meet, alone, r}, Limits: inspan.Limits{Parallel: 2},
	}
	events := collect(t, a.Run(t.Context(), "go"))
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeOK || !end.Untrusted || met {
		t.Errorf("ended %s %q, untrusted %t, calls that conflict met: %t", end.Outcome, end.Parts.Text(), end.Untrusted, met)
	}
}

// TestCallsWithinCallsWait checks that a nested call that waits for a person survives its driver: the outer call runs
// again, and gets the results of its earlier calls.
func TestCallsWithinCallsWait(t *testing.T) {
	l := &ledger{}
	ask := l.tool("pay", tool.Effect{Kind: tool.External, Text: "the bank"})
	began := 0
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		began++
		first, err1 := do("note", "a")
		second, err2 := do("pay", first)
		third, err3 := do("note", second)
		return third, errors.Join(err1, err2, err3)
	})
	log := event.NewMemory("s")
	agent := func() *inspan.Agent {
		return &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), ask, r},
		}
	}
	s := open(t, agent(), log)
	collect(t, s.Run(t.Context(), said("go")))
	waiting := s.Status().Waiting
	if len(waiting) != 1 || waiting[0].Call.Name != "pay" || string(waiting[0].Call.Args) != `{"word":"noted a"}` {
		t.Fatalf("waits: %+v", waiting)
	}
	again := agent()
	again.Model = scripted(t, "Done.")
	s2 := open(t, again, log) // another process
	events := collect(t, s2.Run(t.Context(), event.Decided{Call: waiting[0].Call.ID, Allow: true, By: "me"}))
	if want := []string{"note a", "pay noted a", "note noted noted a"}; !slices.Equal(l.runs, want) || began != 2 {
		t.Errorf("ran %q, the recipe %d times", l.runs, began)
	}
	if end := last[event.Ended](t, events); !strings.Contains(end.Parts.Text(), "\nnoted noted noted a\n") { // marked, because the bank has answered
		t.Errorf("brought %q", end.Parts.Text())
	}
	if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone {
		t.Errorf("stopped as %s", r)
	}
}

// TestCallsWithinCallsAreAsked checks that a conductor puts their questions like others.
func TestCallsWithinCallsAreAsked(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Tools: []tool.Tool{l.writer(), inTurn("a", "b")}, Env: tool.Env{Root: "/w"}}
	var asked []string
	c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
	c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
		asked = append(asked, string(p.Call.Args))
		return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: len(asked) == 1, By: "me"}, nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(asked, []string{`{"word":"a"}`, `{"word":"b"}`}) || !slices.Equal(l.runs, []string{"note a"}) {
		t.Errorf("asked %q, ran %q", asked, l.runs)
	}
}

// TestCallsWithinCallsAreInterrupted checks that an interrupt reaches nested calls, and that the model learns which of
// them had run.
func TestCallsWithinCallsAreInterrupted(t *testing.T) {
	l := &ledger{}
	started := make(chan bool, 1)
	hang := tool.New("hang", "", func(ctx context.Context, _ *tool.Call, _ wordArgs) (tool.Result, error) {
		started <- true
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	hang.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{writes("/w/b")}, nil }
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		_, err1 := do("note", "a")
		_, err2 := do("hang", "b")
		_, err3 := do("note", "c")
		return "", errors.Join(err1, err2, err3)
	})
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), hang, r},
	}
	s := open(t, a, event.NewMemory("s"))
	go func() {
		<-started
		if err := s.Send(context.Background(), event.Cancelled{}); err != nil {
			t.Error(err)
		}
	}()
	events := collect(t, s.Run(t.Context(), said("go")))
	end := last[event.Ended](t, events)
	if end.Outcome != event.OutcomeCancelled || !strings.Contains(end.Parts.Text(), `- note {"word":"a"}: ok`) ||
		!strings.Contains(end.Parts.Text(), `- hang {"word":"b"}: cancelled`) || len(l.runs) != 1 {
		t.Errorf("ended %s: %s; ran %q", end.Outcome, end.Parts.Text(), l.runs)
	}
	if r := last[event.Stopped](t, events).Reason; r != event.ReasonCancelled {
		t.Errorf("stopped as %s", r)
	}
}

// TestCallsWithinCallsEndFirst checks that no call is left open by one that returns without it.
func TestCallsWithinCallsEndFirst(t *testing.T) {
	l := &ledger{}
	hang := tool.New("hang", "", func(ctx context.Context, _ *tool.Call, _ wordArgs) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	hang.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{writes("/w/a")}, nil }
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		for name, word := range map[string]string{"hang": "a", "note": "b"} { // of which one waits for its turn
			go func() { _, _ = do(name, word) }()
		}
		_, err := do("look", "c")
		return "left", err
	})
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.writer(), l.tool("look", tool.Effect{Kind: tool.Read, Path: "/w/z"}), hang, r},
	}
	events := collect(t, a.Run(t.Context(), "go"))
	open := map[string]bool{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Judged:
			open[b.Call] = true
		case event.Ended:
			if delete(open, b.Call); b.Parent == "" && len(open) > 0 {
				t.Errorf("its calls end behind it: %v", open)
			}
		}
	}
	if end := last[event.Ended](t, events); end.Parts.Text() != "left" {
		t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
	}
}

// TestCallsThatDiverge checks that a tool which does not repeat itself is stopped, and named.
func TestCallsThatDiverge(t *testing.T) {
	l := &ledger{}
	ask := l.tool("pay", tool.Effect{Kind: tool.External, Text: "the bank"})
	began := 0
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		began++
		_, err1 := do("note", fmt.Sprint("try ", began))
		_, err2 := do("pay", "b")
		return "paid", errors.Join(err1, err2)
	})
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), ask, r}}
	s := open(t, a, event.NewMemory("s"))
	collect(t, s.Run(t.Context(), said("go")))
	w := s.Status().Waiting[0]
	events := collect(t, s.Run(t.Context(), event.Decided{Call: w.Call.ID, Allow: true, By: "me"}))
	end := last[event.Ended](t, events)
	if text := end.Parts.Text(); end.Outcome != event.OutcomeFailed ||
		!strings.Contains(text, `it has left out the call note {"word":"try 1"}`) || end.Class != fault.ErrorDiverged {
		t.Errorf("ended %s: %s", end.Outcome, text)
	}
}

// TestCallsThatAreLeftOut checks the error about a tool that, when run again, no longer makes the allowed call: it
// names the tool, and the model learns what became of the call.
func TestCallsThatAreLeftOut(t *testing.T) {
	l := &ledger{}
	ask := l.tool("pay", tool.Effect{Kind: tool.External, Text: "the bank"})
	began := 0
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		if began++; began == 1 {
			return do("pay", "b")
		}
		return "never mind", nil
	})
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{ask, r}}
	s := open(t, a, event.NewMemory("s"))
	collect(t, s.Run(t.Context(), said("go")))
	w := s.Status().Waiting[0]
	events := collect(t, s.Run(t.Context(), event.Decided{Call: w.Call.ID, Allow: true, By: "me"}))
	end := last[event.Ended](t, events)
	if text := end.Parts.Text(); end.Class != fault.ErrorDiverged || !strings.Contains(text, `it has left out the call pay {"word":"b"}`) ||
		!strings.Contains(text, `- pay {"word":"b"}: `) {
		t.Errorf("ended %s %q: %s", end.Outcome, end.Class, text)
	}
}

// TestCallsSideBySideWait checks that calls which a tool makes side by side are known again in whatever order they
// come, and that each question is put once and each call runs once.
func TestCallsSideBySideWait(t *testing.T) {
	for range 20 {
		l := &ledger{}
		ask := l.tool("pay", tool.Effect{Kind: tool.External, Text: "the bank"})
		r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
			var all sync.WaitGroup
			errs := make([]error, 5)
			for i := range errs {
				all.Go(func() { _, errs[i] = do("pay", fmt.Sprint(i/2)) }) // some of them twice
			}
			all.Wait()
			return "paid", errors.Join(errs...)
		})
		a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{ask, r}}
		asked := 0
		c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
		c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
			asked++
			return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, By: "me"}, nil
		}
		var end event.Ended
		c.OnEvent = func(e event.Event) error {
			if b, ok := e.Body.(event.Ended); ok {
				end = b
			}
			return nil
		}
		if err := c.Run(t.Context(), said("go")); err != nil {
			t.Fatal(err)
		}
		if asked != 5 || len(l.runs) != 5 || end.Outcome != event.OutcomeOK {
			t.Fatalf("asked %d times, ran %q, ended %s: %s", asked, l.runs, end.Outcome, end.Parts.Text())
		}
	}
}

// TestHooksOfCallersRunOnce checks that a hook hears of the end of a call that makes others once.
func TestHooksOfCallersRunOnce(t *testing.T) {
	l := &ledger{}
	ask := l.tool("pay", tool.Effect{Kind: tool.External, Text: "the bank"})
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		return do("pay", "b")
	})
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){}}
	var ends []string
	h.say[tool.AfterCall] = func(p tool.Point) (tool.Outcome, error) {
		ends = append(ends, p.Call.Name)
		return tool.Outcome{}, nil
	}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{ask, r}, Hooks: []tool.Hook{h},
	}
	s := open(t, a, event.NewMemory("s"))
	collect(t, s.Run(t.Context(), said("go")))
	collect(t, s.Run(t.Context(), event.Decided{Call: s.Status().Waiting[0].Call.ID, Allow: true, By: "me"}))
	if !slices.Equal(ends, []string{"pay", "recipe"}) {
		t.Errorf("ends of %q", ends)
	}
}

// TestCallsWithinCallsKeepSecrets checks that a secret that a tool passes on is stored and judged as its placeholder.
func TestCallsWithinCallsKeepSecrets(t *testing.T) {
	l := &ledger{}
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		return do("note", "hunterzq77wkk31vx")
	})
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), r},
		Secrets: inspan.Secrets{Values: func() map[string]string { return map[string]string{"DEPLOY_TOKEN": "hunterzq77wkk31vx"} }},
	}
	for _, e := range collect(t, a.Run(t.Context(), "go")) {
		raw, err := event.Encode(e)
		if err != nil || strings.Contains(string(raw), "hunterzq") {
			t.Errorf("%s %v", raw, err)
		}
	}
	if !slices.Equal(l.runs, []string{"note hunterzq77wkk31vx"}) {
		t.Errorf("ran %q", l.runs)
	}
}

// TestKilledWithinCalls checks that nothing which ended runs twice, and every call ends once, wherever between two
// events the program dies.
func TestKilledWithinCalls(t *testing.T) {
	build := func(l *ledger) *inspan.Agent {
		inner := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
			return do("note", "deep")
		})
		inner.Name = "inner"
		r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
			first, err := do("look", "a")
			if err != nil {
				return "", err
			}
			for _, next := range []string{"note", "inner", "note"} {
				var failed *tool.CallError
				if first, err = do(next, first); err != nil && !errors.As(err, &failed) {
					return "", err
				}
			}
			return first, nil
		})
		inner.Schema = l.writer().Schema
		return &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done.", "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), l.reader(), inner, r},
		}
	}
	first := event.NewMemory("s")
	collect(t, open(t, build(&ledger{}), first).Run(t.Context(), said("go")))
	whole := collect(t, first.Read(t.Context(), 0))
	for cut := range whole {
		l := &ledger{}
		log, ran := replayed(t, whole[:cut+1])
		a := build(l)
		if answered := slices.ContainsFunc(whole[:cut+1], func(e event.Event) bool { return e.Body.Kind() == "replied" }); answered {
			a.Model = scripted(t, "Done.")
		}
		s := open(t, a, log)
		events := collect(t, s.Run(t.Context()))
		if said := slices.ContainsFunc(whole[:cut+1], func(e event.Event) bool { return e.Body.Kind() == "said" }); !said ||
			whole[cut].Body.Kind() == "stopped" {
			continue
		}
		if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone {
			t.Errorf("cut at %d %s: stopped as %s", cut, whole[cut].Body.Kind(), r)
		}
		ends, all := map[string]int{}, collect(t, log.Read(t.Context(), 0))
		for _, e := range all {
			if b, ok := e.Body.(event.Ended); ok {
				ends[b.Call]++
			}
		}
		for id, n := range ends {
			if n != 1 {
				t.Errorf("cut at %d: %s ended %d times: %s", cut, id, n, of(all))
			}
		}
		if len(ends) != 6 {
			t.Errorf("cut at %d: %d calls ended: %s", cut, len(ends), of(all))
		}
		for _, run := range l.runs {
			if slices.Contains(ran, run) && strings.HasPrefix(run, "note") {
				t.Errorf("cut at %d: %q ran again", cut, run)
			}
		}
	}
}

// TestCallsWithinCallsAreBudgeted checks that a call which makes many others stops when the money of the session is
// spent, and not at the next turn.
func TestCallsWithinCallsAreBudgeted(t *testing.T) {
	ran := 0
	dear := tool.New("dear", "", func(context.Context, *tool.Call, wordArgs) (tool.Result, error) {
		ran++
		return tool.Result{Parts: llm.Say("ok"), Cost: 0.4}, nil
	})
	dear.Effects = tool.NoEffects
	var failed *tool.CallError
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		for i := range 10 {
			if _, err := do("dear", fmt.Sprint(i)); errors.As(err, &failed) {
				return "", err
			}
		}
		return "all", nil
	})
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Mode: "yolo", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{dear, r}, Limits: inspan.Limits{Cost: 1}}
	events := collect(t, a.Run(t.Context(), "go"))
	if ran != 3 || failed == nil || !strings.Contains(failed.Text, "$1.2000 spent of $1.0000") {
		t.Errorf("ran %d times: %v", ran, failed)
	}
	if r := last[event.Stopped](t, events).Reason; r != event.ReasonBudget {
		t.Errorf("stopped as %s", r)
	}
}

// TestManyCallsWithinACall checks that their number costs each of them little.
func TestManyCallsWithinACall(t *testing.T) {
	l := &ledger{}
	const many = 2000
	r := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) {
		for i := range many {
			if _, err := do("look", fmt.Sprint(i)); err != nil {
				return "", err
			}
		}
		return "all", nil
	})
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.reader(), r}}
	events := collect(t, a.Run(t.Context(), "go"))
	if end := last[event.Ended](t, events); end.Parts.Text() != "all" || len(l.runs) != many {
		t.Errorf("ended %s %q, ran %d", end.Outcome, end.Parts.Text(), len(l.runs))
	}
}

// TestWhatIsLeftForLater lets one call store values, which the next one finds, even in a reopened session.
func TestWhatIsLeftForLater(t *testing.T) {
	var found []string
	keeps := tool.New("keeps", "keeps", func(_ context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		found = append(found, string(c.Store["n"])+string(c.Store["gone"]))
		r := tool.Text("ok")
		r.Store = map[string]json.RawMessage{"n": json.RawMessage(fmt.Sprint(len(found))), "gone": json.RawMessage("null")}
		return r, nil
	})
	keeps.Effects = tool.NoEffects
	log := event.NewMemory("s")
	for range 2 {
		model := scripted(t, "call: keeps {}", "Done.", "call: keeps {}", "Done.")
		a := &inspan.Agent{Model: model, Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{keeps}}
		collect(t, open(t, a, log).Run(t.Context(), said("go")))
	}
	if !slices.Equal(found, []string{"", "1"}) {
		t.Errorf("found %q", found)
	}
}

// TestBeginAsksInOrder checks that parallel calls are asked about in the order of Begin, and that their results are
// numbered in the order of the log, even when the tool runs again.
func TestBeginAsksInOrder(t *testing.T) {
	l := &ledger{}
	for range 20 {
		var order []int
		many := tool.New("recipe", "makes calls", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
			var waits []func() (tool.Result, error)
			for _, w := range []string{"a", "b", "c"} {
				waits = append(waits, c.Start(ctx, "note", json.RawMessage(fmt.Sprintf(`{"word":%q}`, w))))
			}
			for _, wait := range waits {
				res, err := wait()
				if err != nil {
					return tool.Result{}, err
				}
				order = append(order, res.Position)
			}
			return tool.Text(c.Time.Format("15:04")), nil
		})
		many.Calls = true
		a := &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), many},
		}
		l.runs = nil
		events := collect(t, open(t, a, event.NewMemory("s")).Run(t.Context(), said("go")))
		if !slices.Equal(l.runs, []string{"note a", "note b", "note c"}) || !slices.Equal(order, []int{1, 2, 3}) {
			t.Fatalf("ran %q, numbered %v", l.runs, order)
		}
		if text, made := last[event.Ended](t, events).Parts.Text(), events[0].Time.Format("15:04"); text != made {
			t.Errorf("the call was made at %s, and says %s", made, text)
		}
	}
}

// TestLeavingOutACall checks that a tool that, when run again, leaves out a call and waits for a later one is
// stopped and named, and does not wait forever.
func TestLeavingOutACall(t *testing.T) {
	l, runs := &ledger{}, 0
	fickle := tool.New("recipe", "makes calls", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		words := []string{"a", "b", "c"}
		if runs++; runs > 1 {
			words = words[1:]
		}
		for _, w := range words {
			wait := c.Start(ctx, "note", json.RawMessage(fmt.Sprintf(`{"word":%q}`, w)))
			c.Waiting()
			if _, err := wait(); err != nil {
				return tool.Result{}, err
			}
		}
		return tool.Text("done"), nil
	})
	fickle.Calls = true
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Mode: "edit", Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.writer(), fickle},
		Judges: []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (v tool.Verdict, err error) {
			if strings.Contains(string(c.Args), `"c"`) {
				v.Action = tool.Ask
			}
			return v, nil
		})},
	}
	log := event.NewMemory("s")
	c := &inspan.Conductor{Session: open(t, a, log), Ask: allow}
	if err := c.Run(t.Context(), said("go")); err != nil {
		t.Fatal(err)
	}
	var end event.Ended
	for _, e := range collect(t, log.Read(t.Context(), 0)) {
		if b, ok := e.Body.(event.Ended); ok && b.Parent == "" {
			end = b
		}
	}
	if end.Class != fault.ErrorDiverged || !strings.Contains(end.Parts.Text(), `left out the call note {"word":"a"}`) {
		t.Errorf("ended %s (%s): %s", end.Outcome, end.Class, end.Parts.Text())
	}
	if want := []string{"note a", "note b", "note c"}; !slices.Equal(l.runs, want[:len(l.runs)]) { // c was approved, and may run
		t.Errorf("ran %q", l.runs)
	}
}
