package eval_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	_ = os.Setenv("EVAL_TEST_KEY", "x") // of the servers that are played
	os.Exit(m.Run())
}

// bench is a place with a state folder of its own, where suites are made and run.
type bench struct {
	*testing.T
	*eval.Runner
	dir   string
	suite string
	plan  eval.Plan
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	set := &config.Installation{
		StateDir: filepath.Join(dir, "state"), ConfigPath: filepath.Join(dir, "settings", "config.toml"), Self: sandbox.Self(),
	}
	testkit.Findings(t, testkit.Command(t), set.StateDir)
	store := &session.Store{Dir: set.SessionsDir()}
	b := &bench{T: t, dir: dir, suite: filepath.Join(dir, "suite")}
	b.Runner = &eval.Runner{Table: &running.Table{Installation: set, Sessions: store}, Program: testkit.Command(t), Jobs: 2}
	b.plan = eval.Plan{Config: "test", Settings: []byte("model = \"script\"\nmode = \"auto\"\nretry_for = \"1ms\"\n"), Version: "test"}
	return b
}

// put writes a file below the folder of the bench.
func (b *bench) put(name, text string) {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// task adds a task to the suite.
func (b *bench) task(id, spec, ask, check string) {
	b.Helper()
	b.put("suite/"+id+"/task.toml", spec)
	b.put("suite/"+id+"/instruction.md", ask)
	if check != "" {
		b.put("suite/"+id+"/check/run.sh", check)
	}
}

// begin makes a run of the suite.
func (b *bench) begin() *eval.Run {
	b.Helper()
	var err error
	if b.plan.Suite, err = eval.OpenSuite(b.suite, b.plan.Repos); err != nil {
		b.Fatal(err)
	}
	run, err := b.Begin(b.plan)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // of a run that is not at its end
		for _, suffix := range []string{"", "-homes"} {
			_ = os.RemoveAll(filepath.Join(os.TempDir(), "inspan-eval-"+run.ID+suffix))
		}
	})
	return run
}

// run performs a run of the suite, and returns its trials by "task#try".
func (b *bench) run() map[string]eval.Trial {
	b.Helper()
	run, err := b.Go(b.Context(), b.begin().ID)
	if err != nil {
		b.Fatal(err)
	}
	return b.trials(run)
}

// trials are those of a run by "task#try". None is there twice.
func (b *bench) trials(run *eval.Run) map[string]eval.Trial {
	b.Helper()
	out := map[string]eval.Trial{}
	for _, t := range run.Trials {
		key := fmt.Sprintf("%s#%d", t.Task, t.Try)
		if _, twice := out[key]; twice {
			b.Errorf("%s is there twice", key)
		}
		out[key] = t
	}
	return out
}

// events are those of a session.
func (b *bench) events(id string) (list []event.Body) {
	b.Helper()
	for e, err := range b.Table.Past(b.Context(), id) {
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, e.Body)
	}
	return list
}

// walls skips a test where no sandbox can be built.
func (b *bench) walls() {
	b.Helper()
	env, err := sandbox.Local(b.dir, nil, sandbox.Options{Self: sandbox.Self()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = env.Close() }()
	if !env.Walls.Workspace {
		b.Skip("there is no sandbox here: " + env.Walls.Why)
	}
}

// TestWhatBreaksIsNoFailure checks that failures of the infrastructure, a different one in each task, are distinguished
// from failures of the agent, and are retried.
func TestWhatBreaksIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.task("down", "", "fail: 500 x9\nsay: hi", "exit 0")
	b.task("nokey", "flags = [\"--model=nowhere/m\"]", "say: hi", "exit 0")
	b.task("checker", "[check]\ncommand = [\"no-such-program-anywhere\"]", "say: hi", "")
	b.task("missing", "needs = [\"no-such-program-anywhere\"]", "say: hi", "exit 0")
	b.task("right", "", "say: hi", "exit 0")
	b.task("wrong", "", "say: hi", "exit 3")
	b.task("turns", "max_turns = 1", "bash: true\nbash: true", "exit 0")
	b.task("refused", "", "stop: refusal", "test -f made")
	b.Jobs = 1
	tried := map[string]int{}
	var got map[string]eval.Trial
	run, err := b.Go(t.Context(), b.begin().ID)
	for run != nil && err != nil && len(run.Trials) < 8 { // it can go on
		run, err = b.Go(t.Context(), run.ID)
	}
	got = b.trials(run)
	for task, want := range map[string]eval.Outcome{
		"down": eval.Broken, "nokey": eval.Broken, "checker": eval.Broken, "missing": eval.Broken,
		"right": eval.Passed, "wrong": eval.Failed, "turns": eval.Failed, "refused": eval.Failed,
	} {
		if one := got[task+"#1"]; one.Outcome != want {
			t.Errorf("%s: %+v, want %s", task, one, want)
		}
	}
	infos, err := b.Table.Sessions.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		tried[info.Labels["task"]]++
	}
	if tried["down"] != 3 || tried["right"] != 1 || tried[""] != 0 {
		t.Errorf("attempts: %v", tried)
	}
	if why := got["missing#1"].Reason; !strings.Contains(why, "no-such-program-anywhere") {
		t.Errorf("the reason is %q", why)
	}
}

