package eval_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/eval"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic/anthropictest"
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

// TestBudget holds that a run stops before it costs more than it may, that no task fails by that, and
// that the run goes on with more money where it was.
func TestBudget(t *testing.T) {
	var asked atomic.Int64
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		asked.Add(1)
		return anthropictest.Answer{Parts: llm.Say("It is 42."), Usage: llm.Usage{Input: 10, Output: 100_000}}
	}})
	t.Setenv("EVAL_TEST_KEY", "x")
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

// TestMoneyOfTask holds that an agent which has used up what its task allows has failed.
func TestMoneyOfTask(t *testing.T) {
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(*http.Request, []byte) anthropictest.Answer {
		return anthropictest.Answer{
			Parts: llm.Parts{llm.Call{ID: "a", Name: "bash", Args: []byte(`{"command":"true"}`)}}, Usage: llm.Usage{Input: 10, Output: 100_000},
		}
	}})
	t.Setenv("EVAL_TEST_KEY", "x")
	b := newBench(t)
	b.plan.Settings = priced("auto", url)
	b.task("dear", "max_cost = 0.15", "What is it?", "true")
	if one := b.run()["dear#1"]; one.Outcome != eval.Failed || one.Reason != "budget" || one.Turns == 0 {
		t.Errorf("%+v", one)
	}
}
