package session_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// check compares the logs of a play with its happenings.
func (w *world) check() {
	for _, p := range w.paid {
		if p.to != "Alice" {
			w.fault("%v: %s was paid, which nobody allowed", w.trace, p.to)
		}
	}
	for _, id := range append([]string{w.id}, w.forks...) {
		events := w.events(id)
		w.checkCalls(id, events)
		w.checkDrivers(id, events)
		w.checkWords(id, events)
	}
}

func (w *world) events(id string) []event.Event {
	l := w.open(id)
	defer l.Close()
	var out []event.Event
	for e, err := range l.Read(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// checkCalls: ids are unique, each call ends once, none is made twice, none that was made is reported as not made, and
// each had an answer to its own question.
func (w *world) checkCalls(id string, events []event.Event) {
	made, ended, asked, allowed := map[string]int{}, map[string]event.Ended{}, map[string]uint64{}, map[string]bool{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Replied:
			for _, c := range b.Parts.Calls() {
				made[c.ID]++
			}
		case event.Waiting:
			asked[b.Call] = e.Seq
		case event.Decided:
			if b.Allow && (b.Question == asked[b.Call] || b.Question == 0) {
				allowed[b.Call] = true
			}
		case event.Ended:
			if _, twice := ended[b.Call]; twice {
				w.fault("%v: call %s of %s ended twice", w.trace, b.Call, id)
			}
			ended[b.Call] = b
		}
	}
	for call, n := range made {
		if _, over := ended[call]; n > 1 || !over {
			w.fault("%v: the id %s of %s was given to %d calls, ended: %v", w.trace, call, id, n, over)
		}
	}
	keys := map[string]bool{}
	for _, p := range w.paid {
		if keys[p.key] {
			w.fault("%v: two payments have the key %s", w.trace, p.key)
		}
		keys[p.key] = true
		if p.session != id {
			continue
		}
		if !allowed[p.call] {
			w.fault("%v: %+v was made without an answer to its question", w.trace, p)
		}
		if e := ended[p.call]; strings.HasPrefix(e.Parts.Text(), "Not run") {
			w.fault("%v: %+v was made, and the model is told %q", w.trace, p, e.Parts.Text())
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.paid), func(p payment) bool { return p.session != id })); n > 1 {
		w.fault("%v: %d payments in %s", w.trace, n, id)
	}
	w.checkBegun(id, events)
}

// checkBegun: a call that had begun, here or in the session that this is a fork of, is not said not to have
// been made.
func (w *world) checkBegun(id string, events []event.Event) {
	begun := map[string]bool{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Started:
			begun[b.Call] = true
		case event.Ended:
			if begun[b.Call] && strings.HasPrefix(b.Parts.Text(), "Not run") {
				w.fault("%v: call %s of %s had begun, and the model is told %q", w.trace, b.Call, id, b.Parts.Text())
			}
		}
	}
}

// checkDrivers: no event of a driver follows the claim of another.
func (w *world) checkDrivers(id string, events []event.Event) {
	epoch := uint64(0)
	for _, e := range events {
		if c, ok := e.Body.(event.Claimed); ok {
			epoch = c.Epoch
		}
		if by, driven := w.by[id][e.Seq]; driven && by != epoch && !event.Input(e.Body) {
			w.fault("%v: event %d of %s (%s) is of epoch %d, behind the claim of %d", w.trace, e.Seq, id, e.Body.Kind(), by, epoch)
		}
	}
}

// checkWords: the model saw everything that was said before a run was done, and every word is in the
// request that is made next.
func (w *world) checkWords(id string, events []event.Event) {
	var open, requests []string
	for _, r := range w.asked {
		if session, text, _ := strings.Cut(r, "\n"); session == id || session == w.id { // a fork has what the session was asked
			requests = append(requests, text)
		}
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.Steered:
			if b.By == "ann" {
				open = append(open, b.Parts.Text())
			}
		case event.Replied:
			open = w.unseen(open, requests)
		case event.Stopped:
			if b.Reason == event.ReasonDone && len(w.unseen(open, requests)) > 0 {
				w.fault("%v: %s is done, and no request ever had %v", w.trace, id, w.unseen(open, requests))
			}
		}
	}
}

