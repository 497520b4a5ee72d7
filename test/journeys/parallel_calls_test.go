package journeys_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// TestReadyBeforeTheReply checks that a tool can prepare for a call each time before the model is asked, and knows
// where the call would run.
func TestReadyBeforeTheReply(t *testing.T) {
	var steps []string
	look := does("look", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) {
		steps = append(steps, "call")
		return tool.Text("seen"), nil
	})
	look.Ready = func(c *tool.Call) { steps = append(steps, fmt.Sprint("ready ", c.Env.Root, c.Cwd, " ", c.Mode)) }
	a := inspan.Agent{
		Model: scripted(t, "call: look {\"word\":\"a\"}", "Done."), Mode: "auto", Env: tool.Env{Root: "/w"},
		Tools: []tool.Tool{look, does("other", reads("/w/b"), nil)},
	}
	s := open(t, &a, event.NewMemory("s"))
	for _, err := range s.Run(t.Context(), said("go")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(steps, ", "); got != "ready /w/w auto, call, ready /w/w auto" {
		t.Error(got)
	}
}

// TestEachCallStartsWhenItCan checks that a call which is approved starts at once, however long another of the reply
// takes, and so does one whose only hindrance has ended.
func TestEachCallStartsWhenItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := []tool.Tool{
			does("slow", reads("/w/a"), lasting(2*time.Second)), does("asks", writes("/w/b"), lasting(time.Second)),
			does("behind", reads("/w/b"), lasting(time.Millisecond)),
		}
		reply := "call: slow {\"word\":\"a\"}\ncall: asks {\"word\":\"b\"}\ncall: behind {\"word\":\"c\"}"
		a := inspan.Agent{Model: scripted(t, reply, "Done."), Tools: tools, Mode: "ask", Env: tool.Env{Root: "/w"}}
		s := open(t, &a, event.NewMemory("s"))
		began, at := time.Now(), map[string]time.Duration{}
		names := map[string]string{}
		for e, err := range s.Run(t.Context(), said("go")) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Replied:
				for _, c := range b.Parts.Calls() {
					names[c.ID] = c.Name
				}
			case event.Waiting:
				time.AfterFunc(200*time.Millisecond, func() { send(t, s, event.Decided{Call: b.Call, Allow: true}) })
			case event.Started:
				at[names[b.Call]] = time.Since(began)
			}
		}
		if at["slow"] > 0 || at["asks"] != 200*time.Millisecond || at["behind"] != 1200*time.Millisecond {
			t.Errorf("started at %v", at)
		}
		if got := s.Status(); got.Stopped == nil || got.Stopped.Reason != event.ReasonDone || time.Since(began) != 2*time.Second {
			t.Errorf("%+v after %v", got.Stopped, time.Since(began))
		}
	})
}

// TestWaitingIsSeenWhileOthersRun checks that waiting calls can be decided while others run, and that a run ends with
// waiting calls only after the others have ended.
func TestWaitingIsSeenWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inspan.Agent{
			Model: scripted(t, "call: slow {\"word\":\"a\"}\ncall: asks {\"word\":\"b\"}", "Done."), Mode: "ask", Env: tool.Env{Root: "/w"},
			Tools: []tool.Tool{does("slow", reads("/w/a"), lasting(time.Minute)), does("asks", writes("/w/b"), lasting(0))},
		}
		s := open(t, &a, event.NewMemory("s"))
		began, waiting := time.Now(), 0
		for e, err := range s.Run(t.Context(), said("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(event.Started); ok {
				waiting = len(s.Status().Waiting)
			}
		}
		if st := s.Status(); waiting != 1 || len(st.Waiting) != 1 || len(st.OpenCalls) != 1 || time.Since(began) != time.Minute {
			t.Errorf("%d waited, then %+v after %v", waiting, st.OpenCalls, time.Since(began))
		}
		id := s.Status().Waiting[0].Call.ID
		if got := last[event.Stopped](t, drivenTo(t, s, event.Decided{Call: id, Allow: true})); got.Reason != event.ReasonDone {
			t.Errorf("%+v", got)
		}
	})
}

