package journeys_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// carrier is a workspace that travels: each call of it that changes something is a state.
type carrier struct {
	changes int // that were made
	kept    int // of them in the last state
	asked   []event.Workspace
	err     error
}

func (c *carrier) carry(_ context.Context, last event.Workspace) ([]event.Body, error) {
	c.asked = append(c.asked, last)
	if c.err != nil || last.N > 0 && c.kept == c.changes {
		return nil, c.err
	}
	c.kept = c.changes
	return []event.Body{event.Workspace{Copy: "c", N: last.N + 1, Manifest: fmt.Sprint("m", c.kept)}}, nil
}

func (c *carrier) agent(t *testing.T, replies ...string) *inspan.Agent {
	t.Helper()
	change := func(context.Context, *tool.Call) (tool.Result, error) {
		c.changes++
		return tool.Text("done"), nil
	}
	return &inspan.Agent{
		Model: scripted(t, replies...), Mode: "yolo", Env: tool.Env{Root: "/w"}, Workspace: inspan.Workspace{Sync: c.carry},
		Tools: []tool.Tool{
			does("change", writes("/w/a"), change),
			does("look", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) { return tool.Text("looked"), nil }),
		},
	}
}

// appends is a log that keeps which events were appended together.
type appends struct {
	*event.Memory
	all [][]string
}

func (a *appends) AppendAs(ctx context.Context, by event.Driver, bodies ...event.Body) ([]event.Event, error) {
	var kinds []string
	for _, b := range bodies {
		kinds = append(kinds, b.Kind())
	}
	a.all = append(a.all, kinds)
	return a.Memory.AppendAs(ctx, by, bodies...)
}

// with are the appends that hold a kind.
func (a *appends) with(kind string) (out [][]string) {
	for _, kinds := range a.all {
		if slices.Contains(kinds, kind) {
			out = append(out, kinds)
		}
	}
	return out
}

// TestStateComesWithResults checks that the state of a workspace which travels is in the log from the beginning, and
// with the results of calls that may have changed it, and only then.
func TestStateComesWithResults(t *testing.T) {
	c := &carrier{}
	a := c.agent(t, "call: look {\"word\":\"a\"}", "call: change {\"word\":\"a\"}\ncall: look {\"word\":\"b\"}", "Done.")
	log := &appends{Memory: event.NewMemory("s")}
	s := open(t, a, log)
	collect(t, s.Run(t.Context(), said("go")))
	state := event.Workspace{}.Kind()
	if len(log.with(state)) != 2 || !slices.Contains(log.with(state)[0], "opened") || !slices.Contains(log.with(state)[1], "ended") {
		t.Errorf("states were appended with %v", log.with(state))
	}
	var asked []uint64
	for _, last := range c.asked {
		asked = append(asked, last.N)
	}
	// at the opening, the beginning of the run, after the change and before the stop
	if want := []uint64{0, 1, 1, 2}; !slices.Equal(asked, want) {
		t.Errorf("asked behind states %v, want %v", asked, want)
	}
	if got := s.Status().Workspace; got != (event.Workspace{Copy: "c", N: 2, Manifest: "m1"}) {
		t.Errorf("the session knows the state %+v", got)
	}
	collect(t, s.Run(t.Context(), event.Compact{}))
	again := open(t, c.agent(t, "Done."), log)
	if got := again.Status().Workspace; got.N != 2 {
		t.Errorf("opened again it knows the state %+v", got)
	}
}

