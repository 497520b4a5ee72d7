package workflow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// blobs are kept in memory.
type blobs struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (b *blobs) Put(_ context.Context, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	name := "sha256-" + tool.Digest(data)
	if b.kept == nil {
		b.kept = map[string][]byte{}
	}
	b.kept[name] = data
	return name, err
}

func (b *blobs) Get(_ context.Context, name string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return io.NopCloser(bytes.NewReader(b.kept[name])), nil
}

// place is a workspace whose commands run without walls, because this program has no keepers.
func place(t *testing.T, files map[string]string) (workflow.Options, *blobs) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := &blobs{}
	env, err := sandbox.Local(root, kept, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	return workflow.Options{Env: env, Unboxed: true}, kept
}

// results are the results of the steps in a log.
func results(t *testing.T, log event.Log) map[string]event.StepEnded {
	t.Helper()
	out := map[string]event.StepEnded{}
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.StepEnded); ok {
			out[b.Step] = b
		}
	}
	return out
}

// TestCommands checks the results of commands: output and exit code, JSON if declared, and kept files. No value gets
// into a command line.
func TestCommands(t *testing.T) {
	o, kept := place(t, map[string]string{"notes.txt": "kept\n"})
	w := parsed(t, `
name: demo
inputs: {who: {type: string}}
returns: {second: {from: list.names.1}, note: {from: keep.artefacts.notes}}
steps:
  - {id: say, kind: run, run: 'echo "hello $WHO" && echo oops >&2', env: {WHO: "${inputs.who}"}}
  - id: list
    kind: run
    run: echo noise >&2; echo '{"names":["a","b"]}'
    output: {type: object, properties: {names: {type: array, items: {type: string}}}, required: [names]}
  - {id: keep, kind: run, run: "true", artefacts: {notes: notes.txt}}
  - {id: long, kind: run, run: "for n in $(seq 9000); do echo line $n; done"}
  - {id: wrong, kind: run, run: echo not json, output: {type: integer}, on_failure: continue}
  - {id: gone, kind: run, run: "true", artefacts: {it: nowhere.txt}, on_failure: continue}
  - {id: pipe, kind: run, run: "false | cat", on_failure: continue}
  - {id: late, kind: run, run: sleep 60, timeout: 100ms, on_failure: continue}
  - {id: later, kind: run, run: sleep 60, timeout: 1ns, on_failure: continue}
`)
	log := event.NewMemory("s")
	out, err := perform(t, log, w, map[string]any{"who": `"; touch owned; echo "$(touch owned)`}, o)
	if err != nil || out["second"] != "b" || out["note"] != "kept\n" {
		t.Errorf("%v, %v", out, err)
	}
	got := results(t, log)
	var said struct {
		Exit   int
		Output string
	}
	if err := json.Unmarshal(got["say"].Result, &said); err != nil || said.Output != "hello \"; touch owned; echo \"$(touch owned)\noops" {
		t.Errorf("said %+v, %v", said, err)
	}
	if _, err := os.Stat(filepath.Join(o.Env.Root, "owned")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a value was run")
	}
	if b := got["long"].Blobs; len(b) != 1 || b[0].Name != "output" || len(kept.kept[b[0].Digest]) != int(b[0].Size) || b[0].Size < 80_000 {
		t.Errorf("the whole output: %+v", b)
	}
	for id, want := range map[string]string{
		"wrong": "what it printed is not what output says", "gone": "the artefact it is not there", "pipe": "exit code 1",
		"late": "it took longer than 100ms and was ended", "later": "it took longer than 1ns and was ended",
	} {
		if e := got[id]; e.Outcome != event.OutcomeFailed || !strings.HasPrefix(e.Error, want) {
			t.Errorf("%s: %s %q, want %q", id, e.Outcome, e.Error, want)
		}
	}
}

