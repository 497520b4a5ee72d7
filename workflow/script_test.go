package workflow_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/workflow"
)

func TestMain(m *testing.M) {
	if ran, code := workflow.Helper(); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// scripted is a workflow that is a script.
func scripted(t *testing.T, head, code string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Parse("test.js", []byte("/* workflow\nname: test\n"+head+"\n*/\n"+code), nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// workers answer with their task in capitals, or fail if asked to.
func workers() *crew {
	return &crew{do: func(job workflow.Job) workflow.Report {
		if strings.HasPrefix(job.Prompt, "fail") {
			return workflow.Report{Failed: "it can't"}
		}
		return workflow.Report{Text: strings.ToUpper(job.Prompt)}
	}}
}

func TestScript(t *testing.T) {
	o, _ := place(t, map[string]string{"a.txt": "one\ntwo\n"})
	c := workers()
	o.Agents, o.Self = c, sandbox.Self()
	w := scripted(t, "inputs: {task: {type: string}}", `
		const plan = await agent("plan ${literal} " .replace("literal", inputs.task), {id: "plan"});
		const count = await run("wc -l < a.txt | jq {lines:.}", {output: {type: "object", properties: {lines: {type: "integer"}}}});
		const tests = await check("exit 3", {id: "tests"});
		const parts = await each(["a", "b"], (x) => agent("do " + x));
		return {plan, lines: count.lines, passed: tests.passed, exit: tests.exit, parts};
	`)
	log := event.NewMemory("s")
	out, err := perform(t, log, w, map[string]any{"task": "it"}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(out), "map[exit:3 lines:2 parts:[DO A DO B] passed:false plan:PLAN ${IT} ]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := c.names(), []string{"agent", "agent-2", "plan"}; !slices.Equal(got, want) {
		t.Errorf("worked %v, want %v", got, want)
	}
	again, err := perform(t, log, w, nil, o)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(out) || len(c.names()) != 3 {
		t.Errorf("performed again: %v, %v, %d agents", again, err, len(c.names()))
	}
}

// TestScriptFails lets one of several agents fail: parallel ones still run to their end.
func TestScriptFails(t *testing.T) {
	o, _ := place(t, nil)
	c := workers()
	o.Agents, o.Self = c, sandbox.Self()
	w := scripted(t, "", `
		const b = async () => { await agent("b", {id: "b1"}); await agent("b", {id: "b2"}) };
		await Promise.all([agent("fail", {id: "a"}), b()]);
	`)
	_, err := perform(t, event.NewMemory("s"), w, nil, o)
	if err == nil || !strings.Contains(err.Error(), "StepError: a: it can't") {
		t.Errorf("the error is %v", err)
	}
	if got, want := c.names(), []string{"a", "b1", "b2"}; !slices.Equal(got, want) {
		t.Errorf("worked %v, want %v", got, want)
	}
}

// TestScriptWaits has a person away: all that needs no answer is done, and the rest once there is one.
func TestScriptWaits(t *testing.T) {
	o, _ := place(t, nil)
	c := workers()
	o.Agents, o.Self = c, sandbox.Self()
	w := scripted(t, "", `
		const ask = async () => {
			const a = await approve("go on?", {choices: ["yes", "no"]});
			if (a.approved) await agent("after", {id: "after"});
		};
		await Promise.all([ask(), agent("beside", {id: "beside"})]);
		return "done";
	`)
	log := event.NewMemory("s")
	if _, err := perform(t, log, w, nil, o); err != nil {
		t.Fatal(err)
	}
	if ended := outcomes(t, log); ended[event.Workflow] != "" || ended["approval"] != "" || ended["beside"] != event.OutcomeOK {
		t.Fatalf("ended %v", ended)
	}
	if got, want := c.names(), []string{"beside"}; !slices.Equal(got, want) {
		t.Errorf("worked %v, want %v", got, want)
	}
	out, err := perform(t, log, w, nil, o, "yes")
	if err != nil || out["value"] != "done" {
		t.Errorf("%v, %v", out, err)
	}
	if got, want := c.names(), []string{"after", "beside"}; !slices.Equal(got, want) {
		t.Errorf("worked %v, want %v", got, want)
	}
}

// TestScriptIsHeldToItsSteps has scripts request steps that can't exist.
func TestScriptIsHeldToItsSteps(t *testing.T) {
	for code, want := range map[string]string{
		`await agent("x", {moed: "plan"})`:                 `unknown field "moed"`,
		`await agent("x", {mode: "wild"})`:                 "mode",
		`await agent("x", {id: "a/b"})`:                    `"a/b" is not a name`,
		`await run("x", {timeout: "1y"})`:                  "unknown unit",
		`await agent("x", {evidence: ["tests"]})`:          `evidence names "tests", which has not ended`,
		`await agent("x", {needs: []})`:                    "are for files",
		`await workflow("other")`:                          "other",
		`for (let i = 0; i < 5; i++) await agent("x")`:     "had 3 agents",
		`await tool("bash")`:                               "",
		`await run(undefined)`:                             "run takes a text first, not undefined",
		`await agent(" ")`:                                 "agent takes a text first",
		`await approve("x", {choices: []}); throw "after"`: "after",
	} {
		o, _ := place(t, nil)
		o.Agents, o.Self = workers(), sandbox.Self()
		_, err := perform(t, event.NewMemory("s"), scripted(t, "limits: {agents: 3}", code), nil, o, "approve")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
}

// TestScriptCaps checks how many agents of a script work at once, and how many a run can have, with the scripts that
// are a part of it. Those within the cap do their work.
func TestScriptCaps(t *testing.T) {
	for head, most := range map[string]int{"": 16, "limits: {concurrency: 3}": 3} {
		var working sync.WaitGroup
		working.Add(most + 1)
		var begun atomic.Int64
		c := &crew{do: func(workflow.Job) workflow.Report {
			if begun.Add(1) <= int64(most) {
				working.Done()
			}
			working.Wait()
			return workflow.Report{Text: "done"}
		}}
		asked := func(inspan.Pending) event.Decided {
			working.Done()
			return event.Decided{Allow: true, Answer: "approve"}
		}
		o, _ := place(t, nil)
		o.Agents, o.Self = c, sandbox.Self()
		log := event.NewMemory("s")
		_, err := answered(t, log, scripted(t, head, `
			const all = Array.from({length: 40}, () => agent("work"));
			await approve("All are asked for?");
			await Promise.all(all);
		`), o, asked)
		if n := atOnce(t, log); err != nil || len(c.names()) != 40 || n != most {
			t.Errorf("%q: %v, %d agents, %d at once", head, err, len(c.names()), n)
		}
	}
	for _, tc := range []struct {
		head, code string
		worked     int
	}{
		{"", `await each(Array.from({length: 1001}), () => agent("work"))`, 1000},
		{"limits: {agents: 3}", `await each([1, 2, 3, 4, 5], () => agent("work"))`, 3},
		{"limits: {agents: 5}\nuses: [part]", `await agent("work"); await each([1, 2, 3], () => workflow("part"))`, 5},
	} {
		o, _ := place(t, nil)
		c := workers()
		o.Agents, o.Self = c, sandbox.Self()
		w, err := workflow.Parse("test.js", []byte("/* workflow\nname: test\n"+tc.head+"\n*/\n"+tc.code), func(string) (string, []byte, error) {
			return "part.js", []byte("/* workflow\nname: part\n*/\nawait agent('a'); await agent('b')"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = perform(t, event.NewMemory("s"), w, nil, o)
		if err == nil || !strings.Contains(err.Error(), "limits.agents allows no more") || len(c.names()) != tc.worked {
			t.Errorf("%s: %v, %d agents worked", tc.code, err, len(c.names()))
		}
	}
}

// atOnce is how many agents of a run have worked at the same time, at the most.
func atOnce(t *testing.T, log event.Log) (most int) {
	t.Helper()
	works := map[string]bool{}
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.StepStarted:
			works[b.Step] = b.Does == string(workflow.KindAgent)
		case event.StepEnded:
			works[b.Step] = false
		}
		n := 0
		for _, works := range works {
			if works {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestScriptFiles(t *testing.T) {
	for text, want := range map[string]string{
		"return 1":                  "test.js:1: the script does not say what it is",
		"/* workflow\nname: test\n": "the comment at the beginning is not closed",
		"/* workflow\nname: test\nsteps: []\n*/\n":  "test.js:3: steps: there is no such field",
		"/* workflow\nname: Test\n*/":               `test.js:2: name: "Test" is not a name`,
		"/* workflow\nname: test\nuses: [none]\n*/": "",
		"/* workflow\ndescription: x\n*/":           "name: it is missing",
		"/* workflow\nname: test\n*/\nlet x\u202e":  "hidden character",
		"\ufeff/* workflow\r\nname: test\r\n*/\r\n": "",
	} {
		_, err := workflow.Parse("dir/test.js", []byte(text), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestPlan(t *testing.T) {
	w := scripted(t, "inputs: {task: {type: string}}", `
		const plan = await agent("plan " + inputs.task, {id: "plan", output: {type: "object", properties: {files: {type: "array"}}}});
		const work = async (f) => { await agent("do " + f, {id: "work"}); return check("make test", {id: "test"}) };
		const [lint, done] = await Promise.all([check("make lint", {id: "lint"}), each(plan.files, work)]);
		for (let i = 0; i < 5 && !done[0].passed; i++) await agent("mend " + done[0].output);
		if (lint.passed) await approve("Merge " + plan.summary + "?", {id: "ok"});
	`)
	p, err := w.Plan(t.Context(), nil, workflow.Options{Self: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	want := `test: 
├─ plan · agent · plan ‹inputs.task› · needs nothing
├─ lint · check · make lint · needs plan
├─ work · agent · do ‹plan.files (each)› · needs plan
├─ test · check · make test · needs work
└─ ok · approval · Merge ‹plan.summary›? · needs lint, test
`
	if got := p.Tree(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	bare := scripted(t, "", "await Promise.all([agent('a\\u001b]0;x\\u0007\\u202e'), agent('b')])")
	if p, err = bare.Plan(t.Context(), nil, workflow.Options{Self: sandbox.Self()}); err != nil {
		t.Fatal(err)
	}
	if got := p.Tree(); strings.ContainsAny(got, "\x1b\a\u202e") || !strings.Contains(got, "agent-2 · agent · b · needs nothing") {
		t.Errorf("got %q", got)
	}
	if _, err := scripted(t, "", "let x = ;").Plan(t.Context(), nil, workflow.Options{Self: sandbox.Self()}); err == nil {
		t.Error("a script that can't be read has a plan")
	}
}
