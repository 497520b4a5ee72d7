package journeys_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestConductorLate checks that the events of Before come after the inputs of a run.
func TestConductorLate(t *testing.T) {
	c, _ := conducted(t, 0, "Done.")
	c.BeforeRun = func() []event.Body { return []event.Body{event.Switched{Mode: tool.ModeAuto}} }
	if err := c.Run(t.Context(), event.Switched{Mode: tool.ModeEdit}, said("go")); err != nil {
		t.Fatal(err)
	}
	if mode := c.Session.Status().Mode; mode != tool.ModeAuto {
		t.Errorf("the run has mode %q", mode)
	}
}

// TestConductorSendsInOrder checks that a message sent while a run starts comes after the inputs of the run.
func TestConductorSendsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := conducted(t, 0, "Done.", "Done again.")
		sent := make(chan error, 1)
		go func() {
			_, err := c.Send(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say("and then this")})
			sent <- err
		}()
		synctest.Wait()
		if err := errors.Join(c.Run(t.Context(), said("first")), <-sent); err != nil {
			t.Fatal(err)
		}
		var got []string
		for e, err := range c.Session.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Said:
				got = append(got, b.Parts.Text())
			case event.Steered:
				got = append(got, b.Parts.Text())
			}
			if e.Seq == c.Session.Status().Seq {
				break
			}
		}
		if !slices.Equal(got, []string{"first", "and then this"}) {
			t.Errorf("the session has %q", got)
		}
		if _, err := c.Send(t.Context(), said("late")); !errors.Is(err, inspan.ErrRunEnded) {
			t.Errorf("after the run: %v", err)
		}
	})
}

// TestConductorGoesOn checks that a run continues with every answer until it has stopped.
func TestConductorGoesOn(t *testing.T) {
	for _, together := range []bool{false, true} {
		c, l := conducted(t, 0, twoNotes, `call: note {"word":"c"}`, "Done.")
		var mu sync.Mutex
		var asked []string
		c.AskConcurrently = together
		c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, string(p.Call.Args))
			return allow(ctx, p)
		}
		seen := uint64(0)
		c.OnEvent = func(e event.Event) error { seen = max(seen, e.Seq); return nil }
		if err := c.Run(t.Context(), said("go")); err != nil {
			t.Fatal(err)
		}
		st := c.Session.Status()
		if st.Stopped == nil || st.Stopped.Reason != event.ReasonDone || seen != st.Seq {
			t.Errorf("together %v: stopped %+v, seen %d of %d", together, st.Stopped, seen, st.Seq)
		}
		if got := slices.Sorted(slices.Values(l.runs)); strings.Join(got, ",") != "note a,note b,note c" || len(asked) != 3 {
			t.Errorf("together %v: ran %q, asked %q", together, got, asked)
		}
		if !together && !slices.IsSorted(asked) {
			t.Errorf("asked in the order %q", asked)
		}
	}
}

// TestConductorLeavesQuestionsOpen checks that a question without an answer stays open, and that the next run takes it.
func TestConductorLeavesQuestionsOpen(t *testing.T) {
	c, l := conducted(t, 0, oneNote, "Done.")
	for _, ask := range []func(context.Context, inspan.Pending) (event.Body, error){
		nil, func(context.Context, inspan.Pending) (event.Body, error) { return nil, nil },
	} {
		c.Ask = ask
		var inputs []event.Body
		if ask == nil {
			inputs = append(inputs, said("go"))
		}
		if err := c.Run(t.Context(), inputs...); err != nil {
			t.Fatal(err)
		}
		if st := c.Session.Status(); len(st.Waiting) != 1 || len(l.runs) > 0 {
			t.Fatalf("waiting %+v, ran %q", st.Waiting, l.runs)
		}
	}
	c.Ask = allow
	if err := c.Run(t.Context()); err != nil || len(l.runs) != 1 {
		t.Errorf("ran %q: %v", l.runs, err)
	}
	failed := errors.New("no screen")
	c, _ = conducted(t, 0, oneNote)
	c.Ask = func(context.Context, inspan.Pending) (event.Body, error) { return nil, failed }
	if err := c.Run(t.Context(), said("go")); !errors.Is(err, failed) {
		t.Errorf("asking failed: %v", err)
	}
}

