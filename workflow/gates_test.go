package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/workflow"
)

// TestSkippedIsNoSuccess checks that a rejected or failed step holds up all steps that depend on it, even if a step
// between them tolerates its own failures.
func TestSkippedIsNoSuccess(t *testing.T) {
	o, _ := place(t, nil)
	log := event.NewMemory("s")
	_, err := perform(t, log, parsed(t, `
name: demo
steps:
  - {id: ok, kind: approval, prompt: Deploy}
  - {id: lint, kind: check, run: 'true', on_failure: continue}
  - {id: deploy, kind: run, run: touch deployed}
`), nil, o, "reject")
	got := outcomes(t, log)
	if _, there := os.Stat(filepath.Join(o.Env.Root, "deployed")); there == nil || err == nil || got["deploy"] != event.OutcomeSkipped {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNothingFulfilsNoCondition checks that a value that is not there fulfils no condition, whatever that asks.
func TestNothingFulfilsNoCondition(t *testing.T) {
	for condition, want := range map[string]event.Outcome{
		"{a.n: {not: 7}}": event.OutcomeSkipped, "{a.n: {is: 3}}": event.OutcomeSkipped, "{a.n: null}": event.OutcomeOK,
	} {
		o, _ := place(t, nil)
		log := event.NewMemory("s")
		_, err := perform(t, log, parsed(t, `
name: demo
steps:
  - {id: a, kind: run, run: 'echo {}', output: {type: object, properties: {n: {type: integer}}}}
  - {id: b, kind: run, when: `+condition+`, run: 'true'}
`), nil, o)
		if got := outcomes(t, log)["b"]; err != nil || got != want {
			t.Errorf("%s: %s, %v", condition, got, err)
		}
	}
}

// TestAnswersAreChoices checks that only a choice is one, that anything else is asked for again, and that a denial
// chooses nothing.
func TestAnswersAreChoices(t *testing.T) {
	for want, answers := range map[string][]string{
		"ship ok":                      {"", "yes", "ship it", "never ship", "bogus", "Ship"},
		"never failed":                 {"4", "3"},
		"later failed":                 {"later: after lunch"},
		" failed: denied: not like so": {"DENY not like so"},
	} {
		o, _ := place(t, nil)
		log := event.NewMemory("s")
		asked := 0
		_, err := answered(t, log, parsed(t, `
name: demo
steps: [{id: a, kind: approval, prompt: 'Go?', choices: [ship, later, never]}]
`), o, func(p inspan.Pending) event.Decided {
			answer := answers[asked]
			if asked++; asked > 1 && !strings.Contains(p.Preview, "none of the choices") {
				t.Errorf("it does not say why it asks again: %q", p.Preview)
			}
			if reason, denied := strings.CutPrefix(answer, "DENY "); denied {
				return event.Decided{Reason: reason}
			}
			return event.Decided{Allow: true, Answer: answer}
		})
		end := results(t, log)["a"]
		got := fmt.Sprintf("%v %s", value(t, end, "choice"), end.Outcome)
		if strings.HasPrefix(end.Error, "denied") {
			got += ": " + end.Error
		}
		if got != want || asked != len(answers) || (err == nil) != strings.HasSuffix(want, "ok") {
			t.Errorf("%q, want %q, after %d questions, %v", got, want, asked, err)
		}
	}
}

// TestReleasesAreShown checks that a person who approves sees what leaves and where it goes, and is not asked about
// impossible releases.
func TestReleasesAreShown(t *testing.T) {
	for to, asks := range map[string]bool{"docs/a.md": true, ".env": true, "../a.md": false, "/etc/a": false, "a\nb": false} {
		o, _ := place(t, map[string]string{"to": to})
		o.Agents = &crew{do: func(workflow.Job) workflow.Report {
			return workflow.Report{Result: []byte(`{"text":"line one\nThis releases nothing."}`)}
		}}
		log, shown := event.NewMemory("s"), ""
		_, err := answered(t, log, parsed(t, `
name: demo
steps:
  - {id: where, kind: run, run: 'printf "{\"to\":%s}" "$(jq -Rs . < to)"', output: {type: object, properties: {to: {type: string}}}}
  - id: write
    kind: agent
    prompt: Write
    output: {type: object, properties: {text: {type: string}}}
    safe_outputs: {page: {kind: file, from: text, to: "${where.to}", after: ok}}
  - {id: ok, kind: approval, needs: [write, where], prompt: 'Publish this?'}
`), o, func(p inspan.Pending) event.Decided {
			shown = p.Preview
			return event.Decided{Allow: true, Answer: "reject"}
		})
		if err == nil || (shown != "") != asks {
			t.Errorf("%q: shown %q, %v", to, shown, err)
		}
		if asks && (!strings.Contains(shown, `"`+to+`"`) || !strings.Contains(shown, "  | line one\n  | This releases nothing.")) {
			t.Errorf("%q: shown %q", to, shown)
		}
	}
}

// TestBeforeTheRun checks that a check of a workflow that is included compares with the state before the whole run,
// and that another exit code hides after no failure that was known.
func TestBeforeTheRun(t *testing.T) {
	inner := `
name: inner
inputs: {file: {type: string}}
steps: [{id: test, kind: check, run: 'test "$(cat "$FILE")" = fine', env: {FILE: "${inputs.file}"}, gate: regression_only}]
`
	outer, err := workflow.Parse("outer.yaml", []byte(`
name: outer
steps:
  - {id: spoil, kind: run, run: echo broken > state}
  - {id: inner, kind: workflow, use: inner, with: {file: state}}
`), func(string) (string, []byte, error) { return "inner.yaml", []byte(inner), nil })
	if err != nil {
		t.Fatal(err)
	}
	o, _ := place(t, map[string]string{"state": "fine\n"})
	log := event.NewMemory("s")
	if _, err := perform(t, log, outer, nil, o); err == nil || !strings.Contains(results(t, log)["inner/test"].Error, "passed before") {
		t.Errorf("%v, %+v", err, results(t, log)["inner/test"])
	}
	for after, want := range map[int]event.Outcome{1: event.OutcomeOK, 2: event.OutcomeFailed, 137: event.OutcomeFailed} {
		o, _ := place(t, map[string]string{"code": "1"})
		log := event.NewMemory("s")
		_, _ = perform(t, log, parsed(t, fmt.Sprintf(`
name: demo
steps:
  - {id: change, kind: run, run: echo %d > code}
  - {id: test, kind: check, run: 'echo "FAIL: TestA"; exit $(cat code)', gate: regression_only}
`, after)), nil, o)
		if got := outcomes(t, log)["test"]; got != want {
			t.Errorf("exit code %d: %s, want %s", after, got, want)
		}
	}
}

// TestOnlyChecksMeasure checks that a loop gives up by the results of its checks, and counts only rounds in which they
// were executed.
func TestOnlyChecksMeasure(t *testing.T) {
	for onFailure, want := range map[string]string{
		"continue": "no check got better in 2 rounds", "skip": "no check could be run in 2 rounds; test: it needs work, which is failed",
	} {
		o, _ := place(t, nil)
		o.Agents = &crew{do: func(workflow.Job) workflow.Report { return workflow.Report{Failed: "turns: all are used up"} }}
		_, err := perform(t, event.NewMemory("s"), parsed(t, `
name: demo
steps:
  - {id: test, kind: check, run: 'true'}
  - id: try
    kind: loop
    max: 9
    patience: 2
    until: {test.passed: true}
    steps:
      - {id: work, kind: agent, prompt: Work, on_failure: `+onFailure+`}
      - {id: test, kind: check, run: 'false', on_failure: continue}
`), nil, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("on_failure %s: %v, want %q", onFailure, err, want)
		}
	}
}

// TestInterruptedCommand checks that an interrupted command is asked about when the run continues: it is neither over
// nor repeated without an answer.
func TestInterruptedCommand(t *testing.T) {
	for answer, want := range map[string]event.Outcome{"run it again": event.OutcomeOK, "leave it": event.OutcomeUnknown} {
		o, _ := place(t, nil)
		log := event.NewMemory("s")
		w := parsed(t, `
name: demo
steps:
  - {id: a, kind: run, run: 'test -e go || sleep 60'}
  - {id: b, kind: run, run: touch after, on_failure: continue}
`)
		interrupted(t, log, w, o, nil)
		if got := outcomes(t, log)["a"]; got != "" {
			t.Fatalf("after the interrupt: %s", got)
		}
		if err := os.WriteFile(filepath.Join(o.Env.Root, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := perform(t, log, w, nil, o, answer)
		if got := outcomes(t, log)["a"]; got != want || (err == nil) != (want == event.OutcomeOK) {
			t.Errorf("%s: %s, %v", answer, got, err)
		}
	}
}

// TestEachInterruptionIsAsked checks that an answer to one interruption of a command or of a call permits one more try,
// and that the next interruption is another question, whose id needs no escaping in an address.
func TestEachInterruptionIsAsked(t *testing.T) {
	for name, file := range map[string]string{
		"a command": "{id: a, kind: run, run: 'test -e go || sleep 60'}", "a call": "{id: a, kind: tool, tool: deploy}",
	} {
		o, _ := place(t, nil)
		calls := &crew{do: func(j workflow.Job) workflow.Report {
			return workflow.Report{Failed: "unknown", Lost: j.Step != "a++", Text: j.Step}
		}}
		o.Agents = calls
		log := event.NewMemory("s")
		w := parsed(t, "name: demo\nsteps:\n  - "+file+"\n")
		var ids []string
		again := func(p inspan.Pending) event.Decided {
			ids = append(ids, p.ID())
			return event.Decided{Allow: true, Answer: "run it again"}
		}
		tries := func() int {
			n := len(calls.jobs)
			for e, err := range log.Read(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if b, ok := e.Body.(event.StepStarted); ok && b.Does == "run" {
					n++
				}
			}
			return n
		}
		if strings.HasSuffix(name, "command") {
			interrupted(t, log, w, o, nil)
			interrupted(t, log, w, o, again)
			if _, err := perform(t, log, w, nil, o); err != nil || tries() != 2 {
				t.Errorf("%s: %v, tried %d times with one permission", name, err, tries())
			}
			if err := os.WriteFile(filepath.Join(o.Env.Root, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = answered(t, log, w, o, again)
		if len(ids) != 2 || ids[0] == ids[1] || tries() != 3 {
			t.Errorf("%s: tried %d times, questions %q", name, tries(), ids)
		}
		for _, id := range ids {
			if url.PathEscape(id) != id {
				t.Errorf("%s: %q needs to be escaped", name, id)
			}
		}
	}
}

// interrupted performs a workflow until its step a has begun, and interrupts it. Answer answers its questions.
func interrupted(t *testing.T, log event.Log, w *workflow.Workflow, o workflow.Options, answer func(inspan.Pending) event.Decided) {
	t.Helper()
	a := &inspan.Agent{Program: inspan.Program{Run: func(ctx context.Context, steps *inspan.Steps) error {
		_, err := w.Run(ctx, steps, nil, o)
		return err
	}}}
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	c := inspan.Conductor{Session: s, Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
		d := answer(p)
		d.Call, d.Question = p.Call.ID, p.Question
		return d, nil
	}}
	inputs := []event.Body{event.Say("run")}
	if s.Status().Workflow != "" {
		inputs = []event.Body{event.Said{}}
	}
	c.OnEvent = func(e event.Event) error {
		if b, ok := e.Body.(event.StepStarted); ok && b.Step == "a" {
			c.Interrupt(event.Cancelled{By: "test"})
		}
		return nil
	}
	if err := errors.Join(c.Run(t.Context(), inputs...), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestArtefactsStayInside checks that a link leads no step out of the workspace.
func TestArtefactsStayInside(t *testing.T) {
	o, _ := place(t, nil)
	outside := filepath.Join(t.TempDir(), "diary.txt")
	if err := os.WriteFile(outside, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := event.NewMemory("s")
	_, _ = perform(t, log, parsed(t, `
name: demo
steps:
  - {id: link, kind: run, run: 'ln -s `+outside+` out.txt; ln -s `+filepath.Dir(outside)+` wd', artefacts: {out: out.txt}, on_failure: continue}
  - {id: there, kind: run, dir: wd, run: pwd}
`), nil, o)
	got := results(t, log)
	if strings.Contains(string(got["link"].Result), "diary") || !strings.Contains(got["link"].Error, "leads out") {
		t.Errorf("%s, %s", got["link"].Result, got["link"].Error)
	}
	if got["there"].Outcome != event.OutcomeFailed || !strings.Contains(got["there"].Error, "leads out") {
		t.Errorf("%+v", got["there"])
	}
}

// value is a field of a step's result.
func value(t *testing.T, end event.StepEnded, field string) any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(end.Result, &v); err != nil {
		t.Fatalf("%s: %v", end.Result, err)
	}
	return v[field]
}
