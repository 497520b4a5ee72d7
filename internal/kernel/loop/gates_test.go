package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// alone is an unattended session with the default levers.
func alone(t *testing.T, levers event.Levers, bodies ...event.Body) *tape {
	t.Helper()
	tp := &tape{t, &loop.State{}}
	tp.add(event.Opened{Format: 1, Root: "/w", Levers: levers.Stated()},
		event.Switched{Route: "a/b", Mode: "auto", Limits: &event.Limits{Turns: 200}},
		event.Claimed{Epoch: 1, Unattended: true})
	tp.add(bodies...)
	return tp
}

func (tp *tape) answer(text string) {
	tp.t.Helper()
	tp.add(event.Asked{Turn: tp.Run.Turn + 1}, reply(llm.StopEnd, llm.Text{Text: text}))
}

// does lets the model make a call with an end.
func (tp *tape) does(name string, end event.Ended, effects ...tool.Effect) {
	tp.t.Helper()
	id := fmt.Sprint("c", tp.Seq)
	end.Call, end.Outcome = id, event.OutcomeOK
	tp.add(event.Asked{Turn: tp.Run.Turn + 1}, reply(llm.StopCalls, call(id, name)), allowed(id, effects...), event.Started{Call: id}, end)
}

func (tp *tape) runs(command string, exit int, class tool.Class) {
	tp.t.Helper()
	tp.does("bash", event.Ended{Exit: &exit}, tool.Effect{Kind: tool.Execute, Text: command, Class: class})
}

// steered performs the action of Next, which is to steer for a reason.
func (tp *tape) steered(why event.Why) string {
	tp.t.Helper()
	n, ok := tp.Next().(loop.Steer)
	if !ok || len(n.Steered.Why) == 0 || n.Steered.Why[0] != why {
		tp.t.Fatalf("next = %#v, want to steer for %s", tp.Next(), why)
	}
	tp.add(n.Steered)
	return n.Steered.Parts.Text()
}

func edited(path string) event.Ended {
	return event.Ended{Files: []tool.File{{Path: path, Digest: "d", Written: true}}}
}

func TestUncheckedFilesAreNoEnd(t *testing.T) {
	code := func(tp *tape) { tp.does("edit", edited("/w/main.go"), write("/w/main.go")) }
	tests := []struct {
		name  string
		work  func(tp *tape)
		gated bool
	}{
		{"nothing was changed", func(tp *tape) { tp.runs("go test ./...", 0, tool.Unproven) }, false},
		{"no check", code, true},
		{"checked", func(tp *tape) { code(tp); tp.runs("go test ./...", 0, tool.Unproven) }, false},
		{"checked before", func(tp *tape) { tp.runs("go test ./...", 0, tool.Unproven); code(tp) }, true},
		{"the check failed", func(tp *tape) { code(tp); tp.runs("go test ./...", 1, tool.Unproven) }, true},
		{"a check failed, and nothing was changed", func(tp *tape) { tp.runs("go test ./...", 1, tool.Unproven) }, true},
		{"a check failed, and the next did not", func(tp *tape) {
			tp.runs("go test ./...", 1, tool.Unproven)
			tp.runs("go test ./...", 0, tool.Unproven)
		}, false},
		{"only looked", func(tp *tape) { code(tp); tp.runs("echo all tests pass", 0, tool.ProvenRead) }, true},
		{"only recorded", func(tp *tape) { code(tp); tp.runs("git commit -am done", 0, tool.Unproven) }, true},
		{"prose", func(tp *tape) { tp.does("write", edited("/w/answer.txt"), write("/w/answer.txt")) }, true},
		{"prose that was read", func(tp *tape) {
			tp.does("write", edited("/w/answer.txt"), write("/w/answer.txt"))
			tp.does("read", event.Ended{}, read("/w/answer.txt"))
		}, false},
		{"code that was read", func(tp *tape) { code(tp); tp.does("read", event.Ended{}, read("/w/main.go")) }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tp := alone(t, event.Levers{}, said("mend the sum in main.go"))
			tt.work(tp)
			tp.answer("done")
			if !tt.gated {
				tp.want("stop done")
				return
			}
			if text := tp.steered(loop.WhyVerify); !strings.Contains(text, "mend the sum in main.go") {
				t.Errorf("the task is not repeated: %s", text)
			}
			tp.want("ask")
			tp.runs("./verify", 0, tool.Unproven)
			tp.answer("checked")
			tp.want("stop done")
		})
	}
}