// TestNoAnswerInTimeWhileOthersRun checks that the time for an answer ends while calls run.
func TestNoAnswerInTimeWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inspan.Agent{
			Model: scripted(t, "call: slow {\"word\":\"a\"}\ncall: asks {\"word\":\"b\"}", "Done."), Mode: "ask", Env: tool.Env{Root: "/w"},
			Approvals: inspan.Approvals{Timeout: time.Minute},
			Tools:     []tool.Tool{does("slow", reads("/w/a"), lasting(time.Hour)), does("asks", writes("/w/b"), lasting(0))},
		}
		began := time.Now()
		for e, err := range open(t, &a, event.NewMemory("s")).Run(t.Context(), said("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Ended); ok && b.Outcome == event.OutcomeDenied && time.Since(began) > 2*time.Minute {
				t.Errorf("denied after %v", time.Since(began))
			}
		}
	})
}

// TestCallsWaitForTheirTurn checks that no more calls run at once than may, that they start in order, and that their
// results are put before the model in order.
func TestCallsWaitForTheirTurn(t *testing.T) {
	for most, want := range map[int]int32{0: 16, 3: 3, 50: 40} {
		synctest.Test(t, func(t *testing.T) {
			var now, peak atomic.Int32
			look := does("look", reads("/w/a"), func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				if n := now.Add(1); n > peak.Load() {
					peak.Store(n)
				}
				defer now.Add(-1)
				return lasting(time.Duration(1+len(c.Args)%3)*time.Second)(ctx, c)
			})
			var reply strings.Builder
			for i := range 40 {
				fmt.Fprintf(&reply, "call: look {\"word\":\"%d\"}\n", 1<<i)
			}
			a := inspan.Agent{
				Model: scripted(t, strings.TrimSpace(reply.String()), "Done."),
				Tools: []tool.Tool{look}, Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Parallel: most},
			}
			s := open(t, &a, event.NewMemory("s"))
			events := drivenTo(t, s, said("go"))
			var asked, started []string
			for _, c := range bodiesOf[event.Replied](events)[0].Parts.Calls() {
				asked = append(asked, c.ID)
			}
			for _, b := range bodiesOf[event.Started](events) {
				started = append(started, b.Call)
			}
			if peak.Load() != want || strings.Join(asked, " ") != strings.Join(started, " ") {
				t.Errorf("%d: %d at once, started %v of %v", most, peak.Load(), started, asked)
			}
		})
	}
}

// TestCheckpointsAroundOverlappingCalls checks that one checkpoint lies before all calls that change something and
// overlap or follow each other, and one behind.
func TestCheckpointsAroundOverlappingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inspan.Agent{
			Model: scripted(t, "call: look {\"word\":\"a\"}\ncall: first {\"word\":\"a\"}\ncall: second {\"word\":\"b\"}\n"+
				"call: third {\"word\":\"b\"}", "Done."), Mode: "ask", Env: tool.Env{Root: "/w"},
			Rules: []inspan.Rule{{Action: tool.Allow, Text: "first"}, {Action: tool.Allow, Text: "third"}},
			Tools: []tool.Tool{
				does("look", reads("/w/c"), lasting(time.Hour)), does("first", writes("/w/a"), lasting(time.Minute)),
				does("second", writes("/w/b"), lasting(2*time.Minute)), does("third", writes("/w/b"), lasting(time.Minute)),
			},
			Workspace: inspan.Workspace{Checkpoint: func(context.Context) (event.Checkpoint, error) { return event.Checkpoint{ID: time.Now().String()}, nil }},
		}
		s := open(t, &a, event.NewMemory("s"))
		var order []string
		for e, err := range s.Run(t.Context(), said("go")) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Waiting:
				time.AfterFunc(30*time.Second, func() { send(t, s, event.Decided{Call: b.Call, Allow: true}) })
			case event.Started, event.Ended:
				order = append(order, e.Body.Kind())
			case event.Checkpoint:
				order = append(order, map[bool]string{false: "before", true: "after"}[b.After])
			}
		}
		if got := strings.Join(order, " "); got != "before started started started ended ended started ended after ended" {
			t.Error(got)
		}
	})
}