// TestRegressionOnly checks that a check fails for new problems and not for old ones.
func TestRegressionOnly(t *testing.T) {
	const file = `
name: demo
steps:
  - {id: change, kind: run, run: "%s"}
  - {id: check, kind: check, run: sh check.sh, gate: regression_only}
`
	for name, c := range map[string]struct{ before, change, why string }{
		"passed before, and fails":  {"exit 0", "echo exit 3 > check.sh", "exit code 3, and it passed before the run"},
		"passed before, and passes": {"exit 0", "true", ""},
		"the same fails":            {"echo '--- FAIL: TestA'; exit 1", "true", ""},
		"less fails": {
			"echo '--- FAIL: TestA'; echo '--- FAIL: TestB'; exit 1", "sed -i 's/.--- FAIL: TestB.//' check.sh", "",
		},
		"another one fails":               {"echo '--- FAIL: TestA'; exit 1", "sed -i s/TestA/TestC/ check.sh", "new failures: TestC"},
		"nothing is named, and the same":  {"echo broken; exit 1", "true", ""},
		"nothing is named, and otherwise": {"echo broken; exit 1", "sed -i s/broken/smashed/ check.sh", "it failed before the run too, and which"},
		"failed before, and passes":       {"exit 1", "echo exit 0 > check.sh", ""},
	} {
		o, _ := place(t, map[string]string{"check.sh": c.before + "\n"})
		log := event.NewMemory("s")
		_, err := perform(t, log, parsed(t, fmt.Sprintf(file, c.change)), nil, o)
		e := results(t, log)["check"]
		if (err == nil) != (c.why == "") || !strings.HasPrefix(e.Error, c.why) || c.why == "" && e.Outcome != event.OutcomeOK {
			t.Errorf("%s: %v, %s %q", name, err, e.Outcome, e.Error)
		}
	}
}

// TestUsualFailures checks which output lines name a failure, for common test runners.
func TestUsualFailures(t *testing.T) {
	o, _ := place(t, map[string]string{"out.txt": strings.Join([]string{
		"=== RUN TestGo", "--- FAIL: TestGo (0.00s)", "FAILED tests/test_a.py::test_b - assert 1 == 2", "not ok 3 - adds numbers",
		"test parser::reads ... FAILED", "✕ shows a page (12 ms)", "main.go:12:3: undefined: x", "FAIL", "ok  pkg 0.1s", "PASS",
	}, "\n")})
	log := event.NewMemory("s")
	_, _ = perform(t, log, parsed(t, "name: demo\nsteps:\n  - {id: check, kind: check, run: cat out.txt; exit 1}\n"), nil, o)
	var got struct{ Failures []string }
	if err := json.Unmarshal(results(t, log)["check"].Result, &got); err != nil {
		t.Fatal(err)
	}
	want := "TestGo|tests/test_a.py::test_b|adds numbers|parser::reads|shows a page|main.go:12:3: undefined: x"
	if strings.Join(got.Failures, "|") != want {
		t.Errorf("failures %q", got.Failures)
	}
}

// TestEvidence checks that an agent's claim counts only together with the checks that it rests on, and that the agent
// sees their results.
func TestEvidence(t *testing.T) {
	const file = `
name: demo
returns: {passed: {from: judge.passed}}
steps:
  - {id: tests, kind: check, run: 'echo the output; exit %d', on_failure: continue}
  - id: judge
    kind: agent
    prompt: Judge.
    evidence: [tests]
    output: {type: object, properties: {passed: {type: boolean}}, required: [passed]}
`
	for exit, want := range []any{true, false} {
		o, _ := place(t, nil)
		agents := &crew{do: func(workflow.Job) workflow.Report { return workflow.Report{Result: json.RawMessage(`{"passed":true}`)} }}
		o.Agents = agents
		out, err := perform(t, event.NewMemory("s"), parsed(t, fmt.Sprintf(file, exit)), nil, o)
		if err != nil || out["passed"] != want || !strings.Contains(agents.jobs[0].Prompt, "the output") {
			t.Errorf("exit %d: %v, %v, %q", exit, out, err, agents.jobs[0].Prompt)
		}
	}
}