// TestStateComesWithWorkBeside checks that the work of a job, or of a process left by a command, is in a stored state
// before the model hears of it: with results, including those of calls that only read, and with requests.
func TestStateComesWithWorkBeside(t *testing.T) {
	for name, goesOn := range map[string]tool.Result{
		"job": {Parts: llm.Say("runs"), Job: &tool.Job{ID: "1", Command: "make"}}, "left": {Parts: llm.Say("done"), LeftProcesses: true},
	} {
		c := &carrier{}
		a := c.agent(t, "call: begin {\"word\":\"a\"}", "call: look {\"word\":\"a\"}", "Done.")
		a.Tools = []tool.Tool{
			does("begin", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) { return goesOn, nil }),
			does("look", reads("/w/a"), func(context.Context, *tool.Call) (tool.Result, error) {
				c.changes++
				return tool.Text("looked"), nil
			}),
		}
		log := &appends{Memory: event.NewMemory("s")}
		for e, err := range open(t, a, log).Run(t.Context(), said("go")) {
			if err != nil {
				t.Error(err)
			}
			if _, ends := e.Body.(event.Ended); ends {
				c.changes++
			}
		}
		var with []string
		for _, kinds := range log.with(event.Workspace{}.Kind()) {
			with = append(with, kinds[len(kinds)-1])
		}
		if want := "workspace asked workspace asked"; strings.Join(with, " ") != want {
			t.Errorf("%s: states were appended with %v, want them to end with %s", name, log.with(event.Workspace{}.Kind()), want)
		}
	}
}

// TestNoResultWithoutItsState checks that a result is not in the log if its state can't be stored: the next driver
// finds a call whose outcome is unknown.
func TestNoResultWithoutItsState(t *testing.T) {
	c := &carrier{}
	a := c.agent(t, "call: change {\"word\":\"a\"}", "Done.")
	log := event.NewMemory("s")
	s := open(t, a, log)
	away := errors.New("the store is away")
	for e, err := range s.Run(t.Context(), said("go")) {
		if _, starts := e.Body.(event.Started); starts {
			c.err = away
		}
		if err != nil && !errors.Is(err, away) {
			t.Error(err)
		}
	}
	if ends := bodiesOf[event.Ended](read(log)); len(ends) > 0 {
		t.Errorf("the log has %+v", ends)
	}
	c.err = nil
	events := collect(t, open(t, c.agent(t, "Checked."), log).Run(t.Context()))
	if end := last[event.Ended](t, events); end.Outcome != event.OutcomeUnknown {
		t.Errorf("the call has ended as %s", end.Outcome)
	}
}

// TestRunBeginsWhereTheWorkspaceIs checks that no run begins, and nothing is claimed, where the workspace is not.
func TestRunBeginsWhereTheWorkspaceIs(t *testing.T) {
	c := &carrier{}
	log := event.NewMemory("s")
	s := open(t, c.agent(t, "Done."), log)
	c.err = errors.New("it has moved on")
	var failed error
	for _, err := range s.Run(t.Context(), said("go")) {
		failed = err
	}
	if !errors.Is(failed, c.err) || len(bodiesOf[event.Claimed](read(log))) > 0 {
		t.Errorf("it ended with %v: %s", failed, kinds(read(log)))
	}
}

// TestStepsCarry checks that the end of a step comes with the state of the workspace.
func TestStepsCarry(t *testing.T) {
	c := &carrier{}
	log := &appends{Memory: event.NewMemory("s")}
	s := open(t, c.agent(t, "Done."), log)
	err := s.Perform(t.Context(), func(ctx context.Context, steps *inspan.Steps) error {
		_, err := steps.Do(ctx, event.StepStarted{Step: "1", Title: "x"}, func(context.Context) (event.StepEnded, error) {
			c.changes++
			return event.StepEnded{}, nil
		})
		return err
	}, said("go"))
	if err != nil {
		t.Fatal(err)
	}
	if got := log.with(event.Workspace{}.Kind()); len(got) != 2 || !slices.Contains(got[1], event.StepEnded{}.Kind()) {
		t.Errorf("states were appended with %v", got)
	}
}

