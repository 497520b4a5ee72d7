package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// played is a model whose answers a function makes, of the agent's task and of how many replies its
// conversation has.
type played func(task string, turn int) llm.Parts

func (played) Info() llm.Info {
	return llm.Info{Provider: "script", Model: "played", Window: 200_000, MaxOutput: 32_000, Prices: llm.Prices{{Input: 1, Output: 1}}}
}

func (p played) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	task, turn := "", 0
	for _, m := range req.Messages {
		if m.Role == llm.Assistant {
			turn++
		}
		if task == "" && m.Role == llm.User {
			task = m.Parts.Text()
		}
	}
	parts := p(task, turn)
	one := &script.Model{Steps: []script.Step{{Parts: parts}}}
	return one.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say(task)}}})
}

// makes is a reply with one call.
func makes(tool string, args map[string]any) llm.Parts {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.Parts{llm.Call{Name: tool, Args: raw}}
}

// brings is an agent's result, and its last words after it.
func brings(turn, from int, result map[string]any) llm.Parts {
	if turn > from {
		return llm.Say("That is all.")
	}
	return makes("return_result", result)
}

// repository is a git repository with files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"config", "user.email", "a@example.com"},
		{"config", "user.name", "a"},
		{"add", "-A"},
		{"commit", "-qm", "begin", "--allow-empty"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// flows performs a workflow with played agents, answers its questions in order, and returns its result.
func flows(t *testing.T, model llm.Model, root, name string, inputs []string, o app.Options,
	answers ...string,
) (string, *inspan.Session, error) {
	t.Helper()
	a := load(t, "")
	a.Providers.Given, a.Self = model, sandbox.Self()
	p, err := app.Workflows(a, root, "").Program(name, inputs)
	if err != nil {
		t.Fatal(err)
	}
	if o.Mode == "" {
		o.Mode = "auto"
	}
	o.Program = p
	s, err := a.Host(o, func(text string) { t.Log(text) }).New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := inspan.Conductor{Session: s, Ask: func(_ context.Context, q inspan.Pending) (event.Body, error) {
		if len(answers) == 0 {
			return nil, fmt.Errorf("an unforeseen question: %s", q.Preview)
		}
		d := event.Decided{Call: q.Call.ID, Question: q.Question, Allow: true, Answer: answers[0]}
		answers = answers[1:]
		return d, nil
	}}
	err = c.Run(t.Context(), p.Begin())
	if len(answers) > 0 {
		t.Errorf("nobody asked for %q", answers)
	}
	brought := ""
	for e, bad := range a.Host(o, func(string) {}).Events(t.Context(), s.ID()) {
		if bad != nil {
			t.Fatal(bad)
		}
		if end, ok := e.Body.(event.StepEnded); ok && end.Step == event.Workflow {
			brought = words.Returned(end.Result)
		}
	}
	return brought, s, err
}

func needsBoxes(t *testing.T) {
	t.Helper()
	a := load(t, "")
	a.Self = sandbox.Self()
	env, err := a.Permission.Env(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = env.Close() }()
	if !env.Walls.Workspace {
		t.Skip("no sandbox here: " + env.Walls.Why)
	}
}

// TestPIV checks that a plan is made and revised, is implemented once a person has approved it, and that failures are
// fed back, with the tests as evidence.
func TestPIV(t *testing.T) {
	needsBoxes(t)
	root := repository(t, map[string]string{"test.sh": "grep -q right answer.txt || { echo '--- FAIL: TestAnswer'; exit 1; }\n"})
	var plans, tries, judged atomic.Int32
	model := played(func(task string, turn int) llm.Parts {
		switch {
		case strings.HasPrefix(task, "Plan this task"):
			if turn == 0 {
				plans.Add(1)
			}
			if n := plans.Load(); n == 2 && !strings.Contains(task, "use the word right") {
				t.Errorf("the person's words did not reach the second plan: %s", task)
			}
			return brings(turn, 0, map[string]any{"title": "Answer", "plan": fmt.Sprintf("# Plan %d\nWrite answer.txt.", plans.Load())})
		case strings.HasPrefix(task, "Implement this plan"):
			if turn > 0 {
				return llm.Say("Implemented.")
			}
			n := tries.Add(1)
			if n == 2 && (!strings.Contains(task, "not right yet") || !strings.Contains(task, "TestAnswer")) {
				t.Errorf("what failed was not fed back: %s", task)
			}
			return makes("bash", map[string]any{"command": "echo " + map[int32]string{1: "wrong", 2: "right"}[n] + " > answer.txt"})
		}
		if turn == 0 {
			judged.Add(1)
		}
		return brings(turn, 0, map[string]any{"passed": true, "summary": "all of it", "findings": "not right yet"}) // a claim
	})
	p, s, err := flows(t, model, root, "piv", []string{"task=answer", "check=sh test.sh"}, app.Options{}, "do it well", "revise: use the word right", "1")
	if err != nil || s.Status().Stopped.Reason != event.ReasonDone {
		t.Fatalf("%v, %+v", err, s.Status().Stopped)
	}
	if got := p; got != "approved: true\npassed: true\nsummary: all of it" {
		t.Errorf("it brings %q", got)
	}
	if plans.Load() != 2 || tries.Load() != 2 || judged.Load() != 2 {
		t.Errorf("%d plans, %d tries, %d verdicts", plans.Load(), tries.Load(), judged.Load())
	}
	if raw, err := os.ReadFile(filepath.Join(root, "plan.md")); err != nil || string(raw) != "# Plan 2\nWrite answer.txt.\n" {
		t.Errorf("plan.md holds %q, %v", raw, err)
	}
}

// TestPIVRejected checks that nothing is written or implemented that a person has rejected.
func TestPIVRejected(t *testing.T) {
	needsBoxes(t)
	root := repository(t, nil)
	model := played(func(task string, turn int) llm.Parts {
		if !strings.HasPrefix(task, "Plan this task") {
			t.Errorf("an agent worked on %q", task)
		}
		return brings(turn, 0, map[string]any{"title": "Answer", "plan": "# Plan"})
	})
	p, _, err := flows(t, model, root, "piv", []string{"task=answer"}, app.Options{}, "reject")
	if _, gone := os.Stat(filepath.Join(root, "plan.md")); err != nil || p != "approved: false" || !errors.Is(gone, os.ErrNotExist) {
		t.Errorf("%v, %q, %v", err, p, gone)
	}
}

// TestUpgradeDeps checks that each upgrade is tried by itself: a harmless one is taken, one that an agent can repair is
// taken with the repair, and one that stays broken is left out.
func TestUpgradeDeps(t *testing.T) {
	needsBoxes(t)
	root := repository(t, map[string]string{
		"deps": "alpha 1\nbeta 1\ngamma 1\n", "fixed": "\n",
		"list.sh": `echo '[{"name":"alpha","to":"2"},{"name":"beta","to":"2"},{"name":"gamma","to":"2"}]'`,
		"test.sh": "echo '--- FAIL: TestOld'; st=1\n" +
			"if grep -q 'beta 2' deps && ! grep -q beta fixed; then echo '--- FAIL: TestBeta'; fi\n" +
			"if grep -q 'gamma 2' deps; then echo '--- FAIL: TestGamma'; fi\nexit $st\n",
	})
	model := played(func(task string, turn int) llm.Parts {
		if turn == 0 && strings.HasPrefix(task, "beta was upgraded to 2") && strings.Contains(task, "TestBeta") {
			return makes("bash", map[string]any{"command": "echo beta >> fixed"})
		}
		return llm.Say("I can do nothing about it.")
	})
	p, _, err := flows(t, model, root, "upgrade-deps", []string{
		"check=sh test.sh", "outdated=sh list.sh", `get=sed -i "s/^$NAME .*/$NAME $TO/" deps`,
	}, app.Options{})
	if err != nil || p != "left: 1\nupgraded: 2" {
		t.Errorf("%v, %q", err, p)
	}
	cmd := exec.Command("git", "log", "--format=%s", "--reverse")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil || string(out) != "begin\nUpgrade alpha to 2\nUpgrade beta to 2\n" {
		t.Errorf("%q, %v", out, err)
	}
	if raw, err := os.ReadFile(filepath.Join(root, "deps")); err != nil || string(raw) != "alpha 2\nbeta 2\ngamma 1\n" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestClips checks that five agents feed each other, and that the run writes the output of agents that only read.
func TestClips(t *testing.T) {
	root := repository(t, map[string]string{"talk.txt": "words"})
	var order []string
	model := played(func(task string, turn int) llm.Parts {
		for _, one := range []struct{ begins, field string }{
			{"Read talk.txt", "moments"}, {"Choose the 5", "chosen"}, {"Cut each", "cuts"}, {"Give each", "titled"}, {"Check each", "clips"},
		} {
			if !strings.HasPrefix(task, one.begins) {
				continue
			}
			if turn == 0 {
				order = append(order, one.field)
				if n := len(order); n > 1 && !strings.Contains(task, order[n-2]+" of it") {
					t.Errorf("%s did not get %s: %s", one.field, order[n-2], task)
				}
			}
			return brings(turn, 0, map[string]any{one.field: []string{one.field + " of it"}, "markdown": "# Clips"})
		}
		return llm.Say("?")
	})
	_, _, err := flows(t, model, root, "clips", []string{"talk.txt"}, app.Options{})
	if raw, bad := os.ReadFile(filepath.Join(root, "clips.md")); err != nil || bad != nil || string(raw) != "# Clips\n" || len(order) != 5 {
		t.Errorf("%v, %v, %q, %q", err, bad, raw, order)
	}
}

// TestGoal plays six kinds of agents: the check as it was before they changed it decides on success, and the
// breaker ends runs without progress.
func TestGoal(t *testing.T) {
	needsBoxes(t)
	const check = "for n in 1 2 3; do test -f part$n || echo \"--- FAIL: Part$n\"; done; ls part1 part2 part3 guard >/dev/null"
	round := func(task string) int {
		n := 0
		_, _ = fmt.Sscanf(task[strings.Index(task, "The rounds before this one, number ")+35:], "%d", &n)
		return n
	}
	says := func(turn, from int, what string) llm.Parts {
		return brings(turn, from, map[string]any{"approach": what, "summary": "I have reached the goal"})
	}
	writes := func(name string) llm.Parts { return makes("write_file", map[string]any{"path": name, "content": "x"}) }
	for name, c := range map[string]struct {
		does    played
		reached bool
		rounds  int // at most
	}{
		"honest": {func(task string, turn int) llm.Parts {
			if turn == 0 {
				return writes(fmt.Sprintf("part%d", round(task)))
			}
			return says(turn, 1, "the next part")
		}, true, 3},
		"silent": {func(task string, turn int) llm.Parts { // it works, and never brings the result it is asked for
			if turn == 0 {
				return writes(fmt.Sprintf("part%d", round(task)))
			}
			return llm.Say("done")
		}, true, 3},
		"lazy":  {func(_ string, turn int) llm.Parts { return says(turn, 0, "nothing") }, false, 5},
		"lying": {func(_ string, turn int) llm.Parts { return says(turn, 0, "all parts are there") }, false, 5},
		"looping": {func(_ string, turn int) llm.Parts {
			if turn == 0 {
				return writes("part1")
			}
			return says(turn, 1, "part1 again")
		}, false, 6},
		"drifting": {func(task string, turn int) llm.Parts {
			if turn == 0 {
				return writes(fmt.Sprintf("docs/essay%d.md", round(task)))
			}
			return says(turn, 1, "an essay")
		}, false, 5},
		"destructive": {func(task string, turn int) llm.Parts {
			if turn == 0 {
				return makes("bash", map[string]any{"command": fmt.Sprintf("touch part%d; rm -f guard", round(task))})
			}
			return says(turn, 1, "without the guard")
		}, false, 8},
		"cheating": {func(_ string, turn int) llm.Parts {
			if turn == 0 {
				return makes("write_file", map[string]any{"path": "verify.sh", "content": "true"})
			}
			return says(turn, 1, "a check that passes")
		}, false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			check := check
			if name == "cheating" {
				check = "sh verify.sh"
			}
			root := repository(t, map[string]string{"guard": "x", "docs/a.md": "x", "verify.sh": "test -f part1"})
			p, s, err := flows(t, c.does, root, "goal", []string{"goal=three parts", "check=" + check}, app.Options{})
			if reached := err == nil; reached != c.reached {
				t.Errorf("reached: %t (%v), %q", reached, err, p)
			}
			rounds := 0
			_, told, _ := strings.Cut(p, "rounds: ")
			_, _ = fmt.Sscanf(told, "%d", &rounds)
			if rounds == 0 || rounds > c.rounds {
				t.Errorf("it took %d rounds, of at most %d", rounds, c.rounds)
			}
			const why = "no check got better"
			if st := s.Status().Stopped; !c.reached && (st == nil || st.Reason != event.ReasonFailed || !strings.Contains(st.Detail, why)) {
				t.Errorf("stopped: %+v", st)
			}
		})
	}
}

// file is a workflow that a person names by its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForkedAgent checks that a copy of an agent knows the original's messages, that the original does not learn of the
// copy's, and that nothing is counted twice.
func TestForkedAgent(t *testing.T) {
	var asked []string
	model := forked(func(messages []llm.Message) llm.Parts {
		var all []string
		for _, m := range messages {
			if text := m.Parts.Text(); !strings.HasPrefix(text, "[You are agent ") {
				all = append(all, text)
			}
		}
		asked = append(asked, strings.Join(all, " | "))
		return llm.Say("answer " + fmt.Sprint(len(asked)))
	})
	brought, s, err := flows(t, model, repository(t, nil), file(t, `
name: flow
returns: {first: {from: a.text}, copy: {from: b.text}, fresh: {from: c.text}}
steps:
  - {id: a, kind: agent, prompt: What is the word}
  - {id: b, kind: agent, context: fork(a), prompt: Say it again}
  - {id: c, kind: agent, prompt: And you}
`), nil, app.Options{})
	if err != nil || brought != "copy: answer 2\nfirst: answer 1\nfresh: answer 3" {
		t.Errorf("%q, %v", brought, err)
	}
	for n, want := range []string{"What is the word", "What is the word | answer 1 | Say it again", "And you"} {
		if n >= len(asked) || !strings.HasSuffix(asked[n], want) {
			t.Errorf("request %d: %q, want %q", n, asked, want)
		}
	}
	usage := 0
	for _, c := range s.Status().Children {
		usage += c.Usage.Output
	}
	if got := s.Status().Usage.Output; got != usage || len(s.Status().Children) != 3 {
		t.Errorf("%d tokens of %d, by %d agents", got, usage, len(s.Status().Children))
	}
}

// forked is a model whose answers a function makes of the conversation.
type forked func([]llm.Message) llm.Parts

func (forked) Info() llm.Info { return played(nil).Info() }

func (f forked) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	one := &script.Model{Steps: []script.Step{{Parts: f(req.Messages)}}}
	return one.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("go")}}})
}