// TestRetry checks that a step has one outcome, of the last of its tries.
func TestRetry(t *testing.T) {
	o, _ := place(t, nil)
	n := 0
	agents := &crew{do: func(workflow.Job) workflow.Report {
		if n++; n < 3 {
			return workflow.Report{Failed: "not yet"}
		}
		return says("at last")
	}}
	o.Agents = agents
	log := event.NewMemory("s")
	_, err := perform(t, log, parsed(t, `
name: demo
steps:
  - {id: flaky, kind: run, run: 'echo x >> tries; test $(wc -l < tries) -ge 3', retry: {times: 2}}
  - {id: never, kind: run, run: 'echo x >> never; false', retry: {times: 1, wait: 1ms}, on_failure: continue}
  - {id: agent, kind: agent, prompt: go, retry: {times: 2}}
`), nil, o)
	if got := fmt.Sprint(outcomes(t, log)); err != nil || got != "map[agent:ok agent@1:failed agent@2:failed agent@3:ok flaky:ok flaky@1:failed flaky@2:failed flaky@3:ok "+
		"never:failed never@1:failed never@2:failed workflow:ok]" {
		t.Errorf("%v, %s", err, got)
	}
	if got := fmt.Sprint(agents.names()); got != "[agent agent#2 agent#3]" {
		t.Errorf("agents %s", got)
	}
	if raw, err := os.ReadFile(filepath.Join(o.Env.Root, "never")); err != nil || string(raw) != "x\nx\n" {
		t.Errorf("never ran %q, %v", raw, err)
	}
}

// TestSafeOutputs checks that an agent's output is released once, after its gate and not before, and that the agent
// itself only reads.
func TestSafeOutputs(t *testing.T) {
	const file = `
name: demo
steps:
  - id: write
    kind: agent
    prompt: go
    output: {type: object, properties: {body: {type: string}, note: {type: string}}, required: [body]}
    safe_outputs:
      body: {kind: comment, from: body, to: "issue ${inputs.n}", after: ok}
      note: {kind: file, from: note, to: note.md}
  - {id: ok, kind: approval, prompt: "Post this?", show: "${write.body}"}
inputs: {n: {type: integer}}
`
	for answer, want := range map[string]string{"approve": "issue 7: hello", "reject": ""} {
		o, _ := place(t, nil)
		agents := &crew{do: func(workflow.Job) workflow.Report {
			return workflow.Report{Result: json.RawMessage(`{"body":"hello","note":"# A note"}`)}
		}}
		posted := ""
		o.Agents, o.Outlets = agents, map[string]workflow.Outlet{"comment": func(_ context.Context, r workflow.Release) (string, error) {
			posted += r.To + ": " + fmt.Sprint(r.Value)
			return "https://example.com/1", nil
		}}
		log := event.NewMemory("s")
		for range 2 {
			_, _ = perform(t, log, parsed(t, file), map[string]any{"n": 7}, o, answer)
		}
		raw, err := os.ReadFile(filepath.Join(o.Env.Root, "note.md"))
		if posted != want || err != nil || string(raw) != "# A note\n" || agents.jobs[0].Mode != tool.ModePlan {
			t.Errorf("%s: posted %q, file %q, %v, mode %s", answer, posted, raw, err, agents.jobs[0].Mode)
		}
	}
	o, _ := place(t, nil)
	o.Agents = &crew{do: func(workflow.Job) workflow.Report {
		return workflow.Report{Result: json.RawMessage(`{"body":"hello"}`)}
	}}
	_, err := perform(t, event.NewMemory("s"), parsed(t, file), map[string]any{"n": 7}, o, "approve")
	if err == nil || !strings.Contains(err.Error(), "nothing here releases a comment") {
		t.Errorf("without an outlet: %v", err)
	}
}

// TestIncluded checks that a workflow can be a step of another, with its result.
func TestIncluded(t *testing.T) {
	find := func(name string) (string, []byte, error) {
		return name + ".yaml", []byte("name: " + name + `
inputs: {n: {type: integer}, greet: {type: string, default: hi}}
returns: {said: {from: say.output}}
steps:
  - {id: say, kind: run, run: 'echo "$GREET $N"', env: {N: "${inputs.n}", GREET: "${inputs.greet}"}}
`), nil
	}
	w, err := workflow.Parse("outer.yaml", []byte(`
name: outer
returns: {first: {from: a.said}, second: {from: b.said}}
steps:
  - {id: a, kind: workflow, use: inner, with: {n: 3}}
  - {id: b, kind: workflow, use: inner, with: {n: 4, greet: "${a.said}"}}
`), find)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := place(t, nil)
	log := event.NewMemory("s")
	out, err := perform(t, log, w, nil, o)
	if err != nil || out["first"] != "hi 3" || out["second"] != "hi 3 4" {
		t.Errorf("%v, %v", out, err)
	}
	if got := fmt.Sprint(outcomes(t, log)); got != "map[a:ok a/say:ok b:ok b/say:ok workflow:ok]" {
		t.Error(got)
	}
}