// TestGatesAskTwiceAtMost checks that a model which answers again is let go, and one that does only part of it is asked
// once more.
func TestGatesAskTwiceAtMost(t *testing.T) {
	tp := alone(t, event.Levers{}, said("x"))
	tp.does("todo", event.Ended{Todo: []tool.Todo{{Text: "first", State: tool.TodoDone}, {Text: "second", State: tool.TodoDoing}}})
	tp.does("edit", edited("/w/a.py"), write("/w/a.py"))
	tp.answer("done")
	text := tp.steered(loop.WhyTodo)
	if !strings.Contains(text, "- second") || strings.Contains(text, "- first") || !strings.Contains(text, "a.py") {
		t.Errorf("both gates speak at once: %s", text)
	}
	part := *tp.State
	again := &tape{t: t, State: &part}
	tp.answer("done")
	tp.want("stop done")

	again.does("edit", edited("/w/b.py"), write("/w/b.py"))
	again.answer("done")
	again.steered(loop.WhyTodo)
	again.does("edit", edited("/w/c.py"), write("/w/c.py"))
	again.answer("done")
	again.want("stop done")
}

// TestBackgroundChecks checks that a background check counts for the changes before its beginning.
func TestBackgroundChecks(t *testing.T) {
	for _, exit := range []int{0, 1} {
		tp := alone(t, event.Levers{}, said("x"))
		tp.does("edit", edited("/w/a.py"), write("/w/a.py"))
		tp.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "make"}}, tool.Effect{Kind: tool.Execute, Text: "make"})
		tp.does("edit", edited("/w/b.py"), write("/w/b.py"))
		tp.add(event.Finished{Job: "1", Exit: &exit})
		if got := strings.Join(tp.Work.Unchecked, " "); got != map[int]string{0: "/w/b.py", 1: "/w/a.py /w/b.py"}[exit] {
			t.Errorf("exit %d: unchecked: %s", exit, got)
		}
	}
}

// TestGatesAreLevers checks that gates are off in attended sessions, and where they are switched off.
func TestGatesAreLevers(t *testing.T) {
	for _, levers := range []event.Levers{{Verify: "off"}, {}} {
		tp := alone(t, levers, said("x"))
		if levers == (event.Levers{}) {
			tp.add(event.Claimed{Epoch: 2})
		}
		tp.does("edit", edited("/w/a.py"), write("/w/a.py"))
		tp.answer("done")
		tp.want("stop done")
	}
	tp := alone(t, event.Levers{Verify: "on"}, said("x"), event.Claimed{Epoch: 2})
	tp.does("edit", edited("/w/a.py"), write("/w/a.py"))
	tp.answer("done")
	tp.steered(loop.WhyVerify)
}

func TestBudgetIsTold(t *testing.T) {
	tp := alone(t, event.Levers{}, event.Switched{Limits: &event.Limits{Turns: 20, Cost: 1}}, said("x"))
	told := map[int]string{}
	for turn := 1; turn <= 19; turn++ {
		tp.does("read", event.Ended{Parts: llm.Say(fmt.Sprint(turn))}, read(fmt.Sprint("/w/", turn)))
		if s, ok := tp.Next().(loop.Steer); ok {
			tp.steered(loop.WhyBudget)
			told[turn] = s.Steered.Parts.Text()
		}
		tp.want("ask")
	}
	if len(told) != 3 || !strings.Contains(told[10], "10 of 20 turns") || told[16] == "" || !strings.Contains(told[19], "Begin nothing new") {
		t.Errorf("told %v", told)
	}
}

func TestJobsEndLoudly(t *testing.T) {
	tp := alone(t, event.Levers{}, said("build it"))
	zero := 0
	tp.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "make all", TimedOut: true}})
	tp.does("bash", event.Ended{Job: &tool.Job{ID: "2", Command: "make docs"}})
	tp.add(event.Finished{Job: "2", Exit: &zero, Seconds: 3, Line: "built"})
	if text := tp.steered(loop.WhyEnded); !strings.Contains(text, "job 2 has ended: exit code 0, after 3 seconds; last line: built") {
		t.Errorf("told %q", text)
	}
	tp.want("ask")
	tp.answer("done")
	if text := tp.steered(loop.WhyJobs); !strings.Contains(text, "job 1: make all") || strings.Contains(text, "job 2") {
		t.Errorf("told %q", text)
	}
	tp.answer("I leave it running")
	tp.want("await")
	tp.add(event.Finished{Job: "1", Exit: &zero, Seconds: 60})
	tp.steered(loop.WhyEnded)
	tp.answer("all is built")
	tp.want("stop done")
}