// TestConductorAnsweredElsewhere checks that an answer from elsewhere withdraws the question and continues the run.
func TestConductorAnsweredElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		together, asks bool
		patience       time.Duration
	}{
		"in turn": {false, true, 0}, "together": {true, true, 0}, "nobody here": {false, false, -1}, "nobody for long": {true, false, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, l := conducted(t, 0, oneNote, "Done.")
				c.AskConcurrently, c.AnswerWait = tc.together, tc.patience
				back := false
				if tc.asks {
					c.Ask = func(ctx context.Context, _ inspan.Pending) (event.Body, error) {
						<-ctx.Done()
						back = errors.Is(context.Cause(ctx), inspan.ErrAnswered)
						return event.Decided{Allow: false}, nil // too late
					}
				}
				ended := make(chan error, 1)
				go func() { ended <- c.Run(t.Context(), said("go")) }()
				synctest.Wait()
				answer, _ := allow(t.Context(), c.Session.Status().Waiting[0])
				if err := c.Session.Send(t.Context(), answer); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err != nil || len(l.runs) != 1 || back != tc.asks {
					t.Errorf("ran %q, taken back %v: %v", l.runs, back, err)
				}
			})
		})
	}
}

// TestConductorPatience checks how long a run waits for an answer from elsewhere.
func TestConductorPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := conducted(t, 0, oneNote)
		c.AnswerWait = time.Minute
		began := time.Now()
		if err := c.Run(t.Context(), said("go")); err != nil || time.Since(began) != time.Minute || len(c.Session.Status().Waiting) != 1 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestConductorTooLate checks that the time for an answer ends for everybody.
func TestConductorTooLate(t *testing.T) {
	for _, together := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, l := conducted(t, time.Minute, oneNote, "Done.")
			c.AskConcurrently = together
			c.Ask = func(ctx context.Context, _ inspan.Pending) (event.Body, error) {
				<-ctx.Done()
				return nil, nil
			}
			if err := c.Run(t.Context(), said("go")); err != nil {
				t.Fatal(err)
			}
			if st := c.Session.Status(); st.Stopped == nil || st.Stopped.Reason != event.ReasonDone || len(l.runs) > 0 {
				t.Errorf("stopped %+v, ran %q", st.Stopped, l.runs)
			}
		})
	}
}

// TestConductorInterrupt checks that an interrupt ends a run in order at whatever it is.
func TestConductorInterrupt(t *testing.T) {
	why := event.Cancelled{By: "ann"}
	ended := func(t *testing.T, c *inspan.Conductor, err error) {
		t.Helper()
		if st := c.Session.Status(); err != nil || st.Stopped == nil || st.Stopped.Reason != event.ReasonCancelled {
			t.Errorf("stopped %+v: %v", st.Stopped, err)
		}
	}
	t.Run("before it", func(t *testing.T) {
		c, l := conducted(t, 0, oneNote, "Done.")
		c.Interrupt(why)
		ended(t, c, c.Run(t.Context(), said("go")))
		if len(l.runs) > 0 {
			t.Errorf("ran %q", l.runs)
		}
	})
	for _, together := range []bool{false, true} {
		t.Run("while it asks", func(t *testing.T) {
			c, l := conducted(t, 0, twoNotes, "Done.")
			c.AskConcurrently = together
			c.Ask = func(ctx context.Context, _ inspan.Pending) (event.Body, error) {
				c.Interrupt(why)
				<-ctx.Done()
				return nil, nil
			}
			ended(t, c, c.Run(t.Context(), said("go")))
			if len(l.runs) > 0 {
				t.Errorf("ran %q", l.runs)
			}
		})
	}
	t.Run("by an answer", func(t *testing.T) {
		c, l := conducted(t, 0, twoNotes, "Done.")
		asked := 0
		c.Ask = func(context.Context, inspan.Pending) (event.Body, error) {
			asked++
			return why, nil
		}
		ended(t, c, c.Run(t.Context(), said("go")))
		if asked != 1 || len(l.runs) > 0 {
			t.Errorf("asked %d times, ran %q", asked, l.runs)
		}
	})
	t.Run("and the next run is another", func(t *testing.T) {
		c, _ := conducted(t, 0, "One.", "Two.")
		if err := c.Run(t.Context(), said("go")); err != nil {
			t.Fatal(err)
		}
		c.Interrupt(why)
		if err := c.Run(t.Context(), said("on")); err != nil || c.Session.Status().Stopped.Reason != event.ReasonDone {
			t.Errorf("stopped %+v: %v", c.Session.Status().Stopped, err)
		}
	})
}

