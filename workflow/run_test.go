package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/workflow"
)

// crew is agents that a function plays, and remembers who worked.
type crew struct {
	do func(job workflow.Job) workflow.Report

	mu   sync.Mutex
	jobs []workflow.Job
}

func (c *crew) Work(ctx context.Context, job workflow.Job) (workflow.Report, error) {
	c.mu.Lock()
	c.jobs = append(c.jobs, job)
	c.mu.Unlock()
	if ctx.Err() != nil {
		return workflow.Report{}, context.Cause(ctx)
	}
	return c.do(job), nil
}

func (c *crew) Clear(context.Context) error { return nil }

func (c *crew) names() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		out = append(out, j.Step)
	}
	slices.Sort(out)
	return out
}

// parsed is a workflow in YAML.
func parsed(t *testing.T, text string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Parse("test.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// perform performs a workflow on a log, and answers its questions in order.
func perform(t *testing.T, log event.Log, w *workflow.Workflow, with map[string]any, o workflow.Options,
	answers ...string,
) (map[string]any, error) {
	t.Helper()
	a := &inspan.Agent{Unattended: len(answers) == 0}
	return performed(t, a, log, w, with, o, func(inspan.Pending) event.Decided {
		if len(answers) == 0 {
			return event.Decided{}
		}
		answer := answers[0]
		answers = answers[1:]
		return event.Decided{Allow: true, Answer: answer}
	})
}

// answered performs a workflow whose questions a function answers.
func answered(t *testing.T, log event.Log, w *workflow.Workflow, o workflow.Options,
	answer func(inspan.Pending) event.Decided,
) (map[string]any, error) {
	t.Helper()
	return performed(t, &inspan.Agent{}, log, w, nil, o, answer)
}

func performed(t *testing.T, a *inspan.Agent, log event.Log, w *workflow.Workflow, with map[string]any, o workflow.Options,
	answer func(inspan.Pending) event.Decided,
) (map[string]any, error) {
	t.Helper()
	var out map[string]any
	a.Program.Run = func(ctx context.Context, steps *inspan.Steps) (err error) {
		out, err = w.Run(ctx, steps, with, o)
		return err
	}
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	c := inspan.Conductor{Session: s, Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
		if a.Unattended {
			return nil, nil
		}
		d := answer(p)
		d.Call, d.Question = p.Call.ID, p.Question
		return d, nil
	}}
	inputs := []event.Body{event.Say("run " + w.Name)}
	switch st := s.Status(); {
	case st.Workflow != "" && st.Stopped != nil:
		inputs = []event.Body{event.Said{}}
	case st.Workflow != "":
		inputs = nil
	}
	err = c.Run(t.Context(), inputs...)
	return out, errors.Join(err, s.Close())
}

// outcomes are how the steps of a log have ended.
func outcomes(t *testing.T, log event.Log) map[string]event.Outcome {
	t.Helper()
	out := map[string]event.Outcome{}
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.StepEnded:
			if was, twice := out[b.Step]; twice && was != "" {
				t.Errorf("step %s ended twice", b.Step)
			}
			out[b.Step] = b.Outcome
		case event.StepStarted:
			out[b.Step] = ""
		}
	}
	return out
}

func says(text string) workflow.Report { return workflow.Report{Text: text} }

// TestRun checks that values pass from step to step, that a person's answer decides, and the result of a run.
func TestRun(t *testing.T) {
	w := parsed(t, `
name: demo
inputs:
  task: {type: string}
returns:
  made: {from: build.text}
steps:
  - id: plan
    kind: agent
    prompt: Plan ${inputs.task}. It costs $${this}.
    output: {type: object, properties: {files: {type: array, items: {type: string}}}, required: [files]}
  - {id: ok, kind: approval, prompt: "Shall it be?", show: "Files: ${plan.files}"}
  - {id: build, kind: agent, prompt: "Build ${plan.files.0} as ${ok.choice}"}
`)
	agents := &crew{do: func(j workflow.Job) workflow.Report {
		if j.Output != nil {
			return workflow.Report{Result: json.RawMessage(`{"files":["a.go"]}`)}
		}
		return says("done: " + j.Prompt)
	}}
	log := event.NewMemory("s")
	out, err := perform(t, log, w, map[string]any{"task": "a clock"}, workflow.Options{Agents: agents}, "1")
	if err != nil || out["made"] != "done: Build a.go as approve" {
		t.Errorf("%v, %v", out, err)
	}
	if agents.jobs[0].Prompt != "Plan a clock. It costs ${this}." {
		t.Errorf("prompt %q", agents.jobs[0].Prompt)
	}
	// What has ended is not done again.
	again, err := perform(t, log, w, nil, workflow.Options{Agents: agents})
	if err != nil || again["made"] != out["made"] || len(agents.jobs) != 2 {
		t.Errorf("again: %v, %v, %d jobs", again, err, len(agents.jobs))
	}
	log = event.NewMemory("s")
	if _, err := perform(t, log, w, map[string]any{"task": "a clock"}, workflow.Options{Agents: agents}, "reject"); err == nil ||
		!strings.Contains(err.Error(), "ok: answered reject") || outcomes(t, log)["build"] != event.OutcomeSkipped {
		t.Errorf("rejected: %v, %v", err, outcomes(t, log))
	}
}

