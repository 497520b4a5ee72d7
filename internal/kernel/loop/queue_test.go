package loop_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
)

// TestQueue checks that messages sent during a run are handled after it, even after an interrupt, and that they
// wait for the next driver if the interrupt is for all.
func TestQueue(t *testing.T) {
	for _, all := range []bool{false, true} {
		tp := newTape(t, said("first"), event.Asked{Turn: 1}, said("second"), said("third"), event.Cancelled{By: "me", All: all})
		tp.want("stop cancelled")
		tp.add(tp.Next().(loop.Stop).Stopped)
		if all {
			tp.want("wait")
			tp.add(event.Claimed{Epoch: 2})
		}
		tp.want("ask")
		if tp.Task != "second" || len(tp.Queue) != 1 {
			t.Errorf("all %v: %q is done, %d wait", all, tp.Task, len(tp.Queue))
		}
		tp.add(event.Asked{Turn: 1}, reply(llm.StopEnd, llm.Text{Text: "Done."}))
		tp.want("stop done")
		tp.add(tp.Next().(loop.Stop).Stopped)
		if tp.want("ask"); tp.Task != "third" {
			t.Errorf("all %v: %q is done", all, tp.Task)
		}
	}
}

// TestQueueOutlastsTheDriver checks that waiting messages are still handled if a driver dies after an interrupt for
// all.
func TestQueueOutlastsTheDriver(t *testing.T) {
	tp := newTape(t, said("first"), event.Asked{Turn: 1}, said("second"), event.Cancelled{By: "me", All: true}, event.Claimed{Epoch: 2})
	tp.want("stop cancelled")
	tp.add(tp.Next().(loop.Stop).Stopped)
	if tp.want("ask"); tp.Task != "second" {
		t.Errorf("%q is done", tp.Task)
	}
}

// TestAskedGoesOn checks that a few words are read together with the request that they continue, and that a complete
// task is one of its own.
func TestAskedGoesOn(t *testing.T) {
	long := strings.Repeat("Port the parser to the new grammar. ", 5)
	for name, tt := range map[string]struct {
		said []event.Body
		want string
	}{
		"one":          {[]event.Body{said("yes")}, "yes"},
		"a yes":        {[]event.Body{said("Port it."), said("yes"), said("and test it")}, "Port it.\n\nyes\n\nand test it"},
		"another task": {[]event.Body{said("Port it."), said("yes"), said(long)}, long},
		"two lines":    {[]event.Body{said("Port it."), said("a\nb")}, "a\nb"},
		"of others":    {[]event.Body{said("Port it."), event.Said{Parts: llm.Say("ok"), Origin: event.OriginLead}}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			var tp *tape
			for i, b := range tt.said {
				if i == 0 {
					tp = newTape(t, b)
				} else {
					tp.add(b)
				}
				tp.add(event.Asked{Turn: 1}, reply(llm.StopEnd, llm.Text{Text: "Done."}))
				tp.add(tp.Next().(loop.Stop).Stopped)
			}
			if got := tp.Asked(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestConfided checks that private text that models have seen binds every later request, even when only its
// consequences are left.
func TestConfided(t *testing.T) {
	tp := newTape(t, said("go"), event.Asked{Turn: 1}, event.Routed{Route: "desk/m", Private: "a key"},
		reply(llm.StopEnd, llm.Text{Text: "Done."}))
	tp.add(tp.Next().(loop.Stop).Stopped)
	tp.add(said("again"), event.Asked{Turn: 1}, event.Routed{Route: "desk/m"})
	if got := tp.Request().Private; got != "a key" {
		t.Errorf("%q", got)
	}
}

// TestWithdrawn checks that a withdrawn message is never handled, and that one whose run has begun stays.
func TestWithdrawn(t *testing.T) {
	tp := newTape(t, said("first"), event.Asked{Turn: 1}, said("second"), said("third"))
	third := tp.Seq
	tp.add(event.Withdrawn{Of: third - 1})
	tp.add(event.Withdrawn{})
	tp.add(event.Withdrawn{Of: 1})
	if len(tp.Queue) != 1 || tp.Task != "first" {
		t.Errorf("%q is done, %d wait", tp.Task, len(tp.Queue))
	}
	tp.add(reply(llm.StopEnd, llm.Text{Text: "Done."}))
	tp.want("stop done")
	tp.add(tp.Next().(loop.Stop).Stopped)
	tp.add(event.Withdrawn{Of: third})
	if tp.want("ask"); tp.Task != "third" {
		t.Errorf("%q is done", tp.Task)
	}
}
