package journeys_test

// Calls that a tool asks for ahead, after one that waits for a person.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// doing is how a program makes a call.
type doing = func(name, word string) (string, error)

// eager is a tool that continues past held calls until run returns one of them.
func eager(run func(do doing) (string, error)) tool.Tool {
	t := recipe(func(_ context.Context, do func(name, word string) (string, error)) (string, error) { return run(do) })
	t.AsksAhead = true
	return t
}

// questioned runs a session with a conductor that answers questions from answers. It returns the questions, because
// the words of the calls of each, and all events.
func questioned(t *testing.T, a *inspan.Agent, answer func(p inspan.Pending) event.Decided) (questions []string, events []event.Event) {
	t.Helper()
	log := event.NewMemory("s")
	c := &inspan.Conductor{Session: open(t, a, log)}
	c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
		words := []string{wordOf(p.Call.Args)}
		for i, w := range p.Set {
			if i > 0 {
				words = append(words, wordOf(w.Call.Args))
			}
		}
		questions = append(questions, strings.Join(words, " "))
		d := answer(p)
		d.Call, d.By = p.Call.ID, "me"
		return d, nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil {
		t.Fatal(err)
	}
	return questions, collect(t, log.Read(t.Context(), 0))
}

func yes(inspan.Pending) event.Decided { return event.Decided{Allow: true} }

// TestAskedAhead checks that the calls of a loop are asked about once, the worst first and with all that they would do,
// and run in its order once they are allowed.
func TestAskedAhead(t *testing.T) {
	want := []string{"note a", "get example.com", "note b", "note c"}
	for _, together := range []bool{false, true} {
		l := &ledger{}
		a := &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
			Tools: []tool.Tool{l.at("note", tool.Write), l.at("get", tool.Network), looping(want...)},
		}
		log := event.NewMemory("s")
		c := &inspan.Conductor{Session: open(t, a, log), AskConcurrently: together}
		asked := 0
		c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
			asked++
			var set []string
			for _, one := range p.Set {
				set = append(set, one.Call.Name+" "+wordOf(one.Call.Args))
			}
			if !slices.Equal(set, []string{want[1], want[0], want[2], want[3]}) || wordOf(p.Call.Args) != "a" || p.Name() != "a set of 4 calls" {
				t.Errorf("%s: %q", p.Name(), set)
			}
			if len(p.Rules) > 0 || len(p.Offers) > 0 || len(p.Effects) != 4 {
				t.Errorf("offers %q %v, effects %v", p.Rules, p.Offers, p.Effects)
			}
			return event.Decided{Call: p.Call.ID, Allow: true, By: "me"}, nil
		}
		if err := c.Run(t.Context(), said("go")); err != nil {
			t.Fatal(err)
		}
		events := collect(t, log.Read(t.Context(), 0))
		if d := last[event.Decided](t, events); asked != 1 || len(d.Also) != 3 {
			t.Errorf("asked %d times, decided %+v", asked, d)
		}
		if !slices.Equal(l.runs, want) {
			t.Errorf("ran %q", l.runs)
		}
		if end := last[event.Ended](t, events); end.Outcome != event.OutcomeOK || !strings.Contains(end.Parts.Text(), "noted c") {
			t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
		}
	}
}

// TestAheadIsDenied checks that the denial of a set denies each of its calls, that the program learns of it for the
// calls that it still makes, and that it continues.
func TestAheadIsDenied(t *testing.T) {
	l := &ledger{}
	var failed []string
	p := eager(func(do doing) (string, error) {
		failed = nil
		var held error
		for _, w := range []string{"a", "b", "c"} {
			var ce *tool.CallError
			if _, err := do("note", w); errors.As(err, &ce) {
				failed = append(failed, w+" "+ce.Outcome+" "+ce.Text)
			} else if err != nil {
				held = err
			}
		}
		if held != nil {
			return "", held
		}
		text, err := do("look", "x")
		return "looked: " + text, err
	})
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.at("note", tool.Write), l.reader(), p},
	}
	questions, events := questioned(t, a, func(inspan.Pending) event.Decided { return event.Decided{Reason: "not today"} })
	if !slices.Equal(questions, []string{"a b c"}) || !slices.Equal(l.runs, []string{"look x"}) {
		t.Errorf("asked %q, ran %q", questions, l.runs)
	}
	const denied = " denied Denied by me: not today"
	if want := []string{"a" + denied, "b" + denied, "c" + denied}; !slices.Equal(failed, want) {
		t.Errorf("failed %q", failed)
	}
	if end := last[event.Ended](t, events); end.Parts.Text() != "looked: noted x" {
		t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
	}
}

