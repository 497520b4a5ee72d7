package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// roomy is a session with room for some tokens in its window, with the default levers or none, and five agents in the
// background.
func roomy(t *testing.T, room int, levers event.Levers) *tape {
	t.Helper()
	tp := &tape{t, &loop.State{}}
	tp.add(event.Opened{Format: 1, Root: "/w", Levers: levers},
		event.Switched{Route: "a/b", Mode: "ask", Window: &event.Window{Tokens: room + 1000, Reserve: 1000}}, said("Ask all five"))
	for n := range 5 {
		tp.add(event.Spawned{Child: fmt.Sprint("s.", n), Agent: "scout", Background: true})
	}
	return tp
}

// brought is the result of an agent, of about so many tokens.
func brought(n, tokens int) string {
	return fmt.Sprintf("result %d:", n) + strings.Repeat(" word", tokens)
}

func returned(n, tokens int) event.Body {
	return event.Returned{Child: fmt.Sprint("s.", n), Reason: event.ReasonDone, Parts: llm.Say(brought(n, tokens))}
}

// unmeasured is a reply without figures: estimates count.
func unmeasured(stop llm.Stop, parts ...llm.Part) event.Body {
	return event.Replied{Parts: parts, Stop: stop, Route: "a/b"}
}

// heard is the part of five results that the model has, in its order, and the last line about waiting ones.
func heard(tp *tape) (results []int, waits string) {
	for _, m := range tp.Messages {
		for n := range 5 {
			if strings.HasPrefix(m.Parts.Text(), fmt.Sprintf("result %d:", n)) {
				results = append(results, n)
			}
		}
		if text := m.Parts.Text(); strings.Contains(text, "no room in the context window") {
			waits = text
		}
	}
	return results, waits
}

// TestArrivals lets in results that have arrived together as far as there is room, lists the rest once, and lets those
// in as room comes, in order and without a compaction.
func TestArrivals(t *testing.T) {
	tp := roomy(t, 7_400, event.Levers{}.Stated())
	tp.add(event.Asked{Turn: 1})
	for n := range 5 {
		tp.add(returned(n, 1_500))
	}
	tp.add(unmeasured(llm.StopCalls, call("c1", "wait")))
	if got, _ := heard(tp); got != nil {
		t.Fatalf("%v before the results of the calls", got)
	}
	tp.add(allowed("c1"), event.Started{Call: "c1"}, ended("c1", "ok"))
	got, waits := heard(tp)
	if !slices.Equal(got, []int{0, 1}) || !strings.Contains(waits, "from agent scout 2 (about") || strings.Contains(waits, "scout 1") {
		t.Fatalf("%v, %s", got, waits)
	}
	tp.want("ask")
	for turn := 2; turn < 6; turn++ {
		before := len(tp.Messages)
		tp.add(event.Asked{Turn: turn}, unmeasured(llm.StopCalls, call(fmt.Sprint("c", turn), "wait")), allowed(fmt.Sprint("c", turn)),
			event.Started{Call: fmt.Sprint("c", turn)}, ended(fmt.Sprint("c", turn), "ok"))
		if _, again := heard(tp); again != waits {
			t.Errorf("it is told again that something waits: %s", again)
		}
		if got, _ := heard(tp); len(got) > 3 {
			t.Fatalf("%v have come, with %d tokens of %d", got, tp.Tokens(), tp.Room())
		}
		if len(tp.Messages) < before+2 {
			t.Fatal("the turn is not there")
		}
	}
	tp.add(event.Asked{Turn: 6}, unmeasured(llm.StopEnd, llm.Text{Text: "That is all."}))
	steer, is := tp.Next().(loop.Steer)
	if !is || !slices.Equal(steer.Steered.Why, []event.Why{loop.WhyArrived}) {
		t.Fatalf("an answer counts while results wait: %s", tp.next())
	}
	tp.add(steer.Steered)
	if got, _ := heard(tp); !slices.Equal(got, []int{0, 1, 2, 3}) || len(tp.Arrivals) != 1 {
		t.Errorf("%v, %d wait", got, len(tp.Arrivals))
	}
}