// TestWaits checks that a wait for a time continues after a restart, that a wait for a file sees the file, and that a
// wait for a webhook takes its content.
func TestWaits(t *testing.T) {
	o, _ := place(t, nil)
	w := parsed(t, `
name: demo
returns: {hook: {from: hook.ref}}
steps:
  - {id: pause, kind: wait, for: 300ms}
  - {id: file, kind: wait, needs: [], file: ready.txt}
  - {id: make, kind: run, needs: [pause], run: touch ready.txt}
  - {id: hook, kind: wait, needs: [file], webhook: deployed, output: {type: object, properties: {ref: {type: string}}}}
`)
	log := event.NewMemory("s")
	began := time.Now()
	out, err := perform(t, log, w, nil, o, `{"ref":"v1"}`)
	if took := time.Since(began); err != nil || out["hook"] != "v1" || took < 300*time.Millisecond {
		t.Errorf("%v, %v after %v", out, err, took)
	}
	var due string
	if err := json.Unmarshal(results(t, log)["pause@due"].Result, &due); err != nil || due == "" {
		t.Errorf("due %q, %v", due, err)
	}
}

// TestToolStep checks that a call is made as the step says, and that its result is data.
func TestToolStep(t *testing.T) {
	agents := &crew{do: func(j workflow.Job) workflow.Report {
		if j.Call == "bad" {
			return workflow.Report{Failed: "denied"}
		}
		return says(fmt.Sprintf(`{"called":%q,"with":%s}`, j.Call, j.Args))
	}}
	log := event.NewMemory("s")
	out, err := perform(t, log, parsed(t, `
name: demo
inputs: {path: {type: string}}
returns: {with: {from: look.with}}
steps:
  - {id: look, kind: tool, tool: read_file, with: {path: "${inputs.path}", limit: 3}, output: {type: object}}
  - {id: bad, kind: tool, tool: bad}
`), map[string]any{"path": "a.txt"}, workflow.Options{Agents: agents})
	if got := fmt.Sprint(out["with"]); err == nil || !strings.Contains(err.Error(), "bad: denied") || got != "map[limit:3 path:a.txt]" {
		t.Errorf("%v, %v", out, err)
	}
}

// quota is agents whose model has used up its quota for a while.
type quota struct {
	crew
	until time.Time
	asked int
}

func (q *quota) Clear(context.Context) error {
	if time.Now().Before(q.until) {
		return &inspan.StopError{Stopped: event.Stopped{Reason: event.ReasonFailed, Cause: llm.KindQuota, Detail: "used up"}}
	}
	return nil
}

// TestQuota checks that no step begins after a quota error, that the run stays open, and that it continues later
// without doing anything twice.
func TestQuota(t *testing.T) {
	o, _ := place(t, nil)
	w := parsed(t, `
name: demo
limits: {concurrency: 1}
steps:
  - {id: a, kind: agent, prompt: go}
  - {id: b, kind: agent, prompt: go}
  - {id: c, kind: run, run: "echo x >> ran"}
`)
	agents := &quota{}
	agents.do = func(workflow.Job) workflow.Report {
		if agents.asked++; agents.asked == 1 {
			agents.until = time.Now().Add(time.Hour)
		}
		return says("done")
	}
	o.Agents = agents
	log := event.NewMemory("s")
	_, err := perform(t, log, w, nil, o)
	if got := fmt.Sprint(outcomes(t, log)); err != nil || got != "map[a:ok workflow:]" {
		t.Errorf("%v, %s", err, got)
	}
	agents.until = time.Time{}
	s, err := (&inspan.Agent{Program: inspan.Program{Run: func(ctx context.Context, steps *inspan.Steps) error {
		_, err := w.Run(ctx, steps, nil, o)
		return err
	}}}).Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Status().Stopped; st == nil || st.Cause != llm.KindQuota {
		t.Errorf("stopped: %+v", st)
	}
	c := inspan.Conductor{Session: s}
	if err := c.Run(t.Context(), event.Said{}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(o.Env.Root, "ran"))
	if got := fmt.Sprint(outcomes(t, log)); err != nil || got != "map[a:ok b:ok c:ok workflow:ok]" ||
		agents.asked != 2 || string(raw) != "x\n" {
		t.Errorf("%s, %d asked, %q, %v", got, agents.asked, raw, err)
	}
}