// TestToolStepIsJudged checks that a call without a model is judged as one with a model is.
func TestToolStepIsJudged(t *testing.T) {
	const flow = `
name: flow
returns: {said: {from: write.text}}
steps:
  - {id: write, kind: tool, tool: write_file, with: {path: made.txt, content: by a tool}}
`
	none := played(func(task string, _ int) llm.Parts {
		t.Errorf("a model was asked: %s", task)
		return llm.Say("?")
	})
	for mode, allowed := range map[tool.Mode]bool{tool.ModeEdit: true, tool.ModePlan: false} {
		root := repository(t, nil)
		_, s, err := flows(t, none, root, file(t, flow), nil, app.Options{Mode: mode, Unattended: true})
		_, gone := os.Stat(filepath.Join(root, "made.txt"))
		if (err == nil) != allowed || (gone == nil) != allowed {
			t.Errorf("mode %s: %v, %v, %+v", mode, err, gone, s.Status().Stopped)
		}
	}
	root := repository(t, nil)
	_, _, err := flows(t, none, root, file(t, flow), nil, app.Options{Mode: tool.ModeAsk}, "")
	if _, gone := os.Stat(filepath.Join(root, "made.txt")); err != nil || gone != nil {
		t.Errorf("allowed by a person: %v, %v", err, gone)
	}
}

