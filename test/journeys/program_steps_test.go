package journeys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

// step is one that brings a number, and is written down when it is performed.
func step(ran *[]string, mu *sync.Mutex, id string, again bool) (event.StepStarted, func(context.Context) (event.StepEnded, error)) {
	return event.StepStarted{Step: id, Does: "count", Input: json.RawMessage(fmt.Sprintf(`{"of": %q}`, id)), Again: again},
		func(context.Context) (event.StepEnded, error) {
			mu.Lock()
			defer mu.Unlock()
			*ran = append(*ran, id)
			return event.StepEnded{Result: json.RawMessage(`{"n":` + fmt.Sprint(len(id)) + `}`)}, nil
		}
}

// program performs four steps, two of them side by side.
func program(ran *[]string, results *[]string) func(context.Context, *inspan.Steps) error {
	var mu sync.Mutex
	return func(ctx context.Context, steps *inspan.Steps) error {
		do := func(id string, again bool) (event.StepEnded, error) {
			s, f := step(ran, &mu, id, again)
			end, err := steps.Do(ctx, s, f)
			mu.Lock()
			defer mu.Unlock()
			*results = append(*results, fmt.Sprintf("%s %s %s", id, end.Outcome, end.Result))
			return end, err
		}
		if _, err := do("a", false); err != nil {
			return err
		}
		var both sync.WaitGroup
		errs := make([]error, 2)
		both.Go(func() { _, errs[0] = do("bb", true) })
		both.Go(func() { _, errs[1] = do("ccc", false) })
		both.Wait()
		_, err := do("dddd", false)
		return errors.Join(append(errs, err)...)
	}
}

// TestSteps checks that a session without a model performs steps, and that a second process returns the results of the
// first without performing the steps again.
func TestSteps(t *testing.T) {
	log := event.NewMemory("s")
	var ran, results []string
	for range 2 {
		s := open(t, &inspan.Agent{}, log)
		results = nil
		if err := s.Perform(t.Context(), program(&ran, &results)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(results)
		if want := []string{`a ok {"n":1}`, `bb ok {"n":2}`, `ccc ok {"n":3}`, `dddd ok {"n":4}`}; !slices.Equal(results, want) {
			t.Errorf("results %q", results)
		}
	}
	if len(ran) != 4 {
		t.Errorf("performed %q", ran)
	}
}

// pausing is a log in which the run is paused just before its first step is stored.
type pausing struct {
	event.Log
	late sync.Once
}

func (l *pausing) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	if _, begins := bodies[0].(event.StepStarted); begins {
		l.late.Do(func() { _, _ = l.Append(ctx, event.Paused{Until: time.Now().Add(time.Hour), Cause: llm.KindQuota}) })
	}
	return l.Log.AppendAs(ctx, as, bodies...)
}

// TestPausedAtTheLastMoment checks that no step begins in a pause that comes while it is about to be stored.
func TestPausedAtTheLastMoment(t *testing.T) {
	log := &pausing{Log: event.NewMemory("s")}
	err := open(t, &inspan.Agent{}, log).Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
		if _, err := log.Append(ctx, event.Said{Parts: llm.Say("begin")}); err != nil {
			return err
		}
		_, err := steps.Do(ctx, event.StepStarted{Step: "a", Does: "count"}, func(context.Context) (event.StepEnded, error) {
			t.Error("the step has begun")
			return event.StepEnded{}, nil
		})
		return err
	})
	if !errors.Is(err, inspan.ErrPaused) {
		t.Errorf("the step is refused with %v", err)
	}
}

// TestStepsKilled checks that every step has one outcome, wherever between two events the program dies, and that none
// which ended is performed again.
func TestStepsKilled(t *testing.T) {
	first := event.NewMemory("s")
	var all, none []string
	if err := open(t, &inspan.Agent{}, first).Perform(t.Context(), program(&all, &none)); err != nil {
		t.Fatal(err)
	}
	whole := collect(t, first.Read(t.Context(), 0))
	for cut := range whole {
		log, _ := replayed(t, whole[:cut+1])
		begun, ended := map[string]bool{}, map[string]bool{}
		for _, e := range whole[:cut+1] {
			switch b := e.Body.(type) {
			case event.StepStarted:
				begun[b.Step] = true
			case event.StepEnded:
				ended[b.Step] = true
			}
		}
		var ran, results []string
		if err := open(t, &inspan.Agent{}, log).Perform(t.Context(), program(&ran, &results)); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "bb", "ccc", "dddd"} {
			lost := begun[id] && !ended[id]
			if again := slices.Contains(ran, id); again != (!ended[id] && (!lost || id == "bb")) {
				t.Errorf("cut at %d: %s was performed: %t", cut, id, again)
			}
			unknown := slices.ContainsFunc(results, func(r string) bool { return strings.HasPrefix(r, id+" unknown") })
			if unknown != (lost && id != "bb") {
				t.Errorf("cut at %d: %s is unknown: %t", cut, id, unknown)
			}
		}
	}
}