// TestBeyondTheSet checks that a call outside the set asks again.
func TestBeyondTheSet(t *testing.T) {
	l := &ledger{}
	p := eager(func(do doing) (string, error) {
		_, first := do("note", "a")
		if _, second := do("note", "b"); errors.Is(first, tool.ErrHeld) {
			return "", errors.Join(first, second)
		}
		_, third := do("note", "c")
		_, fourth := do("note", "d")
		return "", errors.Join(third, fourth)
	})
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.at("note", tool.Write), p}}
	questions, _ := questioned(t, a, yes)
	if !slices.Equal(questions, []string{"a b", "c d"}) || !slices.Equal(l.runs, []string{"note a", "note b", "note c", "note d"}) {
		t.Errorf("asked %q, ran %q", questions, l.runs)
	}
}

// TestAheadIsNotWanted checks that a call that was requested ahead and allowed, by a person or a rule, does not run if
// its program no longer makes it, and that this is not a divergence.
func TestAheadIsNotWanted(t *testing.T) {
	for name, rules := range map[string][]inspan.Rule{"by a person": nil, "by a rule": {{Action: tool.Allow, Text: "note"}}} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			pay := l.at("pay", tool.External)
			run := pay.Run
			pay.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				res, _ := run(ctx, c)
				return res, errors.New("the bank is closed")
			}
			p := eager(func(do doing) (string, error) {
				_, first := do("pay", "a")
				if ce := (*tool.CallError)(nil); errors.As(first, &ce) {
					return do("look", "b") // the call that is left out does not stand in its way
				}
				_, second := do("note", "b")
				return "paid", errors.Join(first, second)
			})
			a := &inspan.Agent{
				Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Rules: rules,
				Tools: []tool.Tool{l.at("note", tool.Write), l.at("look", tool.Read), pay, p},
			}
			_, events := questioned(t, a, yes)
			if !slices.Equal(l.runs, []string{"pay a", "look b"}) {
				t.Errorf("ran %q", l.runs)
			}
			if end := last[event.Ended](t, events); !strings.Contains(end.Parts.Text(), "noted b") || end.Outcome != event.OutcomeOK {
				t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
			}
			if !slices.ContainsFunc(events, func(e event.Event) bool {
				b, ok := e.Body.(event.Ended)
				return ok && b.Outcome == event.OutcomeCancelled && strings.HasPrefix(b.Parts.Text(), "Not run")
			}) {
				t.Error("nothing tells of the call that was not made")
			}
		})
	}
}

// TestReadAhead checks that a reading call runs after a waiting call, unless that one may change what it reads.
func TestReadAhead(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.at("note", tool.Write), l.at("look", tool.Read), looping("note a", "look b", "look a", "note c")},
	}
	var before []string
	questions, _ := questioned(t, a, func(inspan.Pending) event.Decided {
		before = slices.Clone(l.runs)
		return event.Decided{Allow: true}
	})
	if !slices.Equal(questions, []string{"a c"}) || !slices.Equal(before, []string{"look b"}) {
		t.Errorf("asked %q, ran %q before", questions, before)
	}
	if !slices.Equal(l.runs, []string{"look b", "note a", "look a", "note c"}) {
		t.Errorf("ran %q", l.runs)
	}
}

// TestOneByOne checks that a front end without sets can answer each question alone, and that the program continues with
// the answers so far.
func TestOneByOne(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.at("note", tool.Write), looping("note a", "note b", "note c")},
	}
	s := open(t, a, event.NewMemory("s"))
	events := collect(t, s.Run(t.Context(), said("go")))
	var asked []string
	for _, allow := range []bool{true, true, false} {
		w := s.Status().Waiting
		if len(w) == 0 {
			break
		}
		asked = append(asked, wordOf(w[0].Call.Args))
		i := slices.IndexFunc(w, func(p inspan.Pending) bool { return !p.RequestedAhead })
		events = collect(t, s.Run(t.Context(), event.Decided{Call: w[i].Call.ID, Question: w[i].Question, Allow: allow, By: "me"}))
	}
	if !slices.Equal(l.runs, []string{"note a", "note b"}) {
		t.Errorf("ran %q, asked %q", l.runs, asked)
	}
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeFailed || last[event.Stopped](t, events).Reason != event.ReasonDone {
		t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
	}
}