// TestRewindKeepsTheState checks that a rewind of the conversation leaves the workspace in place, and that the file
// changes of a rewind are in a state.
func TestRewindKeepsTheState(t *testing.T) {
	c := &carrier{}
	s := open(t, c.agent(t, "call: change {\"word\":\"a\"}", "Done.", "Done."), event.NewMemory("s"))
	collect(t, s.Run(t.Context(), said("go")))
	before := s.Status()
	collect(t, s.Run(t.Context(), said("more")))
	err := s.Rewind(t.Context(), 4, func(context.Context, *event.Restored) (*event.Restored, error) {
		c.changes++
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Status().Workspace; got.N != before.Workspace.N+1 {
		t.Errorf("behind the rewind the state is %+v, before %+v", got, before.Workspace)
	}
}

// TestCarryThatCrashes checks that a panic in Carry ends the run with an error.
func TestCarryThatCrashes(t *testing.T) {
	opened := false
	a := (&carrier{}).agent(t, "Done.")
	a.Workspace.Sync = func(context.Context, event.Workspace) ([]event.Body, error) {
		if opened {
			panic("boom")
		}
		return nil, nil
	}
	s := open(t, a, event.NewMemory("s"))
	opened = true
	var failed error
	for _, err := range s.Run(t.Context(), said("go")) {
		failed = err
	}
	if failed == nil {
		t.Error("it did not fail")
	}
}

// TestSettingsSurviveAFailedState checks that changed settings of the agent apply once a run begins, even if the state
// of the workspace could not be stored the first time.
func TestSettingsSurviveAFailedState(t *testing.T) {
	log := event.NewMemory("s")
	collect(t, open(t, (&carrier{}).agent(t, "Hello."), log).Run(t.Context(), said("go"))) // in mode yolo
	c := &carrier{}
	a := c.agent(t, "Hello.", "call: change {\"word\":\"a\"}", "Done.")
	a.Mode = tool.ModeAsk
	s := open(t, a, log)
	c.err = errors.New("out of reach")
	for _, err := range s.Run(t.Context(), said("again")) {
		if !errors.Is(err, c.err) {
			t.Errorf("it failed with %v", err)
		}
	}
	c.err = nil
	collect(t, s.Run(t.Context(), said("again")))
	if st := s.Status(); st.Mode != tool.ModeAsk || len(st.Waiting) != 1 || c.changes != 0 {
		t.Errorf("mode %s, %d calls wait, %d changes", st.Mode, len(st.Waiting), c.changes)
	}
}

// TestRestoredThoughTheStateIsNot checks that files which were put back are in the log, even if the state could not
// be kept.
func TestRestoredThoughTheStateIsNot(t *testing.T) {
	c := &carrier{}
	log := event.NewMemory("s")
	s := open(t, c.agent(t, "Done."), log)
	collect(t, s.Run(t.Context(), said("go")))
	err := s.Rewind(t.Context(), 4, func(context.Context, *event.Restored) (*event.Restored, error) {
		c.err = errors.New("out of reach")
		return &event.Restored{To: "1"}, nil
	})
	if !errors.Is(err, c.err) || len(bodiesOf[event.Restored](read(log))) != 1 {
		t.Errorf("failed with %v; %v", err, kinds(read(log)))
	}
}

// crashingLease is a log whose first lease crashes.
type crashingLease struct {
	*event.Memory
	leases int
}

func (l *crashingLease) Lease(context.Context) error {
	if l.leases++; l.leases == 2 { // the first is for the opening
		panic("boom")
	}
	return nil
}

func (l *crashingLease) Release() error { return nil }

// TestLeaseThatCrashes checks that a session can be run again after a panic of its log's lease.
func TestLeaseThatCrashes(t *testing.T) {
	s := open(t, (&carrier{}).agent(t, "Done."), &crashingLease{Memory: event.NewMemory("s")})
	var failed error
	for _, err := range s.Run(t.Context(), said("go")) {
		failed = err
	}
	if failed == nil || !strings.Contains(failed.Error(), "boom") {
		t.Errorf("it failed with %v", failed)
	}
	collect(t, s.Run(t.Context(), said("go")))
}