func (w *world) unseen(words, requests []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return slices.ContainsFunc(requests, func(r string) bool { return strings.Contains(r, word) })
	})
}

// plays plays a script, and returns how many places there were and the faults.
func plays(t *testing.T, script []int, fault func(*world)) (places, wrong []string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: session.Virtual(), script: script, by: map[string]map[uint64]uint64{}}
		if fault != nil {
			fault(w)
		}
		w.play()
		places, wrong = w.places, w.faults
	})
	return places, wrong
}

// exploration is a search through plays.
type exploration struct {
	may   []happening    // what may happen
	every int            // of the plays with the most happenings, one in so many
	fault func(w *world) // takes a rule out; nil means none
	want  string         // stop at what is wrong in words that hold this

	played, skipped int
	wrong           []string // what was, in the first play in which something was
}

// visit plays a script and all that have up to left happenings more after it, until something is wrong.
func (x *exploration) visit(t *testing.T, script []int, left int) (goOn bool) {
	if left == 0 {
		if x.skipped++; x.skipped%x.every != 0 {
			return true
		}
	}
	places, wrong := plays(t, script, x.fault)
	x.played++
	x.wrong = slices.DeleteFunc(wrong, func(w string) bool { return !strings.Contains(w, x.want) })
	for at := len(script); at < len(places) && left > 0 && len(x.wrong) == 0; at++ {
		for what, h := range happenings {
			if !slices.Contains(x.may, h) || !h.can(places[at]) {
				continue
			}
			next := append(slices.Clone(script), make([]int, at-len(script)+1)...)
			next[at] = what
			if !x.visit(t, next, left-1) {
				return false
			}
		}
	}
	return len(x.wrong) == 0
}

// depth is how many things may happen in one play, of all the combinations that there are.
var depth = flag.Int("explore", 0, "explore plays in which so many things happen, all of them; 0: a part of those with two")

// TestExplorer checks that, whatever happens, no call is made twice, no decision counts for another question, and no
// message is lost.
func TestExplorer(t *testing.T) {
	if testkit.Race {
		t.Skip("one play after the other: nothing meets")
	}
	x, most := exploration{may: happenings[1:], every: 16 * session.Stride()}, 2
	if *depth > 0 {
		x.every, most = 1, *depth
	}
	x.visit(t, nil, most)
	for _, w := range x.wrong {
		t.Error(w)
	}
	t.Logf("%d plays", x.played)
}

// TestExplorerFinds takes rules out one by one: the explorer must find the resulting fault.
func TestExplorerFinds(t *testing.T) {
	may := map[string][]happening{
		"which nobody allowed": {again}, "no request ever had": {words}, "behind the claim": {takeover}, "and the model is told": {die, fork},
	}
	for want, fault := range map[string]func(*world){
		"which nobody allowed": func(w *world) {
			w.wrong = func(b event.Body) event.Body {
				switch b := b.(type) {
				case event.Decided:
					b.Question = 0
					return b
				case event.Replied:
					b.Parts = slices.Clone(b.Parts)
					for i, part := range b.Parts {
						if c, ok := part.(llm.Call); ok && c.Wire != "" {
							c.ID, c.Wire = c.Wire, ""
							b.Parts[i] = c
						}
					}
					return b
				}
				return b
			}
		},
		"no request ever had": func(w *world) { w.takes = event.ErrGrown },
		"behind the claim":    func(w *world) { w.takes = event.ErrFenced },
		"and the model is told": func(w *world) {
			w.wrong = func(b event.Body) event.Body {
				if e, ok := b.(event.Ended); ok && e.Outcome == event.OutcomeUnknown {
					e.Outcome, e.Parts = event.OutcomeCancelled, llm.Say("Not run: the user interrupted.")
					return e
				}
				return b
			}
		},
	} {
		t.Run(want, func(t *testing.T) {
			x := exploration{may: may[want], every: 1, fault: fault, want: want}
			if x.visit(t, nil, 2) {
				t.Fatalf("nothing was found in %d plays", x.played)
			}
			t.Logf("play %d: %s", x.played, x.wrong[0])
		})
	}
}