// TestStepsThatFail checks steps that fail, panic, are interrupted, have no id, or have changed since.
func TestStepsThatFail(t *testing.T) {
	s := open(t, &inspan.Agent{}, event.NewMemory("s"))
	err := s.Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
		end, err := steps.Do(ctx, event.StepStarted{Step: "fails"}, func(context.Context) (event.StepEnded, error) {
			return event.StepEnded{}, errors.New("no luck")
		})
		if err != nil || end.Outcome != event.OutcomeFailed || end.Error != "no luck" || end.Class != fault.ErrorTool {
			t.Errorf("fails: %+v, %v", end, err)
		}
		end, err = steps.Do(ctx, event.StepStarted{Step: "panics"}, func(context.Context) (event.StepEnded, error) { panic("boom") })
		if err != nil || end.Outcome != event.OutcomeFailed || end.Class != fault.ErrorPanic {
			t.Errorf("panics: %+v, %v", end, err)
		}
		if _, err = steps.Do(ctx, event.StepStarted{}, nil); err == nil {
			t.Error("a step without an id was performed")
		}
		changed := event.StepStarted{Step: "fails", Does: "else"}
		if _, err = steps.Do(ctx, changed, nil); !errors.Is(err, inspan.ErrStepChanged) {
			t.Errorf("a step that has changed: %v", err)
		}
		end, err = steps.Do(ctx, event.StepStarted{Step: "hangs"}, func(ctx context.Context) (event.StepEnded, error) {
			if err := s.Send(ctx, event.Cancelled{By: "me"}); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return event.StepEnded{}, ctx.Err()
		})
		if err != nil || end.Outcome != event.OutcomeCancelled {
			t.Errorf("hangs: %+v, %v", end, err)
		}
		if err := s.Perform(ctx, nil); !errors.Is(err, inspan.ErrBusy) {
			t.Errorf("performed beside itself: %v", err)
		}
		return context.Cause(ctx)
	})
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("ended with %v", err)
	}
	if _, err := (&inspan.Agent{}).Answer(t.Context(), "hi"); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("asked without a model: %v", err)
	}
}