// TestInterruptDuringTheCheckpoint checks that a call does not start that was interrupted while the checkpoint before
// it was taken.
func TestInterruptDuringTheCheckpoint(t *testing.T) {
	var s *inspan.Session
	ran := false
	change := does("change", writes("/w/a"), func(context.Context,
		*tool.Call,
	) (tool.Result, error) {
		ran = true
		return tool.Text("done"), nil
	})
	a := inspan.Agent{
		Model: scripted(t, "call: change {\"word\":\"a\"}", "Done."), Tools: []tool.Tool{change}, Mode: "yolo", Env: tool.Env{Root: "/w"},
		Workspace: inspan.Workspace{Checkpoint: func(ctx context.Context) (event.Checkpoint, error) {
			return event.Checkpoint{ID: "c"}, s.Send(ctx, event.Cancelled{By: "ann"})
		}},
	}
	s = open(t, &a, event.NewMemory("s"))
	events := drivenTo(t, s, said("go"))
	if n := len(bodiesOf[event.Started](events)); n > 0 || ran || last[event.Ended](t, events).Outcome != event.OutcomeCancelled {
		t.Errorf("%d started: %s", n, kinds(events))
	}
}

// TestCallsAreWaitedFor checks that no call runs on after its consumer has left, the program ends or another driver has
// come, and that results are stored if possible.
func TestCallsAreWaitedFor(t *testing.T) {
	for name, end := range map[string]func(context.CancelFunc, *event.Memory) bool{
		"broken off":  func(context.CancelFunc, *event.Memory) bool { return false },
		"program":     func(stop context.CancelFunc, _ *event.Memory) bool { stop(); return true },
		"interrupted": func(_ context.CancelFunc, log *event.Memory) bool { return appended(log, event.Cancelled{}) == nil },
		"fenced": func(_ context.CancelFunc, log *event.Memory) bool {
			events := read(log)
			_, err := log.AppendAs(context.Background(), event.Driver{Epoch: 9, After: events[len(events)-1].Seq}, event.Claimed{Epoch: 9})
			return err == nil && appended(log, event.Steered{}) == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var running atomic.Int32
			look := does("look", reads("/w/a"), func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done()
				return tool.Text("so far"), ctx.Err()
			})
			log := event.NewMemory("s")
			a := inspan.Agent{
				Model: scripted(t, "call: look {\"word\":\"a\"}\ncall: look {\"word\":\"b\"}", "Done."),
				Tools: []tool.Tool{look}, Env: tool.Env{Root: "/w"},
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			started := 0
			for e, err := range open(t, &a, log).Run(ctx, said("go")) {
				if err != nil {
					break
				}
				if _, ok := e.Body.(event.Started); ok {
					if started++; started == 2 && !end(stop, log) {
						break
					}
				}
			}
			ended := len(bodiesOf[event.Ended](read(log)))
			if want := map[string]int{"fenced": 0, "broken off": 0}; running.Load() != 0 ||
				name != "broken off" && ended != 2 && want[name] != ended {
				t.Errorf("%d run, %d ended", running.Load(), ended)
			}
		})
	}
}

func appended(log event.Log, body event.Body) error {
	_, err := log.Append(context.Background(), body)
	return err
}

// BenchmarkManyCalls measures the overhead of many calls in one reply, for the whole turn.
func BenchmarkManyCalls(b *testing.B) {
	const n = 800
	var reply strings.Builder
	for i := range n {
		fmt.Fprintf(&reply, "call: touch {\"word\":\"%d\"}\n", i)
	}
	for name, effect := range map[string]tool.Effect{"reading": reads("/w/a"), "conflicting": writes("/w/a")} {
		b.Run(name, func(b *testing.B) {
			touch := does("touch", effect, func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("ok"), nil })
			for b.Loop() {
				a := inspan.Agent{
					Model: scripted(b, strings.TrimSpace(reply.String()), "Done."),
					Tools: []tool.Tool{touch}, Mode: "yolo", Env: tool.Env{Root: "/w"},
				}
				ended := 0
				for e, err := range open(b, &a, event.NewMemory("s")).Run(b.Context(), said("go")) {
					if err != nil {
						b.Fatal(err)
					}
					if _, ok := e.Body.(event.Ended); ok {
						ended++
					}
				}
				if ended != n {
					b.Fatalf("%d ended", ended)
				}
			}
		})
	}
}