// fickle is a judge of notes that changes its mind once something has run.
type fickle struct {
	l     *ledger
	after tool.Action
}

func (j fickle) Judge(_ context.Context, c *tool.Call, _ []tool.Effect) (tool.Verdict, error) {
	j.l.mu.Lock()
	defer j.l.mu.Unlock()
	if c.Name != "note" || !slices.Contains(j.l.runs, "pay a") {
		return tool.Verdict{Action: tool.Allow}, nil
	}
	return tool.Verdict{Action: j.after, By: "fickle", Reason: "that was then"}, nil
}

// TestVerdictsAhead checks that a verdict on a call requested ahead is not final: a call that would be denied by the
// time the program makes it is denied, and one that a rule allowed and that would ask by then asks. A call that a
// person has allowed does not ask twice, unless it would do something else.
func TestVerdictsAhead(t *testing.T) {
	allowed := []inspan.Rule{{Action: tool.Allow, Text: "note"}}
	for name, tc := range map[string]struct {
		rules []inspan.Rule
		after tool.Action
		moves bool
		asks  []string
		runs  []string
	}{
		"allowed by a rule, then denied":   {allowed, tool.Deny, false, []string{"a"}, []string{"pay a"}},
		"allowed by a person, then denied": {nil, tool.Deny, false, []string{"a b"}, []string{"pay a"}},
		"allowed by a rule, then asks":     {allowed, tool.Ask, false, []string{"a", "b"}, []string{"pay a", "note b"}},
		"allowed by a person, still asks":  {nil, tool.Ask, false, []string{"a b"}, []string{"pay a", "note b"}},
		"another file":                     {nil, tool.Allow, true, []string{"a b", "b"}, []string{"pay a", "note b"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			note := l.at("note", tool.Write)
			where := note.Effects
			note.Effects = func(ctx context.Context, c *tool.Call) ([]tool.Effect, error) {
				list, err := where(ctx, c)
				l.mu.Lock()
				defer l.mu.Unlock()
				if tc.moves && slices.Contains(l.runs, "pay a") {
					list[0].Path = "/w/elsewhere"
				}
				return list, err
			}
			a := &inspan.Agent{
				Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Rules: tc.rules, Judges: []tool.Judge{fickle{l, tc.after}},
				Tools: []tool.Tool{note, l.at("pay", tool.External), looping("pay a", "note b")},
			}
			questions, events := questioned(t, a, yes)
			if !slices.Equal(questions, tc.asks) || !slices.Equal(l.runs, tc.runs) {
				t.Errorf("asked %q, ran %q: %s", questions, l.runs, of(events))
			}
			if end := last[event.Ended](t, events); (end.Outcome == event.OutcomeOK) != (tc.after != tool.Deny) {
				t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
			}
		})
	}
}