// TestTellsOnce checks that the end of a job that a result has reported is not news, in whichever order the two are in
// the log, and neither is the end of a job before the call that began it.
func TestTellsOnce(t *testing.T) {
	zero := 0
	for _, first := range []bool{true, false} {
		tp := alone(t, event.Levers{}, said("x"))
		tp.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "make"}})
		tp.add(event.Asked{Turn: 9}, reply(llm.StopCalls, call("w", "jobs")), allowed("w"), event.Started{Call: "w"})
		told := event.Ended{Call: "w", Outcome: event.OutcomeOK, EndedJobs: []string{"1"}}
		if first {
			tp.add(event.Finished{Job: "1", Exit: &zero}, told)
		} else {
			tp.add(told, event.Finished{Job: "1", Exit: &zero})
		}
		tp.want("ask")
		tp.answer("done")
		tp.want("stop done")
	}
	tp := alone(t, event.Levers{}, said("x"))
	tp.add(event.Asked{Turn: 1}, reply(llm.StopCalls, call("b", "bash")),
		allowed("b"), event.Started{Call: "b"}, event.Finished{Job: "1", Exit: &zero},
		event.Ended{Call: "b", Outcome: event.OutcomeOK, Job: &tool.Job{ID: "1", Command: "make"}})
	tp.steered(loop.WhyEnded)
	tp.answer("done")
	tp.want("stop done")
}

// TestServersDoNotHoldARun checks that a run ends although jobs run that are kept, were started for the background, are
// watched by someone, or were waited for long enough.
func TestServersDoNotHoldARun(t *testing.T) {
	serves := func(claim event.Claimed, keep, late bool) *tape {
		tp := alone(t, event.Levers{}, said("serve"), claim)
		tp.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "serve", Keep: keep, TimedOut: late}})
		tp.answer("it runs")
		return tp
	}
	serves(event.Claimed{Epoch: 2, Unattended: true}, true, true).want("stop done")
	for _, claim := range []event.Claimed{{Epoch: 2}, {Epoch: 2, Unattended: true, Keeps: true}} {
		tp := serves(claim, false, true)
		tp.steered(loop.WhyJobs)
		tp.answer("it runs")
		tp.want("stop done")
	}
	server := serves(event.Claimed{Epoch: 2, Unattended: true}, false, false)
	if text := server.steered(loop.WhyJobs); !strings.Contains(text, "the run ends and stops them") || strings.Contains(text, "first waits") {
		t.Errorf("it is told %q", text)
	}
	server.answer("it runs")
	server.want("stop done")
	tp := serves(event.Claimed{Epoch: 2, Unattended: true}, false, true)
	tp.steered(loop.WhyJobs)
	if !tp.JobDeadline().IsZero() {
		t.Error("it waits before the model has answered")
	}
	tp.add(event.Asked{Turn: 5})
	if err := tp.Apply(event.Event{
		Seq: tp.Seq + 1, Time: time.Unix(100, 0), Session: "s",
		Body: reply(llm.StopEnd, llm.Text{Text: "it runs"}),
	}); err != nil {
		t.Fatal(err)
	}
	tp.want("await")
	if !tp.JobDeadline().Equal(time.Unix(100, 0).Add(5 * time.Minute)) {
		t.Errorf("it waits until %v", tp.JobDeadline())
	}
	tp.add(event.Cancelled{By: loop.By, Limit: event.ReasonDone})
	tp.want("stop done")
}