// TestWorkflowLimits checks that the limits of a workflow bound all of its agents together, that the run continues with
// a higher one, and that those of the command are never exceeded.
func TestWorkflowLimits(t *testing.T) {
	const flow = `
name: flow
limits: {tokens: 1}
steps:
  - {id: a, kind: agent, prompt: one}
  - {id: b, kind: agent, prompt: two}
`
	n := 0
	model := played(func(string, int) llm.Parts { n++; return llm.Say("done") })
	_, s, err := flows(t, model, repository(t, nil), file(t, flow), nil, app.Options{Limits: inspan.Limits{Tokens: 1_000_000}})
	if st := s.Status().Stopped; err != nil || st == nil || st.Reason != event.ReasonMaxTokens || n != 1 {
		t.Fatalf("%v, %+v after %d requests", err, st, n)
	}
	limits := s.Status().Limits
	limits.Tokens = 1_000_000
	c := inspan.Conductor{Session: s}
	if err := c.Run(t.Context(), event.Switched{Limits: &limits}, event.Said{}); err != nil {
		t.Fatal(err)
	}
	if st := s.Status().Stopped; st.Reason != event.ReasonDone || n != 2 {
		t.Errorf("gone on: %+v after %d requests", st, n)
	}
}

// limited is a model whose quota is used up once, after so many requests.
type limited struct {
	played
	left  atomic.Int32
	until atomic.Int64 // when it is there again, in milliseconds
	early atomic.Int32 // requests that came before that
}