// TestKilledWithASet checks that a session whose log ends anywhere around the question about a set continues to the
// same end: nothing runs twice and nothing runs unasked.
func TestKilledWithASet(t *testing.T) {
	build := func(l *ledger, replies ...string) *inspan.Agent {
		return &inspan.Agent{
			Model: scripted(t, replies...), Env: tool.Env{Root: "/w"},
			Tools: []tool.Tool{l.at("note", tool.Write), l.at("look", tool.Read), looping("look x", "note a", "look b", "note b", "note c")},
		}
	}
	var whole []event.Event
	if questions, events := questioned(t, build(&ledger{}, oneRecipe, "Done."), yes); len(questions) == 1 {
		whole = events
	}
	if len(whole) < 30 {
		t.Fatal(of(whole))
	}
	for cut := range whole {
		l := &ledger{}
		log, ran := replayed(t, whole[:cut+1])
		if !slices.ContainsFunc(whole[:cut+1], func(e event.Event) bool { return e.Body.Kind() == "said" }) {
			continue
		}
		replies := []string{oneRecipe, "Done."}
		if replied(t, log) {
			replies = replies[1:]
		}
		c := &inspan.Conductor{Session: open(t, build(l, replies...), log)}
		c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
			return event.Decided{Call: p.Call.ID, Allow: true, By: "me"}, nil
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := collect(t, log.Read(t.Context(), 0))
		if r := last[event.Stopped](t, events).Reason; r != event.ReasonDone {
			t.Errorf("cut at %d %s: stopped as %s", cut, whole[cut].Body.Kind(), r)
		}
		notes := func(runs []string) []string {
			return slices.DeleteFunc(slices.Clone(runs), func(run string) bool { return !strings.HasPrefix(run, "note") })
		}
		all := append(notes(ran), notes(l.runs)...)
		lost := strings.Contains(of(events), "unknown") // the loop ends there
		if want := []string{"note a", "note b", "note c"}; !slices.Equal(all, want) && (!lost || !slices.Equal(all, want[:len(all)])) {
			t.Errorf("cut at %d %s: ran %q and then %q: %s", cut, whole[cut].Body.Kind(), ran, l.runs, of(events))
		}
		checkAllowed(t, cut, events)
	}
}

// checkAllowed holds that each call that was started was allowed by a verdict or a decision before, and
// that each ended once.
func checkAllowed(t *testing.T, cut int, events []event.Event) {
	t.Helper()
	may, waits, ends := map[string]bool{}, map[uint64]string{}, map[string]int{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Judged:
			may[b.Call] = b.Action == tool.Allow
		case event.Waiting:
			waits[e.Seq] = b.Call
		case event.Decided:
			for _, n := range append(b.Also, b.Question) {
				may[waits[n]] = b.Allow
			}
		case event.Started:
			if !may[b.Call] {
				t.Errorf("cut at %d: %s was started unasked: %s", cut, b.Call, of(events))
			}
		case event.Ended:
			if ends[b.Call]++; ends[b.Call] > 1 {
				t.Errorf("cut at %d: %s ended again: %s", cut, b.Call, of(events))
			}
		}
	}
}

// TestHeldForNothing checks that a tool that ends with ErrHeld although none of its calls was held has failed, so
// that it does not run forever.
func TestHeldForNothing(t *testing.T) {
	ran := 0
	p := eager(func(doing) (string, error) { ran++; return "", tool.ErrHeld })
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{p}}
	if end := last[event.Ended](t, collect(t, a.Run(t.Context(), "go"))); end.Outcome != event.OutcomeFailed || ran != 1 {
		t.Errorf("ended %s after %d runs", end.Outcome, ran)
	}
}

// TestNothingHeldWithoutAhead checks that a tool without AsksAhead waits for each call, and is asked about one at a
// time.
func TestNothingHeldWithoutAhead(t *testing.T) {
	l := &ledger{}
	p := looping("note a", "note b")
	p.AsksAhead = false
	a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.at("note", tool.Write), p}}
	if questions, _ := questioned(t, a, yes); !slices.Equal(questions, []string{"a", "b"}) {
		t.Errorf("asked %q", questions)
	}
}

// TestAheadForTooLong checks that a program that continues without end after a held call is stopped, so that the
// question is asked.
func TestAheadForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		p := recipe(func(ctx context.Context, do func(name, word string) (string, error)) (string, error) {
			text, err := do("note", "a")
			if errors.Is(err, tool.ErrHeld) {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return text, err
		})
		p.AsksAhead = true
		a := &inspan.Agent{Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Tools: []tool.Tool{l.at("note", tool.Write), p}}
		questions, events := questioned(t, a, yes)
		if end := last[event.Ended](t, events); !slices.Equal(questions, []string{"a"}) || end.Parts.Text() != "noted a" {
			t.Errorf("asked %q, ended %s: %s", questions, end.Outcome, end.Parts.Text())
		}
	})
}