// TestLeftBehind checks that an unattended model hears once before the end that processes left by a command end with
// the run, and whether they can be kept.
func TestLeftBehind(t *testing.T) {
	exit := 0
	for _, tt := range []struct {
		claim event.Claimed
		left  bool
		want  string // empty means it is not told
	}{
		{event.Claimed{Epoch: 2, Unattended: true}, true, "with background and keep"},
		{event.Claimed{Epoch: 2, Unattended: true, NoKeep: true}, true, "This run can't keep any of them"},
		{event.Claimed{Epoch: 2, Unattended: true, Keeps: true}, true, ""},
		{event.Claimed{Epoch: 2, Unattended: true}, false, ""},
		{event.Claimed{Epoch: 2}, true, ""},
	} {
		tp := alone(t, event.Levers{}, said("serve"), tt.claim)
		tp.does("bash", event.Ended{Exit: &exit, Left: tt.left})
		tp.answer("it runs")
		if tt.want != "" {
			if text := tp.steered(loop.WhyLeft); !strings.Contains(text, tt.want) {
				t.Errorf("%+v: %s", tt.claim, text)
			}
			tp.answer("it runs")
		}
		tp.want("stop done")
	}
	tp := alone(t, event.Levers{}, said("serve"), event.Claimed{Epoch: 2, Unattended: true, NoKeep: true})
	tp.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "serve"}})
	tp.answer("it runs")
	if text := tp.steered(loop.WhyJobs); strings.Contains(text, "with keep") || !strings.Contains(text, "This run can't keep jobs") {
		t.Error(text)
	}
}

// TestLookingIsNotBeingStuck checks that equal results count only while nothing runs that could change them.
func TestLookingIsNotBeingStuck(t *testing.T) {
	look := func(tp *tape) string {
		for range 8 {
			exit := 0
			tp.does("bash", event.Ended{Exit: &exit, Parts: llm.Say("quiet"), Left: tp.LeftProcesses},
				tool.Effect{Kind: tool.Execute, Text: "tail log", Class: tool.ProvenRead})
		}
		return tp.next()
	}
	job := alone(t, event.Levers{}, said("x"))
	job.does("bash", event.Ended{Job: &tool.Job{ID: "1", Command: "make"}})
	left := alone(t, event.Levers{}, said("x"))
	exit := 0
	left.does("bash", event.Ended{Exit: &exit, Left: true})
	for _, tp := range []*tape{job, left} {
		if got := look(tp); !strings.HasPrefix(got, "ask") {
			t.Errorf("looking while something runs: %s", got)
		}
	}
	if got := look(alone(t, event.Levers{}, said("x"))); !strings.HasPrefix(got, "stop stuck") {
		t.Errorf("looking while nothing runs: %s", got)
	}
	polls := alone(t, event.Levers{}, said("x"))
	for i := range 25 {
		exit := 0
		polls.does("bash", event.Ended{Exit: &exit, Parts: llm.Say("quiet")},
			tool.Effect{Kind: tool.Execute, Text: "sleep 5", Class: tool.ProvenRead}, tool.Effect{Kind: tool.Execute, Text: "docker ps"})
		if got := polls.next(); i < 24 && strings.HasPrefix(got, "stop") {
			t.Errorf("polling %d times: %s", i+1, got)
		}
	}
	if got := look(alone(t, event.Levers{Repeats: "off"}, said("x"))); !strings.HasPrefix(got, "ask") {
		t.Errorf("looking with the lever off: %s", got)
	}
}

// TestThrownAwayChangesNothing checks that changes of a command in a throwaway copy do not count as changes of the
// workspace, and that a check there counts as a check.
func TestThrownAwayChangesNothing(t *testing.T) {
	zero := 0
	check := tool.Effect{Kind: tool.Execute, Text: "go test ./...", Throwaway: true}
	out := tool.Effect{Kind: tool.Write, Path: "/w/out.go", Throwaway: true}
	tp := alone(t, event.Levers{}, said("go"))
	tp.does("bash", event.Ended{Exit: &zero}, check, out)
	if len(tp.Work.Changed)+len(tp.Work.Unchecked) > 0 {
		t.Errorf("changed %q, unchecked %q", tp.Work.Changed, tp.Work.Unchecked)
	}
	tp.does("edit", edited("/w/main.go"), write("/w/main.go"))
	tp.does("bash", event.Ended{Exit: &zero}, check, out)
	if len(tp.Work.Unchecked) > 0 || len(tp.Work.Changed) != 1 {
		t.Errorf("after a check: changed %q, unchecked %q", tp.Work.Changed, tp.Work.Unchecked)
	}
}