func (m *limited) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if now := time.Now().UnixMilli(); m.until.Load() > now {
		m.early.Add(1)
	}
	if m.left.Add(-1) == 0 {
		const wait = 1500 * time.Millisecond
		m.until.Store(time.Now().Add(wait).UnixMilli())
		return func(yield func(llm.Chunk, error) bool) {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindQuota, Message: "the quota is used up", RetryAfter: wait})
		}
	}
	return m.played.Stream(ctx, req)
}

// TestWorkflowQuota checks that a used-up quota is one wait of the whole run: nothing is asked or begun until it is
// over, and then the run continues to its end. The request of the other agent may be on its way when the quota is used
// up.
func TestWorkflowQuota(t *testing.T) {
	needsBoxes(t)
	model := &limited{played: func(string, int) llm.Parts { return llm.Say("done") }}
	model.left.Store(3)
	brought, s, err := flows(t, model, repository(t, nil), file(t, `
name: flow
limits: {concurrency: 2}
returns: {ok: {from: all.ok}}
steps:
  - id: all
    kind: each
    over: [1, 2, 3, 4, 5, 6]
    steps:
      - {id: agent, kind: agent, prompt: "Number ${item}"}
      - {id: check, kind: check, run: "true"}
`), nil, app.Options{Limits: inspan.Limits{RetryLong: true}})
	if err != nil || brought != "ok: 6" || model.early.Load() > 1 {
		t.Errorf("%q, %v, %d requests came early", brought, err, model.early.Load())
	}
	pauses, until, early := 0, time.Time{}, 0
	for e, err := range s.Events(stopped(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Paused:
			pauses, until = pauses+1, b.Until
		case event.StepStarted:
			if e.Time.Before(until) {
				early++
			}
		case event.Stopped:
			if pauses != 1 || early > 0 {
				t.Errorf("%d pauses, %d steps began meanwhile", pauses, early)
			}
			return
		}
	}
}

// stopped is a context for reading a log to where it is.
func stopped(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}