// TestAheadSideBySide checks the same for parallel calls: there is one question, and each call runs once, also next to
// calls that need no approval and through other calls that make some.
func TestAheadSideBySide(t *testing.T) {
	for range 30 {
		l := &ledger{}
		inner := looping("note 1", "note 2")
		inner.Name, inner.Schema = "inner", l.writer().Schema
		p := eager(func(do doing) (string, error) {
			var all sync.WaitGroup
			errs := make([]error, 6)
			for i, name := range []string{"note", "look", "note", "may", "inner", "note"} {
				all.Go(func() { _, errs[i] = do(name, fmt.Sprint("w", i)) })
			}
			all.Wait()
			return "all", errors.Join(errs...)
		})
		a := &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Rules: []inspan.Rule{{Action: tool.Allow, Text: "may"}},
			Tools: []tool.Tool{l.at("note", tool.Write), l.at("look", tool.Read), l.at("may", tool.Write), inner, p},
		}
		_, events := questioned(t, a, yes)
		slices.Sort(l.runs)
		if want := []string{"look w1", "may w3", "note 1", "note 2", "note w0", "note w2", "note w5"}; !slices.Equal(l.runs, want) {
			t.Errorf("ran %q: %s", l.runs, of(events))
		}
		if end := last[event.Ended](t, events); end.Outcome != event.OutcomeOK {
			t.Errorf("ended %s: %s", end.Outcome, end.Parts.Text())
		}
		checkAllowed(t, 0, events)
	}
}

// TestSetsAndOthers checks that a set is asked about again without its first call if someone else has decided on that,
// and that their decision on another call stands.
func TestSetsAndOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		other int
		asks  []string
		runs  []string
	}{
		"the first": {0, []string{"a b c", "b c"}, []string{"note a", "note b", "note c"}},
		"another":   {1, []string{"a b c"}, []string{"note a"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			a := &inspan.Agent{
				Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
				Tools: []tool.Tool{l.at("note", tool.Write), looping("note a", "note b", "note c")},
			}
			log := event.NewMemory("s")
			c := &inspan.Conductor{Session: open(t, a, log), AskConcurrently: true}
			var asks []string
			c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
				var words []string
				for _, one := range p.Set {
					words = append(words, wordOf(one.Call.Args))
				}
				if asks = append(asks, strings.Join(words, " ")); len(asks) == 1 {
					other := p.Set[tc.other]
					d := event.Decided{Call: other.Call.ID, Question: other.Question, Allow: tc.other == 0, By: "somebody else"}
					if _, err := log.Append(ctx, d); err != nil {
						t.Error(err)
					}
					if tc.other == 0 {
						<-ctx.Done()
						if !errors.Is(context.Cause(ctx), inspan.ErrAnswered) {
							t.Error(context.Cause(ctx))
						}
						return nil, nil
					}
				}
				return event.Decided{Call: p.Call.ID, Allow: true, By: "me"}, nil
			}
			if err := c.Run(t.Context(), said("go")); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asks, tc.asks) || !slices.Equal(l.runs, tc.runs) {
				t.Errorf("asked %q, ran %q", asks, l.runs)
			}
		})
	}
}

// TestSetsHoldOnce checks that no answer to a set is for longer than once.
func TestSetsHoldOnce(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.at("note", tool.Write), looping("note a", "note b")},
	}
	c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s"))}
	c.Ask = func(_ context.Context, p inspan.Pending) (event.Body, error) {
		return event.Decided{Call: p.Call.ID, Allow: true, Scope: event.ScopeSession, By: "me"}, nil
	}
	if err := c.Run(t.Context(), said("go")); err == nil || !strings.Contains(err.Error(), "can be allowed once") || len(l.runs) > 0 {
		t.Errorf("ran %q: %v", l.runs, err)
	}
}

// TestHooksOfEagerCallers checks that a hook hears of the end of a tool that asks ahead once, and not each time that it
// is held.
func TestHooksOfEagerCallers(t *testing.T) {
	l := &ledger{}
	h := &hook{say: map[tool.Moment]func(tool.Point) (tool.Outcome, error){}}
	var ends []string
	h.say[tool.AfterCall] = func(p tool.Point) (tool.Outcome, error) {
		ends = append(ends, p.Call.Name)
		return tool.Outcome{}, nil
	}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"}, Hooks: []tool.Hook{h},
		Tools: []tool.Tool{l.at("note", tool.Write), looping("note a", "note b")},
	}
	if questioned(t, a, yes); !slices.Equal(ends, []string{"note", "note", "recipe"}) {
		t.Errorf("ends of %q", ends)
	}
}

