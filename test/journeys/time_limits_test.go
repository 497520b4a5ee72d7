package journeys_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestDelegatingIsNotBounded checks that the time limit of calls does not apply to calls that delegate work, which have
// limits of their own.
func TestDelegatingIsNotBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := does("child", reads("/w/a"), lasting(20*time.Minute))
		child.Delegates = true
		own := does("own", reads("/w/a"), lasting(20*time.Minute))
		a := inspan.Agent{
			Model: scripted(t, "call: child {\"word\":\"a\"}", "call: own {\"word\":\"a\"}", "Done."),
			Tools: []tool.Tool{child, own}, Env: tool.Env{Root: "/w"},
		}
		ended := bodiesOf[event.Ended](drivenTo(t, open(t, &a, event.NewMemory("s")), said("go")))
		if ended[0].Outcome != event.OutcomeOK || ended[1].Outcome != event.OutcomeFailed ||
			!strings.Contains(ended[1].Parts.Text(), "stopped after 15m0s") {
			t.Errorf("%+v", ended)
		}
	})
}

// TestWaitingForAPersonTakesNoTime checks that a call that asks continues with its remaining time, and that the wait
// does not count as time of the run.
func TestWaitingForAPersonTakesNoTime(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration // the answer it works so long
		want  event.Outcome
	}{"in time": {4 * time.Minute, event.OutcomeOK}, "too long": {6 * time.Minute, event.OutcomeFailed}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asks := does("asks", reads("/w/a"), func(ctx context.Context, c *tool.Call) (tool.Result, error) {
					if res, err := lasting(10*time.Minute)(ctx, c); err != nil {
						return res, err
					}
					if _, err := c.Ask(ctx, "well?", nil); err != nil {
						return tool.Result{}, err
					}
					return lasting(tc.after)(ctx, c)
				})
				a := inspan.Agent{
					Model: scripted(t, "call: asks {\"word\":\"a\"}", "Done."),
					Tools: []tool.Tool{asks}, Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Time: time.Hour},
				}
				s := open(t, &a, event.NewMemory("s"))
				var ended event.Ended
				for e, err := range s.Run(t.Context(), said("go")) {
					if err != nil {
						t.Fatal(err)
					}
					switch b := e.Body.(type) {
					case event.Raised:
						time.AfterFunc(72*time.Hour, func() { send(t, s, event.Decided{Call: b.ID, Allow: true, Answer: "yes"}) })
					case event.Ended:
						ended = b
					}
				}
				took := 10*time.Minute + min(tc.after, 5*time.Minute)
				if st := s.Status(); ended.Outcome != tc.want || st.Stopped.Reason != event.ReasonDone || st.Seconds != took.Seconds() {
					t.Errorf("%s, %+v after %v s", ended.Outcome, st.Stopped, st.Seconds)
				}
			})
		})
	}
}

// late is a model that answers only after an hour; patient does so even if its caller has left.
type late struct {
	script.Model
	patient bool
}

func (m *late) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if !yield(llm.Chunk{Text: "I think"}, nil) {
			return
		}
		if m.patient {
			ctx = context.WithoutCancel(ctx)
		}
		if _, err := lasting(time.Hour)(ctx, nil); err != nil {
			yield(llm.Chunk{}, llm.AsError(err))
			return
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: llm.Say("I think so."), Stop: llm.StopEnd, Route: "t/m"}}, nil)
	}
}

// TestTimeOfARunIsADeadline checks that work in progress is stopped when the time of a run is used up, that its results
// so far are kept, and that a higher limit continues it.
func TestTimeOfARunIsADeadline(t *testing.T) {
	slow := does("slow", reads("/w/a"), lasting(15*time.Second))
	asks := does("asks", writes("/w/a"), lasting(0))
	calls := "call: slow {\"word\":\"a\"}\ncall: asks {\"word\":\"a\"}"
	for name, tc := range map[string]struct {
		model  llm.Model
		within func(*testing.T, *inspan.Session, event.Event)
		took   time.Duration
		want   event.Reason
	}{
		"a call":              {model: scripted(t, calls, "Done."), took: 2 * time.Second, want: event.ReasonMaxTime},
		"the model":           {model: &late{}, took: 2 * time.Second, want: event.ReasonMaxTime},
		"an answer after all": {model: &late{patient: true}, took: time.Hour, want: event.ReasonDone},
		"a wait for the model": {
			model: &vendor{answers: []answer{fails(llm.KindOverloaded, 30*time.Second)}},
			took:  2 * time.Second, want: event.ReasonMaxTime,
		},
		"a child":               {model: scripted(t, "Done."), within: spawning, took: 2 * time.Second, want: event.ReasonMaxTime},
		"an answer of a person": {model: scripted(t, "Done."), within: raising, took: 48*time.Hour + 2*time.Second, want: event.ReasonMaxTime},
		"enough time":           {model: scripted(t, "call: look {\"word\":\"a\"}", "Done."), want: event.ReasonDone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				look := does("look", reads("/w/b"), lasting(0))
				a := inspan.Agent{
					Model: tc.model, Tools: []tool.Tool{slow, asks, look},
					Mode: "yolo", Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Time: 2 * time.Second},
				}
				log := event.NewMemory("s")
				s, began := open(t, &a, log), time.Now()
				for e, err := range s.Run(t.Context(), said("go")) {
					if err != nil {
						t.Fatal(err)
					}
					if tc.within != nil {
						tc.within(t, s, e)
					}
				}
				took := time.Since(began).Truncate(time.Second)
				if got := s.Status().Stopped; got == nil || got.Reason != tc.want || took != tc.took {
					t.Fatalf("%+v after %v: %s", got, took, kinds(read(log)))
				}
				for _, b := range bodiesOf[event.Ended](read(log)) {
					if tc.want == event.ReasonMaxTime && (b.Outcome != event.OutcomeCancelled ||
						!strings.Contains(b.Parts.Text(), "time of the run is used up")) {
						t.Errorf("%+v", b)
					}
				}
				if tc.want != event.ReasonMaxTime {
					return
				}
				if again := last[event.Stopped](t, drivenTo(t, s, event.Said{})); again.Reason != event.ReasonMaxTime {
					t.Errorf("again: %+v", again)
				}
				more := inspan.Agent{Model: scripted(t, "Done.", "Done.", "Done."), Tools: a.Tools, Mode: "yolo", Env: a.Env, Limits: inspan.Limits{Time: time.Hour}}
				if got := last[event.Stopped](t, drivenTo(t, open(t, &more, log), event.Said{})); got.Reason != event.ReasonDone {
					t.Errorf("with more time: %+v", got)
				}
			})
		})
	}
}

