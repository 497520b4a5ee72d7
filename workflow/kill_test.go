package workflow_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/workflow"
)

// killed performs a workflow as a process that dies at its nth event; 0 means it does not. It reports whether the
// run is over.
func killed(t *testing.T, log event.Log, w *workflow.Workflow, o workflow.Options, nth int, answer func(inspan.Pending) string) (over bool) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	a := &inspan.Agent{Program: inspan.Program{Run: func(ctx context.Context, steps *inspan.Steps) error {
		_, err := w.Run(ctx, steps, nil, o)
		return err
	}}}
	s, err := a.Open(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c := inspan.Conductor{Session: s, Ask: func(_ context.Context, p inspan.Pending) (event.Body, error) {
		return event.Decided{Call: p.Call.ID, Question: p.Question, Allow: true, Answer: answer(p)}, nil
	}}
	c.OnEvent = func(event.Event) error {
		if nth--; nth == 0 {
			kill()
		}
		return nil
	}
	var inputs []event.Body
	if s.Status().Workflow == "" {
		inputs = []event.Body{event.Say("run")}
	}
	_ = c.Run(ctx, inputs...) // how it ends is in the log
	return s.Status().Stopped != nil
}

// TestKilledWorkflow kills a run again and again at places of its log, and answers at random how to continue the
// interrupted steps: no command and no call runs more often than once, and once more for each answer that permits it.
func TestKilledWorkflow(t *testing.T) {
	seeds, all, cut, allowed := uint64(100), uint64(0), 0, 0
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		o, _ := place(t, nil)
		var mu sync.Mutex // of r and of what follows, as steps work at once
		calls, permitted, kills := map[string]bool{}, map[string]int{}, 0
		o.Agents = &crew{do: func(j workflow.Job) workflow.Report {
			mu.Lock()
			defer mu.Unlock()
			if calls[j.Step] { // it goes on with the call that it has made
				return workflow.Report{Failed: "unknown", Lost: true}
			}
			calls[j.Step] = true
			if r.IntN(2) == 0 {
				return workflow.Report{Failed: "unknown", Lost: true}
			}
			return says("called")
		}}
		w := parsed(t, `
name: demo
steps:
  - {id: a, kind: run, run: 'echo a >> made', on_failure: continue}
  - {id: b, kind: run, needs: [], run: 'echo b >> made', on_failure: continue}
  - id: rounds
    kind: loop
    max: 2
    until: {c.exit: 7}
    on_failure: continue
    steps:
      - {id: c, kind: run, run: 'echo "c$N" >> made', env: {N: "${round}"}, on_failure: continue}
      - {id: d, kind: tool, tool: deploy, on_failure: continue}
`)
		answer := func(p inspan.Pending) string {
			mu.Lock()
			defer mu.Unlock()
			if r.IntN(3) == 0 {
				return "leave it"
			}
			step, _, _ := strings.Cut(p.ID(), "~again")
			permitted[step]++
			return "run it again"
		}
		log := event.NewMemory("s")
		for over := false; !over; kills++ {
			mu.Lock()
			nth := 1 + r.IntN(12)
			mu.Unlock()
			if kills > 60 {
				nth = 0
			}
			over = killed(t, log, w, o, nth, answer)
		}
		made := map[string]int{}
		lines, _ := os.ReadFile(filepath.Join(o.Env.Root, "made"))
		for line := range strings.FieldsSeq(string(lines)) {
			step := line
			if round, is := strings.CutPrefix(line, "c"); is {
				step = "rounds." + round + ".c"
			}
			made[step]++
		}
		for id := range calls {
			made[strings.ReplaceAll(strings.TrimRight(id, "+"), "/", ".")]++
		}
		for step, n := range made {
			if n > 1+permitted[step] {
				t.Errorf("seed %d: %s was made %d times with %d permissions", seed, step, n, permitted[step])
			}
		}
		all += uint64(len(made))
		cut += kills - 1
		for _, n := range permitted {
			allowed += n
		}
	}
	t.Logf("%d workflows were killed %d times; %d steps had an effect, with %d permissions to repeat one", seeds, cut, all, allowed)
	if all < 3*seeds { // else nothing was tried
		t.Errorf("only %d of 6 steps for each of %d seeds were made", all, seeds)
	}
}