// TestStepsAreStopped checks that a step which is stopped with the program has no outcome, so that it can be performed
// again, and that none outlives Perform or begins after it.
func TestStepsAreStopped(t *testing.T) {
	log := event.NewMemory("s")
	step := event.StepStarted{Step: "long", Again: true}
	ctx, stop := context.WithCancel(t.Context())
	var late *inspan.Steps
	err := open(t, &inspan.Agent{}, log).Perform(ctx, func(ctx context.Context, steps *inspan.Steps) error {
		late = steps
		_, err := steps.Do(ctx, step, func(ctx context.Context) (event.StepEnded, error) {
			stop()
			<-ctx.Done()
			return event.StepEnded{}, ctx.Err()
		})
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if _, err := late.Do(t.Context(), event.StepStarted{Step: "late"}, nil); err == nil {
		t.Error("a step was performed after all")
	}
	begun, ended := make(chan bool), false
	s := open(t, &inspan.Agent{}, log)
	err = s.Perform(t.Context(), func(_ context.Context, steps *inspan.Steps) error {
		go func() {
			_, _ = steps.Do(context.WithoutCancel(t.Context()), step, func(ctx context.Context) (event.StepEnded, error) {
				close(begun)
				<-ctx.Done()
				ended = true
				return event.StepEnded{}, ctx.Err()
			})
		}()
		<-begun
		return nil
	})
	if err != nil || !ended {
		t.Errorf("Perform returned before its step: %t, %v", ended, err)
	}
	err = s.Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
		end, err := steps.Do(ctx, step, func(context.Context) (event.StepEnded, error) { return event.StepEnded{}, nil })
		if end.Outcome != event.OutcomeOK {
			t.Errorf("performed again it is %s", end.Outcome)
		}
		for want, bad := range map[string]event.StepEnded{
			"the result of the step is not JSON": {Result: json.RawMessage("{")}, `the outcome of a step can't be "banana"`: {Outcome: "banana"},
		} {
			end, bad := steps.Do(ctx, event.StepStarted{Step: want}, func(context.Context) (event.StepEnded, error) { return bad, nil })
			if bad != nil || end.Outcome != event.OutcomeFailed || end.Error != want {
				t.Errorf("%s: %+v, %v", want, end, bad)
			}
		}
		if _, err := steps.Do(ctx, event.StepStarted{Step: "input", Input: json.RawMessage("[")}, nil); err == nil {
			t.Error("input that is not JSON was taken")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStepsKeepSecrets checks that a step that works on a secret is known again.
func TestStepsKeepSecrets(t *testing.T) {
	a := &inspan.Agent{Secrets: inspan.Secrets{Values: func() map[string]string { return map[string]string{"DEPLOY_TOKEN": "hunterzq77wkk31vx"} }}}
	log := event.NewMemory("s")
	s := open(t, a, log)
	performed := 0
	for range 2 {
		err := s.Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
			_, err := steps.Do(ctx, event.StepStarted{Step: "a", Input: json.RawMessage(`{"token":"hunterzq77wkk31vx"}`)},
				func(context.Context) (event.StepEnded, error) {
					performed++
					return event.StepEnded{Result: json.RawMessage(`"hunterzq77wkk31vx"`)}, nil
				})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range collect(t, log.Read(t.Context(), 0)) {
		if raw, err := event.Encode(e); err != nil || strings.Contains(string(raw), "hunterzq") {
			t.Errorf("%s %v", raw, err)
		}
	}
	if performed != 1 {
		t.Errorf("performed %d times", performed)
	}
}

// TestStepsOfARun checks how a run ends that a program performs for a message: as done, as failed, or where it was
// left, and that a limit lets no step begin.
func TestStepsOfARun(t *testing.T) {
	run := func(s *inspan.Session, do func(context.Context, *inspan.Steps) error, inputs ...event.Body) error {
		return s.Perform(t.Context(), do, inputs...)
	}
	reason := func(s *inspan.Session) event.Reason {
		if st := s.Status().Stopped; st != nil {
			return st.Reason
		}
		return ""
	}
	s := open(t, &inspan.Agent{}, event.NewMemory("s"))
	nothing := func(context.Context, *inspan.Steps) error { return nil }
	if err := run(s, nothing, event.Say("do it")); err != nil || reason(s) != event.ReasonDone {
		t.Errorf("a run that is done: %v, %q", err, reason(s))
	}
	s = open(t, &inspan.Agent{}, event.NewMemory("s"))
	if err := run(s, func(context.Context, *inspan.Steps) error { return errors.New("broke") }, event.Say("do it")); err == nil ||
		reason(s) != event.ReasonFailed || s.Status().Stopped.Detail != "broke" {
		t.Errorf("a run that failed: %v, %q", err, reason(s))
	}
	s = open(t, &inspan.Agent{Limits: inspan.Limits{Cost: 1}}, event.NewMemory("s"))
	spend := func(ctx context.Context, steps *inspan.Steps) error {
		for _, id := range []string{"a", "b"} {
			_, err := steps.Do(ctx, event.StepStarted{Step: id}, func(context.Context) (event.StepEnded, error) {
				return event.StepEnded{Cost: 1}, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(s, spend, event.Say("do it")); err != nil || reason(s) != event.ReasonBudget {
		t.Errorf("a run beyond its limit: %v, %q", err, reason(s))
	}
	if err := run(s, spend, event.Switched{Limits: &event.Limits{Cost: 3}}, event.Said{}); err != nil || reason(s) != event.ReasonDone {
		t.Errorf("the same with a higher limit: %v, %q", err, reason(s))
	}
}

// TestStepsAsk checks that a question of a step outlives the process that asked it, and is asked once.
func TestStepsAsk(t *testing.T) {
	log := event.NewMemory("s")
	var answers []string
	program := func(ctx context.Context, steps *inspan.Steps) error {
		_, err := steps.Do(ctx, event.StepStarted{Step: "ok?", Again: true}, func(ctx context.Context) (event.StepEnded, error) {
			d, err := steps.Ask(ctx, "ok?", event.Raised{Tool: "ask_user", Args: json.RawMessage(`{"question":"Ok?"}`)})
			answers = append(answers, d.Answer)
			return event.StepEnded{}, err
		})
		return err
	}
	s := open(t, &inspan.Agent{Unattended: true, Program: inspan.Program{Run: program}}, log)
	c := inspan.Conductor{Session: s}
	if err := c.Run(t.Context(), event.Say("do it")); err != nil {
		t.Fatal(err)
	}
	st := s.Status()
	if st.Stopped != nil || len(st.Raised) != 1 {
		t.Fatalf("nobody is there: %+v, %+v", st.Stopped, st.Raised)
	}
	if err := s.Send(t.Context(), event.Decided{Call: st.Raised[0].ID, Question: st.Raised[0].Seq, Allow: true, Answer: "yes"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again := open(t, &inspan.Agent{Program: inspan.Program{Run: program}}, log)
		c = inspan.Conductor{Session: again}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(answers) != "[ yes]" {
		t.Errorf("answers %q", answers)
	}
	raised := 0
	for _, e := range collect(t, log.Read(t.Context(), 0)) {
		if _, ok := e.Body.(event.Raised); ok {
			raised++
		}
	}
	if raised != 1 {
		t.Errorf("asked %d times", raised)
	}
	// Someone there answers through the conductor.
	s = open(t, &inspan.Agent{Program: inspan.Program{Run: program}}, event.NewMemory("t"))
	c = inspan.Conductor{Session: s, Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
		return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, Answer: "here"}, nil
	}}
	if err := c.Run(t.Context(), event.Say("do it")); err != nil || answers[len(answers)-1] != "here" || s.Status().Stopped == nil {
		t.Errorf("%q, %v", answers, err)
	}
}

// TestStepsInterrupted checks that a step that may be performed again stays open when the run is interrupted, and
// continues with the next run.
func TestStepsInterrupted(t *testing.T) {
	var s *inspan.Session
	tries := 0
	program := func(ctx context.Context, steps *inspan.Steps) error {
		_, err := steps.Do(ctx, event.StepStarted{Step: "long", Again: true}, func(ctx context.Context) (event.StepEnded, error) {
			if tries++; tries > 1 {
				return event.StepEnded{}, nil
			}
			if err := s.Send(ctx, event.Cancelled{By: "me"}); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return event.StepEnded{}, ctx.Err()
		})
		return err
	}
	s = open(t, &inspan.Agent{Program: inspan.Program{Run: program}}, event.NewMemory("s"))
	c := inspan.Conductor{Session: s}
	err := c.Run(t.Context(), event.Say("do it"))
	if st := s.Status().Stopped; err != nil || st == nil || st.Reason != event.ReasonCancelled {
		t.Fatalf("interrupted: %v, %+v", err, s.Status().Stopped)
	}
	if err := c.Run(t.Context(), event.Said{}); err != nil || s.Status().Stopped.Reason != event.ReasonDone || tries != 2 {
		t.Errorf("gone on: %v, %+v after %d tries", err, s.Status().Stopped, tries)
	}
}

// TestStepsShowOthers checks that events that others append during a step are shown at once: a question of an agent
// that works for the step does not wait for another event.
func TestStepsShowOthers(t *testing.T) {
	asked := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	log := event.NewMemory("s")
	begun := make(chan struct{})
	s := open(t, &inspan.Agent{Program: inspan.Program{Run: func(ctx context.Context, steps *inspan.Steps) error {
		_, err := steps.Do(ctx, event.StepStarted{Step: "a", Does: "wait"}, func(ctx context.Context) (event.StepEnded, error) {
			close(begun)
			select {
			case <-asked:
				return event.StepEnded{}, nil
			case <-ctx.Done():
				return event.StepEnded{}, ctx.Err()
			}
		})
		return err
	}}}, log)
	var sent error
	var sending sync.WaitGroup
	sending.Go(func() {
		<-begun
		sent = s.Send(ctx, event.Steered{Origin: event.OriginPerson, Parts: llm.Say("hurry"), By: "ann"})
	})
	for e, err := range s.Run(ctx, event.Say("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(event.Steered); ok {
			close(asked)
		}
	}
	sending.Wait()
	if st := s.Status(); sent != nil || st.Stopped == nil || st.Stopped.Reason != event.ReasonDone {
		t.Errorf("%v, %+v", sent, st.Stopped)
	}
}

// TestStepsAskAgainInAFork checks that a fork asks the original's question again: the original's answer does not apply
// to it.
func TestStepsAskAgainInAFork(t *testing.T) {
	program := func(ctx context.Context, steps *inspan.Steps) error {
		_, err := steps.Do(ctx, event.StepStarted{Step: "ok", Again: true}, func(ctx context.Context) (event.StepEnded, error) {
			_, err := steps.Ask(ctx, "ok", event.Raised{Tool: "ask_user", Args: json.RawMessage(`{"question":"Ok?"}`)})
			return event.StepEnded{}, err
		})
		return err
	}
	log := event.NewMemory("s")
	s := open(t, &inspan.Agent{Unattended: true, Program: inspan.Program{Run: program}}, log)
	if err := (&inspan.Conductor{Session: s}).Run(t.Context(), event.Say("do it")); err != nil {
		t.Fatal(err)
	}
	whole := collect(t, log.Read(t.Context(), 0))
	fork := event.NewMemory("f", append(slices.Clip(whole), event.Event{
		Seq: uint64(len(whole)) + 1, Time: time.Now(), Session: "f", Body: event.Forked{From: "s", Seq: uint64(len(whole))},
	})...)
	s = open(t, &inspan.Agent{Unattended: true, Program: inspan.Program{Run: program}}, fork)
	for _, inputs := range [][]event.Body{nil, {event.Said{}}} { // what the original was about ends here first
		if err := (&inspan.Conductor{Session: s}).Run(t.Context(), inputs...); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Status(); len(st.Raised) != 1 {
		t.Errorf("the fork has open questions %+v, stopped %+v", st.Raised, st.Stopped)
	}
}