// spawning has a child that never comes back.
func spawning(t *testing.T, s *inspan.Session, e event.Event) {
	if _, ok := e.Body.(event.Replied); ok {
		send(t, s, event.Spawned{Child: "s.1", Background: true})
	}
	if _, ok := e.Body.(event.Stopped); ok {
		send(t, s, event.Returned{Child: "s.1"})
	}
}

// raising has a child that asks, gets an answer after two days, and never comes back.
func raising(t *testing.T, s *inspan.Session, e event.Event) {
	spawning(t, s, e)
	switch b := e.Body.(type) {
	case event.Spawned:
		send(t, s, event.Raised{ID: "q", Child: "s.1", Tool: "change"})
	case event.Raised:
		time.AfterFunc(48*time.Hour, func() { send(t, s, event.Decided{Call: b.ID}) })
	}
}

// TestIdleTimeIsNotTheRuns checks that time between two drivers or two runs does not count as time of a run, whatever
// was appended meanwhile.
func TestIdleTimeIsNotTheRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := event.NewMemory("s")
		a := inspan.Agent{
			Model: scripted(t, "call: slow {\"word\":\"a\"}", "Done.", "Done."),
			Tools: []tool.Tool{does("slow", writes("/w/a"), lasting(3*time.Second))},
			Mode:  "yolo", Env: tool.Env{Root: "/w"}, Limits: inspan.Limits{Time: 8 * time.Second},
		}
		s := open(t, &a, log)
		play(t, &a, log, func(_ *inspan.Session, e event.Event) bool { return e.Body.Kind() != "started" }, said("go"))
		time.Sleep(11 * time.Second)
		send(t, s, event.Steered{Origin: event.OriginPerson, Parts: llm.Say("and quickly")})
		time.Sleep(24 * time.Hour)
		s = open(t, &a, log)
		if got := last[event.Stopped](t, drivenTo(t, s)); got.Reason != event.ReasonDone || s.Status().Seconds > 4 {
			t.Errorf("%+v after %v s", got, s.Status().Seconds)
		}
		time.Sleep(24 * time.Hour)
		if got := last[event.Stopped](t, drivenTo(t, s, said("more"))); got.Reason != event.ReasonDone || s.Status().Seconds > 0 {
			t.Errorf("%+v after %v s", got, s.Status().Seconds)
		}
	})
}

// TestACallThatDoesNotStop checks that a call that ignores its cancellation is left to itself, and that neither the run
// nor the end of the session waits for it.
func TestACallThatDoesNotStop(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*inspan.Agent)
		at     func(*inspan.Session, context.CancelFunc) error
		want   event.Reason
		took   time.Duration
	}{
		"interrupted": {
			at: func(s *inspan.Session, _ context.CancelFunc) error {
				return s.Send(context.Background(), event.Cancelled{})
			},
			want: event.ReasonCancelled, took: 10 * time.Second,
		},
		"time-out":      {change: func(a *inspan.Agent) { a.Limits.CallTime = time.Minute }, want: event.ReasonDone, took: 70 * time.Second},
		"time of a run": {change: func(a *inspan.Agent) { a.Limits.Time = time.Minute }, want: event.ReasonMaxTime, took: 70 * time.Second},
		"program":       {at: func(_ *inspan.Session, stop context.CancelFunc) error { stop(); return nil }, took: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, release := make(chan struct{}), make(chan struct{})
				defer close(release)
				deaf := does("deaf", writes("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) {
					close(began)
					<-release
					return tool.Text("much later"), nil
				})
				a := inspan.Agent{
					Model: scripted(t, "call: deaf {\"word\":\"a\"}", "Done."),
					Tools: []tool.Tool{deaf}, Mode: "yolo", Env: tool.Env{Root: "/w"},
				}
				if tc.change != nil {
					tc.change(&a)
				}
				log := event.NewMemory("s")
				s, at := open(t, &a, log), time.Now()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for e, err := range s.Run(ctx, said("go")) {
					if err != nil && ctx.Err() == nil {
						t.Fatal(err)
					}
					if _, started := e.Body.(event.Started); started && tc.at != nil {
						go func() {
							<-began
							if err := tc.at(s, stop); err != nil {
								t.Error(err)
							}
						}()
					}
				}
				end := last[event.Ended](t, read(log))
				if end.Outcome != event.OutcomeUnknown || !strings.Contains(end.Parts.Text(), "may still be running") {
					t.Errorf("%+v", end)
				}
				if st := s.Status(); tc.want != "" && st.Stopped.Reason != tc.want || time.Since(at).Truncate(time.Second) != tc.took {
					t.Errorf("%+v after %v", st.Stopped, time.Since(at))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