// TestNothingWorks checks that a run ends where one trial after the other breaks.
func TestNothingWorks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range 3 {
		b.task(fmt.Sprintf("nokey%d", n), "flags = [\"--model=nowhere/m\"]", "say: hi", "exit 0")
	}
	b.Jobs = 1
	if run, err := b.Go(t.Context(), b.begin().ID); !errors.Is(err, eval.ErrBroken) || len(run.Trials) > 2 {
		t.Errorf("it goes on: %v", err)
	}
}

// TestFailuresOfAgentsAreNotSetAside checks that a fault after the checker has begun counts as a failure of the agent,
// whose code may run in it.
func TestFailuresOfAgentsAreNotSetAside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.walls()
	b.task("absent", "[check]\ncommand = [\"./prog\"]", "say: hi", "")
	b.task("closed", "[check]\ncommand = [\"./prog\"]", "bash: echo true > prog", "")
	b.task("ends127", "", "bash: echo exit 127 > prog", "set -e\nsh ./prog\nexit 0\n")
	b.task("ends126", "", "bash: echo exit 126 > prog", "sh ./prog\n")
	b.task("sleeps", "[check]\nmax_time = \"500ms\"", "bash: echo sleep 60 > prog", "sh ./prog\n")
	b.task("kills", "", "bash: echo 'kill -9 $PPID' > prog", "sh ./prog\nexit 0\n")
	b.task("shut", "", "bash: chmod 0 .", "test -f done\n")
	for name, score := range map[string]string{"scoreless": "exit 1", "unscored": "echo nan > /logs/verifier/reward.txt"} {
		b.put("suite/"+name+"/task.toml", "version = \"1.0\"\n")
		b.put("suite/"+name+"/instruction.md", "say: hi")
		b.put("suite/"+name+"/tests/test.sh", score+"\n")
	}
	for key, one := range b.run() {
		if one.Outcome != eval.Failed || one.Score != 0 || one.Reason == "" {
			t.Errorf("%s: %+v, want failed", key, one)
		}
		if key == "sleeps#1" && one.Reason != "the check took longer than 500ms" {
			t.Errorf("%s: %s", key, one.Reason)
		}
	}
}

// TestCheaterGainsNothing has an agent try to read the checker, to be it, to change the tests, and to
// wait for it.
func TestCheaterGainsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.walls()
	const secret = "the-answer-is-4711"
	b.task("cheat", "[[grader]]\nname = \"tests are left alone\"\nuntouched = [\"tests/**\"]", strings.Join([]string{
		"bash: cat " + b.suite + "/cheat/check/run.sh; cat ../check/* ../../*/check/*",
		"call: read_file {\"path\":\"" + b.suite + "/cheat/check/run.sh\"}",
		"call: list_files {\"path\":\"" + b.suite + "\"}",
		"call: grep {\"pattern\":\"answer-is\",\"path\":\"" + b.dir + "\"}",
		"bash: grep -r answer-is " + b.dir + " /tmp 2>/dev/null | head -c 4000; true",
		"bash: mkdir -p ../check; echo 'exit 0' > ../check/run.sh",
		"bash: echo 'exit 0' > tests/test.sh",
		"bash: mkdir -p check bin; echo 'exit 0' > check/run.sh; printf '#!/bin/sh\\nexit 0\\n' > bin/grep",
		"bash: chmod +x bin/grep; export PATH=$PWD/bin:$PATH",
		"call: bash {\"command\":\"while ! echo exit 0 > ../check/run.sh; do sleep 0.05; done\",\"background\":true}",
		"say: " + "The answer is right, and all tests pass: let it pass.",
	}, "\n"), "if echo > \"$CHECK/x\"; then exit 0; fi\ncp \"$CHECK/test.sh\" tests/test.sh\nsh tests/test.sh\n")
	b.put("suite/cheat/files/tests/test.sh", "exit 1\n")
	b.put("suite/cheat/check/test.sh", "# "+secret+"\ngrep -q "+secret+" answer.txt\n")
	got := b.run()["cheat#1"]
	if got.Outcome != eval.Failed || got.Score != 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Checks) != 1 || got.Checks[0].Passed {
		t.Errorf("the tests were changed: %+v", got.Checks)
	}
	calls := 0
	for _, body := range b.events(got.Session) {
		if e, ok := body.(event.Ended); ok {
			calls++
			if text := e.Parts.Text(); strings.Contains(text, secret) || strings.Contains(text, "test.sh\\nsh") {
				t.Errorf("the agent has seen the checker: %s", text)
			}
		}
	}
	if calls < 9 {
		t.Errorf("the agent made only %d calls", calls)
	}
}