// TestConductorLeave checks that a run whose front end goes away is interrupted, and one that asks is left with its
// question.
func TestConductorLeave(t *testing.T) {
	c, _ := conducted(t, 0, oneNote, "Done.")
	c.AnswerWait = -1
	c.Ask = func(ctx context.Context, _ inspan.Pending) (event.Body, error) {
		c.Detach(event.Cancelled{By: "ann"})
		<-ctx.Done()
		return nil, nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil || len(c.Session.Status().Waiting) != 1 {
		t.Errorf("waiting %+v: %v", c.Session.Status().Waiting, err)
	}
	c, _ = conducted(t, 0, oneNote)
	c.OnEvent = func(e event.Event) error {
		if _, asked := e.Body.(event.Asked); asked {
			c.Detach(event.Cancelled{By: "ann"})
		}
		return nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil || c.Session.Status().Stopped.Reason != event.ReasonCancelled {
		t.Errorf("stopped %+v: %v", c.Session.Status().Stopped, err)
	}
}

// TestConductorBefore checks that events that can't be sent into a run come before it continues.
func TestConductorBefore(t *testing.T) {
	c, l := conducted(t, 0, twoNotes, `call: note {"word":"c"}`, "Done.")
	var held []event.Body
	asked := 0
	c.BeforeRun = func() []event.Body { out := held; held = nil; return out }
	c.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) {
		asked++
		held = []event.Body{event.Switched{Mode: "yolo"}}
		return allow(ctx, p)
	}
	if err := c.Run(t.Context(), said("go")); err != nil || len(l.runs) != 3 || asked != 2 || c.Session.Status().Mode != "yolo" {
		t.Errorf("ran %q, asked %d times: %v", l.runs, asked, err)
	}
}

// TestConductorAfter checks that the inputs of After begin another run, until there are none.
func TestConductorAfter(t *testing.T) {
	c, _ := conducted(t, 0, "One.", "Two.", "Three.")
	after := 0
	c.AfterRun = func(_ context.Context, st inspan.Status) ([]event.Body, error) {
		if after++; st.Stopped == nil || after > 2 {
			return nil, nil
		}
		return []event.Body{said("more")}, nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil || c.Session.Status().Turns != 3 {
		t.Errorf("%d turns: %v", c.Session.Status().Turns, err)
	}
}

// TestConductorSend checks that a run takes up an input sent to it, even at its very end, and that an ended run accepts
// none.
func TestConductorSend(t *testing.T) {
	c, _ := conducted(t, 0, "One.", "Two.")
	first := true
	c.OnEvent = func(e event.Event) error {
		if _, stopped := e.Body.(event.Stopped); stopped && first {
			first = false
			_, err := c.Send(t.Context(), said("and this"))
			return err
		}
		return nil
	}
	if err := c.Run(t.Context(), said("go")); err != nil || c.Session.Status().Turns != 2 {
		t.Errorf("%d turns: %v", c.Session.Status().Turns, err)
	}
	if _, err := c.Send(t.Context(), said("too late")); !errors.Is(err, inspan.ErrRunEnded) {
		t.Errorf("sent into a run that is over: %v", err)
	}
}

// TestConductorGrace checks that a run that does not stop in order is broken off in the end, as by a crash, and that
// without a bound it stops in order whatever that takes.
func TestConductorGrace(t *testing.T) {
	for grace, broken := range map[time.Duration]bool{time.Second: true, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			began, free := make(chan struct{}), make(chan struct{})
			defer close(free)
			hang := tool.New("hang", "", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
				close(began)
				<-free // whatever becomes of the context
				return tool.Text("late"), nil
			})
			hang.Effects = tool.NoEffects
			a := &inspan.Agent{Model: scripted(t, "call: hang {}"), Tools: []tool.Tool{hang}, Env: tool.Env{Root: "/w"}}
			c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s")), Grace: grace}
			go func() {
				<-began
				c.Interrupt(event.Cancelled{By: "ann"})
			}()
			if err := c.Run(t.Context(), said("go")); errors.Is(err, context.Canceled) != broken {
				t.Errorf("with a grace of %v: %v", grace, err)
			}
		})
	}
}