// TestJoinsAndFinally checks when a step with a condition on the steps it needs begins, and that final steps begin
// however all others have ended, and change no result.
func TestJoinsAndFinally(t *testing.T) {
	const file = `
name: demo
returns: {got: {from: a.text}}
steps:
  - {id: a, kind: agent, prompt: %s, on_failure: %s}
  - {id: b, kind: agent, prompt: go, needs: []}
  - {id: done, kind: agent, prompt: go, needs: [a, b], when: all_done}
  - {id: bad, kind: agent, prompt: go, needs: [a, b], when: any_failed}
  - {id: good, kind: agent, prompt: go, needs: [a, b], when: any_ok}
  - {id: after, kind: agent, prompt: go, needs: [bad]}
finally:
  - {id: sweep, kind: agent, prompt: fail}
  - {id: tell, kind: agent, prompt: "${a.text}", when: all_done}
`
	for _, c := range []struct{ prompt, onFailure, want, err string }{
		{"go", "skip", "map[a:ok after:ok b:ok bad:skipped done:ok good:ok sweep:failed tell:ok workflow:ok]", ""},
		{"fail", "skip", "map[a:failed after:ok b:ok bad:ok done:ok good:ok sweep:failed tell:ok workflow:failed]", "a: no luck"},
		{"fail", "stop", "map[a:failed after:skipped bad:skipped done:skipped good:skipped sweep:failed tell:ok workflow:failed]", "a: no luck"},
	} {
		agents := &crew{do: func(j workflow.Job) workflow.Report {
			if j.Prompt == "fail" {
				return workflow.Report{Failed: "no luck"}
			}
			return says("went")
		}}
		log := event.NewMemory("s")
		out, err := perform(t, log, parsed(t, fmt.Sprintf(file, c.prompt, c.onFailure)), nil, workflow.Options{Agents: agents})
		all := outcomes(t, log)
		if c.onFailure == "stop" {
			delete(all, "b") // which may have begun before
		}
		if got := fmt.Sprint(all); got != c.want {
			t.Errorf("a is told to %s, and its failure to %s:\n%s, want\n%s", c.prompt, c.onFailure, got, c.want)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s, %s: %v, %v", c.prompt, c.onFailure, out, err)
		}
	}
	for when, want := range map[string]string{
		"any_filed": "when", "all_done}\n  - {id: x, kind: agent, prompt: x, needs: [], when: any_ok": "steps.x.when",
	} {
		_, err := workflow.Parse("x.yaml", []byte("name: x\nsteps:\n  - {id: a, kind: agent, prompt: x}\n  - {id: c, kind: agent, prompt: x, when: "+when+"}\n"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// TestOneFailureStopsOnlyWhatNeedsIt checks which steps still begin when one fails.
func TestOneFailureStopsOnlyWhatNeedsIt(t *testing.T) {
	const file = `
name: demo
steps:
  - {id: a, kind: agent, prompt: fail, needs: [], on_failure: %s}
  - {id: b, kind: agent, prompt: go, needs: [a]}
  - {id: c, kind: agent, prompt: go, needs: []}
  - {id: d, kind: agent, prompt: go, needs: [c]}
  - {id: e, kind: agent, prompt: go, needs: [c], when: {c.text: {not: went}}}
  - {id: f, kind: agent, prompt: go, needs: [e]}
`
	for mode, want := range map[string]string{
		"skip":     "map[a:failed b:skipped c:ok d:ok e:skipped f:ok workflow:failed]",
		"continue": "map[a:failed b:ok c:ok d:ok e:skipped f:ok workflow:ok]",
	} {
		agents := &crew{do: func(j workflow.Job) workflow.Report {
			if j.Prompt == "fail" {
				return workflow.Report{Failed: "no luck"}
			}
			return says("went")
		}}
		log := event.NewMemory("s")
		_, err := perform(t, log, parsed(t, fmt.Sprintf(file, mode)), nil, workflow.Options{Agents: agents})
		if got := fmt.Sprint(outcomes(t, log)); got != want || (err == nil) != (mode == "continue") {
			t.Errorf("%s: %s, %v", mode, got, err)
		}
	}
}

// TestLoop checks that a loop ends by evidence or when no check improves, and that its agents know the earlier
// attempts.
func TestLoop(t *testing.T) {
	const file = `
name: demo
returns: {rounds: {from: fix.rounds}, why: {from: fix.why}}
steps:
  - id: fix
    kind: loop
    max: 10
    until: {judge.passed: true}
    steps:
      - {id: try, kind: agent, prompt: "Round ${round}. Before: ${before.judge.says} Tried: ${history}"}
      - id: judge
        kind: agent
        prompt: Judge ${try.text}
        output: {type: object, properties: {passed: {type: boolean}, says: {type: string}}}
`
	agents := &crew{do: func(j workflow.Job) workflow.Report {
		if j.Output == nil {
			return says("tried")
		}
		return workflow.Report{Result: fmt.Appendf(nil, `{"passed":%t,"says":"not yet"}`, strings.HasPrefix(j.Step, "fix/3/"))}
	}}
	out, err := perform(t, event.NewMemory("s"), parsed(t, file), nil, workflow.Options{Agents: agents})
	if err != nil || out["rounds"] != float64(3) {
		t.Errorf("%v, %v", out, err)
	}
	if p := agents.jobs[2].Prompt; !strings.HasPrefix(p, "Round 2. Before: not yet Tried: Round 1:") {
		t.Errorf("prompt %q", p)
	}
}

// TestEach checks that items run in parallel, that a failing one does not hold up the others, and that their results
// keep their order.
func TestEach(t *testing.T) {
	w := parsed(t, `
name: demo
inputs: {names: {type: array, items: {type: string}}}
returns: {items: {from: all.items}, failed: {from: all.failed}}
steps:
  - id: all
    kind: each
    over: ${inputs.names}
    concurrency: 3
    on_failure: continue
    steps:
      - {id: greet, kind: agent, prompt: "Greet ${item}"}
`)
	agents := &crew{do: func(j workflow.Job) workflow.Report {
		if strings.HasSuffix(j.Prompt, "b") {
			return workflow.Report{Failed: "shy"}
		}
		return says(j.Prompt)
	}}
	out, err := perform(t, event.NewMemory("s"), w, map[string]any{"names": []any{"a", "b", "c"}}, workflow.Options{Agents: agents})
	if got := fmt.Sprint(out); err != nil || got != "map[failed:1 items:[map[text:Greet a] map[text:] map[text:Greet c]]]" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestEscapedValues checks that $${ is ${ also in values, however deep.
func TestEscapedValues(t *testing.T) {
	w := parsed(t, `
name: demo
steps:
  - {id: call, kind: tool, tool: x, with: {a: "$${literal}", b: {c: ["$${literal}"]}}}
`)
	agents := &crew{do: func(workflow.Job) workflow.Report { return says("") }}
	if _, err := perform(t, event.NewMemory("s"), w, nil, workflow.Options{Agents: agents}); err != nil {
		t.Fatal(err)
	}
	if got := string(agents.jobs[0].Args); got != `{"a":"${literal}","b":{"c":["${literal}"]}}` {
		t.Errorf("arguments %s", got)
	}
}

// TestNoMessages checks that a workflow accepts no messages, and that no model continues it.
func TestNoMessages(t *testing.T) {
	w := parsed(t, "name: demo\nsteps:\n  - {id: ok, kind: approval, prompt: Well}\n")
	log := event.NewMemory("s")
	if _, err := perform(t, log, w, nil, workflow.Options{}); err != nil {
		t.Fatal(err)
	}
	nothing := func(context.Context, *inspan.Steps) error { return nil }
	for name, a := range map[string]*inspan.Agent{"a program": {Program: inspan.Program{Run: nothing}}, "a model": {}} {
		s, err := a.Open(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Run(t.Context(), event.Say("go on")) {
			if !errors.Is(err, inspan.ErrWorkflow) {
				t.Errorf("%s was told: %v", name, err)
			}
		}
		if err := s.Send(t.Context(), event.Say("go on")); !errors.Is(err, inspan.ErrWorkflow) {
			t.Errorf("%s was sent: %v", name, err)
		}
	}
}
