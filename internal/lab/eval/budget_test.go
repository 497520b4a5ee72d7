package eval_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// priced are settings of a model whose tokens cost money.
func priced(mode, url string) []byte {
	return fmt.Appendf(nil, `model = "fake/m"
mode = %q
[providers.fake]
kind = "anthropic"
base_url = %q
key_env = "EVAL_TEST_KEY"
[providers.fake.models.m]
window = 200000
max_output = 1000
price = { input = 0.1, output = 1.0 }
`, mode, url)
}

// TestBudget checks that a run stops before it exceeds its budget, that no task fails by that, and that the run
// continues with more money where it was.
func TestBudget(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		asked.Add(1)
		return anthropictest.Answer{Parts: llm.Say("It is 42."), Usage: llm.Usage{Input: 10, Output: 100_000}}
	}})
	b := newBench(t)
	b.plan.Settings = priced("edit", url)
	for n := range 5 { // each costs 10 cents
		b.task(fmt.Sprintf("t%d", n), "[check]\nmatch = \"42\"", "What is it?", "")
	}
	b.Jobs, b.Budget = 1, 0.25
	run, err := b.Go(t.Context(), b.begin().ID)
	if !errors.Is(err, eval.ErrBudget) || len(run.Trials) == 0 || len(run.Trials) > 3 {
		t.Fatalf("%v %+v", err, run)
	}
	before := len(run.Trials)
	b.Budget = 10
	if run, err = b.Go(t.Context(), run.ID); err != nil || len(run.Trials) != 5 {
		t.Fatalf("%d trials, then %v %+v", before, err, run)
	}
	sum := 0.0
	for key, one := range b.trials(run) {
		if sum += one.Cost; one.Outcome != eval.Passed || !one.Priced {
			t.Errorf("%s: %+v", key, one)
		}
	}
	if n := asked.Load(); n < 5 || n > 6 || sum < 0.4999 || sum > 0.5001 {
		t.Errorf("%d requests, %.2f dollars", n, sum)
	}
}

// TestMoneyOfTask checks that an agent that has used up its task's budget has failed.
func TestMoneyOfTask(t *testing.T) {
	t.Parallel()
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{
			Parts: llm.Parts{llm.Call{ID: "a", Name: "bash", Args: []byte(`{"command":"true"}`)}}, Usage: llm.Usage{Input: 10, Output: 100_000},
		}
	}})
	b := newBench(t)
	b.plan.Settings = priced("auto", url)
	b.task("dear", "max_cost = 0.15", "What is it?", "true")
	if one := b.run()["dear#1"]; one.Outcome != eval.Failed || one.Reason != "budget" || one.Turns == 0 {
		t.Errorf("%+v", one)
	}
}

// TestLimitsOfRunStay checks that a continued run has its original budget, minus its spending, which includes failed
// attempts, and repeats the attempts that it had begun to repeat.
func TestLimitsOfRunStay(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		asked.Add(1)
		return anthropictest.Answer{ // so it goes on until its money is used up
			Parts: llm.Parts{llm.Call{ID: "a", Name: "bash", Args: []byte(`{"command":"true"}`)}}, Usage: llm.Usage{Input: 10, Output: 100_000},
		}
	}})
	b := newBench(t)
	b.plan.Settings = priced("auto", url)
	b.task("dear", "", "What is it?", "true")
	b.Jobs, b.Budget = 1, 0.15
	run := b.begin()
	for range 3 { // as resume does, which is given no limits
		if _, err := b.Go(t.Context(), run.ID); !errors.Is(err, eval.ErrBudget) {
			t.Fatalf("it goes on: %v", err)
		}
		b.Budget = 0
	}
	if n := asked.Load(); n == 0 || n > 2 {
		t.Errorf("%d requests of 10 cents within 15 cents", n)
	}
}

// TestFreshRunStaysFresh checks that a run that repeats all attempts still does so when it continues.
func TestFreshRunStaysFresh(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.task("one", "", "say: hi", "true")
	b.run()
	b.Fresh = true
	run := b.begin()
	b.Fresh = false
	run, err := b.Go(t.Context(), run.ID)
	if err != nil || len(run.Trials) != 1 || run.Trials[0].Cached {
		t.Errorf("%v %+v", err, run.Trials)
	}
}

// TestCacheKnowsWhatItHolds checks that a trial is not taken over from another build of the same version, from another
// server with a model of the same name, or from a time when its task was held out.
func TestCacheKnowsWhatItHolds(t *testing.T) {
	b := newBench(t)
	b.task("one", "", "say: hi", "true")
	b.run()
	again := func(what string, want bool) {
		t.Helper()
		if one := b.run()["one#1"]; one.Cached != want {
			t.Errorf("%s: %+v", what, one)
		}
	}
	again("the same", true)
	t.Setenv("INSPAN_BASE_URL", "http://127.0.0.1:1")
	again("another server", false)
	program, err := os.ReadFile(b.Program)
	if err != nil {
		t.Fatal(err)
	}
	b.Program = filepath.Join(b.dir, "inspan")
	if err := os.WriteFile(b.Program, append(program, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	again("another build", false)
	held := "[splits]\nheld-out = [\"*\"]\n"
	b.put("suite/suite.toml", held)
	b.plan.Split = eval.HeldOut
	again("held out", false)
	b.put("suite/suite.toml", strings.ReplaceAll(held, "held-out", "train"))
	b.plan.Split = eval.Train
	again("no longer held out", false)
}