// TestArrivalsOfOldSessions come as they did, all at once.
func TestArrivalsOfOldSessions(t *testing.T) {
	tp := roomy(t, 10_000, event.Levers{})
	for n := range 5 {
		tp.add(returned(n, 1_500))
	}
	if got, _ := heard(tp); len(got) != 5 {
		t.Errorf("%v", got)
	}
}

// TestArrivalsAreHeardOnce holds, whatever comes when and however large it is, that each is heard once
// before the run is over, in order; and that none is let in beyond the room, but for the first before an
// answer.
func TestArrivalsAreHeardOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tp := roomy(t, rapid.IntRange(2_000, 12_000).Draw(r, "room"), event.Levers{}.Stated())
		came := 0
		for range rapid.IntRange(0, 30).Draw(r, "steps") {
			next := tp.Next()
			switch arrives := rapid.Bool().Draw(r, "arrives"); {
			case arrives && came < 5:
				before := tp.Tokens()
				tp.add(returned(came, rapid.IntRange(10, 4_000).Draw(r, "tokens")))
				if came++; tp.Tokens() > max(before, tp.Room())+100 { // a line
					r.Fatalf("%d tokens of %d", tp.Tokens(), tp.Room())
				}
			default:
				step(r, tp, next)
			}
		}
		for ; came < 5; came++ {
			tp.add(returned(came, 10))
		}
		for range 100 {
			if s, over := tp.Next().(loop.Stop); over {
				if s.Stopped.Reason != event.ReasonDone {
					r.Fatalf("%+v", s.Stopped)
				}
				break
			}
			step(r, tp, tp.Next())
		}
		if got, _ := heard(tp); !slices.Equal(got, []int{0, 1, 2, 3, 4}) || len(tp.Arrivals) != 0 {
			r.Fatalf("%v, %d wait, next %s", got, len(tp.Arrivals), tp.next())
		}
	})
}

// step performs the next action: the model answers, and a compaction is put off.
func step(r *rapid.T, tp *tape, next loop.Next) {
	switch n := next.(type) {
	case loop.Ask:
		tp.add(event.Asked{Turn: n.Turn}, unmeasured(llm.StopEnd, llm.Text{Text: "Hm."}))
	case loop.Steer:
		tp.add(n.Steered)
	case loop.Prune:
		tp.add(n.Pruned)
	case loop.Compact:
		tp.add(event.Kept{})
	case loop.Await, loop.Stop:
	default:
		r.Fatalf("%T", next)
	}
}

// TestLinesOnArrivalsAreFew checks that hundreds of results that come one by one into a full window do not fill it with
// lines about waiting ones, and that all of them come in the end, in order.
func TestLinesOnArrivalsAreFew(t *testing.T) {
	const many = 500
	tp := roomy(t, 10_000, event.Levers{}.Stated())
	for n := range many {
		tp.add(event.Spawned{Child: fmt.Sprint("m.", n), Agent: "scout", Background: true})
	}
	for n := range many {
		tp.add(event.Returned{Child: fmt.Sprint("m.", n), Reason: event.ReasonDone, Parts: llm.Say(brought(n, 1_000))})
	}
	came, lines := 0, 0
	for _, m := range tp.Messages {
		switch text := m.Parts.Text(); {
		case strings.HasPrefix(text, fmt.Sprintf("result %d:", came)):
			came++
		case strings.Contains(text, "no room in the context window"):
			lines++
		}
	}
	if used := tp.Tokens(); came+len(tp.Arrivals) != many || lines == 0 || lines > 10 || used > tp.Room() {
		t.Errorf("%d came, %d wait, of which %d lines tell; %d tokens of %d", came, len(tp.Arrivals), lines, used, tp.Room())
	}
	for n, w := range tp.Arrivals {
		if !strings.HasPrefix(w.Parts.Text(), fmt.Sprintf("result %d:", came+n)) {
			t.Fatalf("%.20q waits in the place of result %d", w.Parts.Text(), came+n)
		}
	}
}
