package journeys_test

// Programs that ask ahead, compared with a model of what they may do.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/tool"
)

// plan is a random program: calls one after the other, and its reaction to a failure.
type plan []planned

type planned struct {
	name, word string
	stops      bool // the program ends if the call fails
	skips      int  // else it leaves out so many calls if it fails
}

func randomPlan(r *rand.Rand) (p plan) {
	names := []string{"asks", "asks", "asks", "may", "never", "look"}
	for i := range 2 + r.IntN(8) {
		s := planned{name: names[r.IntN(len(names))], word: fmt.Sprint(i), stops: r.IntN(5) == 0, skips: r.IntN(3)}
		if s.name != "look" && r.IntN(3) == 0 { // calls that conflict
			s.word = fmt.Sprint(i, "/same")
		}
		p = append(p, s)
	}
	return p
}

// person decides whether a call is allowed, and works whether it then succeeds.
func person(word string) bool { return !strings.HasPrefix(word, "3") && !strings.HasPrefix(word, "6") }
func works(word string) bool  { return !strings.HasPrefix(word, "2") }

// run performs the program, given the results of its calls.
func (p plan) run(do doing) (string, error) {
	var held error
	for i := 0; i < len(p); i++ {
		_, err := do(p[i].name, p[i].word)
		if errors.Is(err, tool.ErrHeld) {
			held = err
			continue
		}
		var failed *tool.CallError
		switch {
		case err == nil:
		case !errors.As(err, &failed):
			return "", err
		case p[i].stops:
			return "stopped", held
		default:
			i += p[i].skips
		}
	}
	return "done", held
}

// may is the model: which calls run, in order. Each is judged alone, when its turn comes.
func (p plan) may() (runs []string) {
	_, _ = p.run(func(name, word string) (string, error) {
		if name == "never" || name == "asks" && !person(word) {
			return "", &tool.CallError{Outcome: "denied"}
		}
		if name != "look" {
			runs = append(runs, name+" "+word)
		}
		if !works(word) {
			return "", &tool.CallError{Outcome: "failed"}
		}
		return "", nil
	})
	return runs
}

func (p plan) agent(t *testing.T, l *ledger, model ...string) *inspan.Agent {
	may := func(name string, kind tool.EffectKind) tool.Tool {
		made := l.at(name, kind)
		run := made.Run
		made.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			if !works(wordOf(c.Args)) {
				err = errors.New("it does not work")
			}
			return res, err
		}
		return made
	}
	return &inspan.Agent{
		Model: scripted(t, model...), Env: tool.Env{Root: "/w"},
		Rules: []inspan.Rule{{Action: tool.Allow, Text: "may"}, {Action: tool.Deny, Text: "never"}},
		Tools: []tool.Tool{
			may("asks", tool.Write), may("may", tool.Write), may("never", tool.Write), may("look", tool.Read), eager(p.run),
		},
	}
}

// answers are random answers of the person to some of the open questions: single ones, and several at once, with some
// meaningless numbers among them.
func answers(r *rand.Rand, waiting []inspan.Pending) (out []event.Body) {
	waiting = slices.Clone(waiting)
	r.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, p := range waiting[:1+r.IntN(len(waiting))] {
		d := event.Decided{Call: p.Call.ID, Question: p.Question, Allow: person(wordOf(p.Call.Args)), By: "me"}
		for _, other := range waiting {
			if r.IntN(2) == 0 && person(wordOf(other.Call.Args)) == d.Allow {
				d.Also = append(d.Also, other.Question)
			}
		}
		d.Also = append(d.Also, r.Uint64N(p.Question), p.Question+uint64(len(waiting))+r.Uint64N(50))
		d.Also = slices.DeleteFunc(d.Also, func(n uint64) bool { // what a person does not want must not be named
			return slices.ContainsFunc(waiting, func(w inspan.Pending) bool {
				return w.Question == n && person(wordOf(w.Call.Args)) != d.Allow
			})
		})
		out = append(out, d)
	}
	return out
}

// TestAheadAsAlone checks that the calls of a random program that asks ahead are those that would run if each were
// judged alone in turn, in the same order, whichever subsets a person answers at a time, and wherever the program is
// killed.
func TestAheadAsAlone(t *testing.T) {
	runs := 600
	if testing.Short() {
		runs = 100
	}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 29))
		p, l, log := randomPlan(r), &ledger{}, event.NewMemory("s")
		kills := r.IntN(4)
		inputs := []event.Body{said("go")}
		for round := 0; ; round++ {
			replies := []string{oneRecipe, "Done."}
			if replied(t, log) {
				replies = replies[1:]
			}
			s := open(t, p.agent(t, l, replies...), log)
			upto := -1
			if kills > 0 {
				kills, upto = kills-1, r.IntN(12)
			}
			for e, err := range s.Run(t.Context(), inputs...) {
				if err != nil {
					t.Fatal(err)
				}
				if upto--; upto == 0 && !e.Transient() {
					break
				}
			}
			st := s.Status()
			if inputs = nil; upto != 0 && len(st.Waiting) > 0 {
				inputs = answers(r, st.Waiting)
			}
			if st.Stopped != nil && st.Stopped.Reason == event.ReasonDone {
				break
			}
			if round > 60 {
				t.Fatalf("seed %d: %v goes on for ever: %s", seed, p, of(collect(t, log.Read(t.Context(), 0))))
			}
		}
		checkAhead(t, seed, p, l, log)
	}
}

// replied reports whether the model has answered.
func replied(t *testing.T, log event.Log) bool {
	return slices.ContainsFunc(collect(t, log.Read(t.Context(), 0)), func(e event.Event) bool { return e.Body.Kind() == "replied" })
}

// checkAhead compares the calls that ran with the model.
func checkAhead(t *testing.T, seed uint64, p plan, l *ledger, log event.Log) {
	t.Helper()
	ran := slices.DeleteFunc(slices.Clone(l.runs), func(run string) bool { return strings.HasPrefix(run, "look") })
	events := collect(t, log.Read(t.Context(), 0))
	ends, cut := map[string]int{}, false
	for _, e := range events {
		if b, ok := e.Body.(event.Ended); ok {
			ends[b.Call]++
			cut = cut || b.Outcome == event.OutcomeUnknown || b.Class == fault.ErrorDiverged
		}
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("seed %d: %s ended %d times", seed, id, n)
		}
	}
	if cut { // a call was killed while it ran, and its program has heard that
		for _, run := range ran {
			if name, word, _ := strings.Cut(run, " "); name == "never" || name == "asks" && !person(word) {
				t.Errorf("seed %d: %q ran", seed, run)
			}
		}
		return
	}
	if want := p.may(); !slices.Equal(ran, want) {
		t.Errorf("seed %d: %v\nran  %q\nwant %q\n%s", seed, p, ran, want, of(events))
	}
}
