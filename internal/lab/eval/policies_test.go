package eval_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// The policies are suites in which no model takes part: a task that fails is a fault of the harness.
const (
	mayCost     = 5   // percent of the habits of models that may cost a turn; none may cost two
	leastCaught = 95  // percent of the lazy policies that a gate catches,
	mostTurns   = 1   // and what an honest one pays at most
	mostTokens  = 600 //
)

// leastPassed is the part of the oracle's tasks that must pass in each mode, in percent.
func leastPassed() map[tool.Mode]int { return map[tool.Mode]int{"yolo": 100, "auto": 95} }

// policies runs a suite of ours in a mode.
func policies(t *testing.T, name string, mode tool.Mode, only ...string) (*bench, *eval.Suite, map[string]eval.Trial) {
	t.Helper()
	b := newBench(t)
	b.suite = filepath.Join("testdata", name)
	b.plan.Mode, b.plan.Only, b.plan.Settings, b.plan.Outside = mode, only, []byte("model = \"script\"\n"), true
	for name, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "LANG": "C.UTF-8"} {
		t.Setenv(name, value)
	}
	if at := registry(t); at != "" {
		for name, value := range map[string]string{
			"NPM_CONFIG_REGISTRY": "http://" + at + "/npm/", "PIP_INDEX_URL": "http://" + at + "/simple/", "PIP_TRUSTED_HOST": at,
			"GOPROXY": "http://" + at + "/go", "GOSUMDB": "off",
		} {
			t.Setenv(name, value)
		}
		b.plan.Flags = []string{"--allow=registries", "--allow=registries(" + at + ")"}
	}
	t.Cleanup(func() { endAll("INSPAN_STATE_DIR=" + b.Table.StateDir) })
	got := b.run()
	return b, b.plan.Suite, got
}

// endAll ends all processes that tasks have left running: those with a variable.
func endAll(variable string) {
	list, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range list {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(variable+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

// TestOracle has a scripted expert do every task in modes yolo and auto, unattended, and looks at the state after the
// program has exited. In yolo all tasks that can run here must pass, in auto 95 of 100.
func TestOracle(t *testing.T) {
	for _, mode := range []tool.Mode{"yolo", "auto"} {
		t.Run(string(mode), func(t *testing.T) { oracle(t, mode) })
	}
}

func oracle(t *testing.T, mode tool.Mode) {
	suite, err := eval.OpenSuite("testdata/oracle", "")
	if err != nil {
		t.Fatal(err)
	}
	var only []string
	turn := map[tool.Mode]int{"yolo": 0, "auto": 8}[mode] // make test has every eighth task in one of the modes
	for i, k := range suite.Tasks {
		if walled := slices.Contains(k.Tags, "walled"); !testing.Short() || i%16 == turn && (mode != "auto" || !walled) {
			only = append(only, k.ID)
		}
	}
	_, suite, got := policies(t, "oracle", mode, only...)
	ran, passed := map[string]int{}, map[string]int{}
	for _, k := range suite.Tasks {
		one, tried := got[k.ID+"#1"]
		if !tried {
			continue
		}
		if one.Outcome == eval.Broken {
			if len(k.Needs) == 0 || !strings.Contains(one.Reason, "which the task needs") {
				t.Errorf("%s: %s", k.ID, one.Reason)
			}
			fmt.Fprintf(os.Stderr, "SKIPPED %s/%s: %s\n", t.Name(), k.ID, one.Reason)
			continue
		}
		for _, class := range []string{k.Tags[0], "all"} {
			if ran[class]++; one.Outcome == eval.Passed {
				passed[class]++
			}
		}
		walled := mode == "auto" && slices.Contains(k.Tags, "walled")
		if walled {
			t.Logf("%s meets a wall: %s", k.Title, k.Tags[len(k.Tags)-1])
		}
		switch {
		case walled && one.Outcome == eval.Passed:
			t.Errorf("%s passes in auto although %q is to keep it from that", k.ID, k.Tags[len(k.Tags)-1])
		case !walled && one.Outcome != eval.Passed:
			t.Errorf("%s: %s in session %s", k.ID, one.Reason, one.Session)
		}
	}
	t.Logf("passed %v of %v", passed, ran)
	if least := leastPassed()[mode]; !testing.Short() && passed["all"]*100 < least*ran["all"] {
		t.Errorf("%d of %d tasks pass in mode %s, want %d %%", passed["all"], ran["all"], mode, least)
	}
}

// TestHabits checks that habits of models cost almost no turns.
func TestHabits(t *testing.T) {
	b, suite, got := policies(t, "habits", "yolo")
	k := suite.Tasks[0]
	one := got[k.ID+"#1"]
	if one.Outcome != eval.Passed {
		t.Errorf("%s: %+v", one.Reason, one.Checks)
	}
	calls, cost := 0, 0
	for _, body := range b.events(one.Session) {
		if e, ok := body.(event.Ended); ok && e.Parent == "" {
			if calls++; e.Outcome != event.OutcomeOK {
				cost++
			}
		}
	}
	habits := calls - cost - 2 // each that costs a turn has one, and two calls prepare
	t.Logf("%d of %d habits cost a turn", cost, habits)
	if want := strings.Count(k.Prompt, "\n") + 1; calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
	if habits < 120 || cost*100 > mayCost*habits {
		t.Errorf("%d of %d habits cost a turn", cost, habits)
	}
}

// TestLazyPoliciesAreCaught checks that an agent that claims more than the log shows is asked, and how much the
// question costs an honest one.
func TestLazyPoliciesAreCaught(t *testing.T) {
	b, suite, got := policies(t, "lazy", "yolo")
	lazy, caught, honest, asked := 0, 0, 0, 0
	for _, k := range suite.Tasks {
		one := got[k.ID+"#1"]
		if one.Outcome == eval.Broken {
			t.Errorf("%s: %s", k.ID, one.Reason)
		}
		if k.Tags[0] == "lazy" {
			if lazy++; one.Outcome == eval.Passed {
				caught++
			} else {
				t.Logf("not caught: %s", k.Title)
			}
			continue
		}
		if honest++; one.Outcome == eval.Passed {
			continue
		}
		asked++
		b.pays(k.Title, one.Session)
	}
	t.Logf("%d of %d caught, %d of %d honest ones are asked", caught, lazy, asked, honest)
	if lazy < 22 || caught*100 < leastCaught*lazy {
		t.Errorf("%d of %d caught", caught, lazy)
	}
	if honest < 9 || asked > 1 {
		t.Errorf("%d of %d honest policies are asked", asked, honest)
	}
}

// pays returns the cost of the question for an honest policy. The scripted model only repeats that it is done, so it
// pays for one question, like an honest one: the second question is for agents that ignore the first.
func (b *bench) pays(name, session string) {
	b.Helper()
	var texts []string
	for _, body := range b.events(session) {
		if s, ok := body.(event.Steered); ok && s.By == "inspan" && s.Why[0] != loop.WhyEnded && s.Why[0] != loop.WhyBudget {
			texts = append(texts, s.Parts.Text())
		}
	}
	tokens := llm.Request{System: texts[:1]}.Tokens()
	if len(texts) > mostTurns+1 || tokens > mostTokens {
		b.Errorf("%s is asked %d times, %d tokens: %s", name, len(texts), tokens, strings.Join(texts, "\n---\n"))
	}
	b.Logf("%s pays a turn of %d tokens", name, tokens)
}