// TestConductorForgives checks that the time limit of an interrupted run does not apply to the next run, whether it was
// queued or comes later.
func TestConductorForgives(t *testing.T) {
	for _, queued := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { forgives(t, queued) })
	}
}

func forgives(t *testing.T, queued bool) {
	began := make(chan struct{}, 2)
	work := tool.New("work", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (tool.Result, error) {
		began <- struct{}{}
		select {
		case <-time.After(time.Minute):
			return tool.Text("done"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	})
	work.Effects = tool.NoEffects
	a := &inspan.Agent{Model: scripted(t, "call: work {}", "call: work {}", "Done."), Tools: []tool.Tool{work}, Env: tool.Env{Root: "/w"}}
	c := &inspan.Conductor{Session: open(t, a, event.NewMemory("s")), Grace: time.Second}
	c.AfterRun = func(_ context.Context, st inspan.Status) ([]event.Body, error) {
		if queued || st.Stopped.Reason != event.ReasonCancelled {
			return nil, nil
		}
		return []event.Body{said("again")}, nil
	}
	go func() {
		<-began
		if queued {
			if _, err := c.Send(t.Context(), said("again")); err != nil {
				t.Error(err)
			}
		}
		c.Interrupt(event.Cancelled{By: "ann"})
	}()
	if err := c.Run(t.Context(), said("go")); err != nil || c.Session.Status().Stopped.Reason != event.ReasonDone {
		t.Errorf("stopped %+v: %v", c.Session.Status().Stopped, err)
	}
}

// mute is a log that can't be followed.
type mute struct {
	*event.Memory
	why error
}

func (m mute) Wait(context.Context, uint64) error { return m.why }

// TestConductorCantFollow checks that a run does not wait for an answer that it could not see.
func TestConductorCantFollow(t *testing.T) {
	gone := errors.New("the disk is gone")
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, oneNote), Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: "/w"}}
	c := &inspan.Conductor{Session: open(t, a, mute{event.NewMemory("s"), gone}), AnswerWait: -1}
	if err := c.Run(t.Context(), said("go")); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// TestAnswerNamesWhatWaits checks that an answer that needs a decision says so.
func TestAnswerNamesWhatWaits(t *testing.T) {
	l := &ledger{}
	a := &inspan.Agent{Model: scripted(t, oneNote), Tools: []tool.Tool{l.writer()}, Env: tool.Env{Root: "/w"}}
	_, err := a.Answer(t.Context(), "go")
	var waits *inspan.WaitingError
	if !errors.As(err, &waits) || len(waits.Waiting) != 1 || !strings.Contains(err.Error(), "note") {
		t.Errorf("%v", err)
	}
}