// TestSetByItsID checks that the ID of a set answers all of its calls and none that came later, that each call can
// still be answered alone, and that an answer for longer is for no set.
func TestSetByItsID(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []event.Decided
		runs    []string
		left    string // the ID of what still waits
	}{
		"all":      {[]event.Decided{{Call: "%/1-3", Allow: true}}, []string{"note a", "get b", "note c"}, ""},
		"none":     {[]event.Decided{{Call: "%/1-3"}}, nil, ""},
		"a part":   {[]event.Decided{{Call: "%/1-2", Allow: true}}, nil, "%/1-3"},
		"too much": {[]event.Decided{{Call: "%/1-9", Allow: true}, {Call: "%/0-3", Allow: true}}, nil, "%/1-3"},
		"alone":    {[]event.Decided{{Call: "%/1", Allow: true}}, []string{"note a"}, "%/2-3"},
		"the rest": {[]event.Decided{{Call: "%/1", Allow: true}, {Call: "%/2-3", Allow: true}}, []string{"note a", "get b", "note c"}, ""},
		"what was": {[]event.Decided{{Call: "%/1", Allow: true}, {Call: "%/1-3"}}, []string{"note a"}, "%/2-3"},
		"one left": {
			[]event.Decided{{Call: "%/1", Allow: true}, {Call: "%/2", Allow: true}, {Call: "%/2-3"}}, []string{"note a", "get b"}, "%/3",
		},
		"the maker": {[]event.Decided{{Call: "%", Allow: true}}, nil, "%/1-3"},
		"backwards": {[]event.Decided{{Call: "%/3-1", Allow: true}}, nil, "%/1-3"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{}
			a := &inspan.Agent{
				Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
				Tools: []tool.Tool{l.at("note", tool.Write), l.at("get", tool.Network), looping("note a", "get b", "note c")},
			}
			s := open(t, a, event.NewMemory("s"))
			collect(t, s.Run(t.Context(), said("go")))
			maker := s.Status().Waiting[0].Parent
			for _, d := range tc.answers {
				d.Call = strings.Replace(d.Call, "%", maker, 1)
				collect(t, s.Run(t.Context(), d))
			}
			left := ""
			for _, p := range inspan.Sets(s.Status().Questions()) {
				left += p.ID()
			}
			if !slices.Equal(l.runs, tc.runs) || left != strings.Replace(tc.left, "%", maker, 1) {
				t.Errorf("ran %q, %q waits", l.runs, left)
			}
		})
	}
	l := &ledger{}
	a := &inspan.Agent{
		Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{l.at("note", tool.Write), looping("note a", "note b")},
	}
	s := open(t, a, event.NewMemory("s"))
	collect(t, s.Run(t.Context(), said("go")))
	p := inspan.Sets(s.Status().Questions())[0]
	err := s.Send(t.Context(), event.Decided{Call: p.ID(), Allow: true, Scope: event.ScopeSession})
	if err == nil || !strings.Contains(err.Error(), "allowed once or denied") {
		t.Errorf("for the session: %v", err)
	}
}

// TestSetIsApprovedForLater checks that the approval of a set counts even when no one can be asked any more, like that
// of a single call, and that unapproved calls do not run there.
func TestSetIsApprovedForLater(t *testing.T) {
	for id, want := range map[string][]string{"1-3": {"note a", "get b", "note c"}, "1": {"note a"}} {
		l := &ledger{}
		a := &inspan.Agent{
			Model: scripted(t, oneRecipe, "Done."), Env: tool.Env{Root: "/w"},
			Tools: []tool.Tool{l.at("note", tool.Write), l.at("get", tool.Network), looping("note a", "get b", "note c")},
		}
		log := event.NewMemory("s")
		s := open(t, a, log)
		collect(t, s.Run(t.Context(), said("go")))
		if err := s.Send(t.Context(), event.Decided{Call: s.Status().Waiting[0].Parent + "/" + id, Allow: true}); err != nil {
			t.Fatal(err)
		}
		a.Unattended = true
		s = open(t, a, log)
		if collect(t, s.Run(t.Context())); !slices.Equal(l.runs, want) || s.Status().Stopped == nil {
			t.Errorf("%s: ran %q", id, l.runs)
		}
	}
}