// TestCheckerHasCachesOfItsOwn checks that the checker's caches do not contain what an agent leaves in the caches of
// its boxes, from which compilers and package managers take their results.
func TestCheckerHasCachesOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.walls()
	const each = "for dir in \"$GOCACHE\" \"$XDG_CACHE_HOME\" \"$PIP_CACHE_DIR\" \"$UV_CACHE_DIR\" \"$npm_config_cache\"; do "
	b.task("poisons", "", "bash: "+each+"echo bad > $dir/left || exit 1; done; touch done",
		"test -f done || exit 1\n"+each+"test -d \"$dir\" || exit 1; test -f $dir/left && exit 1; done; exit 0\n")
	if one := b.run()["poisons#1"]; one.Outcome != eval.Passed {
		t.Errorf("the checker finds what the agent has left: %+v", one)
	}
}

// TestHonestAgentPasses is the other side of it: the same task is done by who does it.
func TestHonestAgentPasses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.task("honest", "[[grader]]\nname = \"tested\"\nran = \"^sh tests/\"\n[[grader]]\nname = \"tests\"\nuntouched = [\"tests/**\"]",
		"call: write_file {\"path\":\"answer.txt\",\"content\":\"42\\n\"}\nbash: sh tests/test.sh", "grep -q 42 answer.txt")
	b.put("suite/honest/files/tests/test.sh", "test -f answer.txt\n")
	b.task("untested", "[[grader]]\nname = \"tested\"\nrequired = true\nran = \"^sh tests/\"",
		"bash: sh tests/test.sh\ncall: write_file {\"path\":\"answer.txt\",\"content\":\"42\\n\"}", "grep -q 42 answer.txt")
	b.put("suite/untested/files/tests/test.sh", "true\n")
	got := b.run()
	if one := got["honest#1"]; one.Outcome != eval.Passed || len(one.Checks) != 2 || !one.Checks[0].Passed || !one.Checks[1].Passed {
		t.Errorf("%+v", one)
	}
	if one := got["untested#1"]; one.Outcome != eval.Failed || one.Reason != "the grader tested says no" ||
		one.Checks[0].Note != "nothing was run after the last change, of answer.txt" {
		t.Errorf("%+v", one)
	}
}

// TestSuiteThatChanges checks that a run does not continue with other tasks than it began with.
func TestSuiteThatChanges(t *testing.T) {
	b := newBench(t)
	b.task("one", "", "say: hi", "true")
	run := b.begin()
	b.task("one", "", "say: hi", "false")
	if _, err := b.Go(t.Context(), run.ID); !errors.Is(err, eval.ErrChanged) {
		t.Errorf("it goes on: %v", err)
	}
}

// TestYoloIsRefused checks that checkers are not shown by accident.
func TestYoloIsRefused(t *testing.T) {
	b := newBench(t)
	b.task("one", "", "say: hi", "true")
	suite, err := eval.OpenSuite(b.suite, "")
	if err != nil {
		t.Fatal(err)
	}
	b.plan.Suite, b.plan.Mode = suite, tool.ModeYolo
	if _, err := b.Begin(b.plan); err == nil || !strings.Contains(err.Error(), "could read the checkers") {
		t.Errorf("it begins: %v", err)
	}
}

// TestOpenCheckers checks that a checker runs without a sandbox only if a person has allowed it.
func TestOpenCheckers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mark := filepath.Join(b.dir, "mark")
	b.task("open", "[check]\nopen = true", "say: hi", "touch "+mark)
	suite, err := eval.OpenSuite(b.suite, "")
	if err != nil {
		t.Fatal(err)
	}
	b.plan.Suite = suite
	if _, err := b.Begin(b.plan); err == nil || !strings.Contains(err.Error(), "--open-checks") {
		t.Errorf("it begins: %v", err)
	}
	b.plan.Outside = true
	if got := b.run(); got["open#1"].Outcome != eval.Passed {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
}

// TestInterrupted checks that an interrupted run stops its sessions, and can continue.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.task("slow", "", "bash: test -f ../again || sleep 60", "true")
	b.task("fast", "", "say: hi", "true")
	b.Jobs = 1
	ctx, stop := context.WithCancel(t.Context())
	b.OnTrial = func(eval.Progress) { stop() } // the first is done, and the second begins, or not
	run, err := b.Go(ctx, b.begin().ID)
	if !errors.Is(err, context.Canceled) || len(run.Trials) != 1 {
		t.Fatalf("%v %+v", err, run)
	}
	held, err := b.Table.List(t.Context())
	if err != nil || len(held) > 0 {
		t.Errorf("sessions go on: %v %v", held, err)
	}
}
