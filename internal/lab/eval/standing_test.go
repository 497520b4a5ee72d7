package eval_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/lab/eval"
)

// TestStanding looks at a run in progress, and at a finished one.
func TestStanding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.walls()
	b.task("fast", "", "say: hi", "exit 0")
	b.task("wrong", "", "say: hi", "exit 3")
	b.task("missing", "needs = [\"no-such-program-anywhere\"]", "say: hi", "exit 0")
	b.task("slow", "", "bash: while ! test -f go; do sleep 0.05; done", "exit 0")
	b.Budget, b.Time = 2, time.Hour
	run := b.begin()
	f := eval.FolderIn(b.Table.StateDir)
	look := func() eval.Standing {
		s, err := f.Standing(t.Context(), run.ID)
		if err != nil {
			t.Error(err)
		}
		return s
	}
	if s := look(); s.Working || s.Counts["open"] != 4 || s.All != 4 || s.Budget != 2 {
		t.Errorf("before it begins: %+v", s)
	}
	var meanwhile eval.Standing
	b.OnTrial = func(p eval.Progress) {
		if p.Done != 3 {
			return
		}
		meanwhile = look()
		for _, task := range meanwhile.Tasks {
			if task.Task != "slow" {
				continue
			}
			// The agent waits for a file, which it would find only in its workspace.
			dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "inspan-eval-"+run.ID, "slow-1-*", "work"))
			if err != nil || len(dirs) != 1 {
				t.Errorf("%v %v", dirs, err)
			}
			for _, dir := range dirs {
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	}
	b.Jobs = 4
	if _, err := b.Go(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"passed": 1, "failed": 1, "broken": 1, "running": 1}
	if diff := gocmp.Diff(want, meanwhile.Counts); diff != "" || !meanwhile.Working || meanwhile.Left <= 0 || meanwhile.Until == nil ||
		time.Until(*meanwhile.Until) > time.Hour {
		t.Errorf("meanwhile: %s\n%+v", diff, meanwhile)
	}
	s := look()
	if diff := gocmp.Diff(map[string]int{"passed": 2, "failed": 1, "broken": 1}, s.Counts); diff != "" || s.Working || s.Left != 0 || s.Until != nil {
		t.Errorf("in the end: %s\n%+v", diff, s)
	}
	for _, task := range s.Tasks {
		if one := task.Tries[0]; task.Task == "wrong" && (one.State != "failed" || one.Reason != "the check says no" || one.Session == "") {
			t.Errorf("%+v", task)
		}
	}
	if list, err := f.Recent(t.Context(), 5); err != nil || len(list) != 1 || list[0].Run != run.ID || list[0].Tasks != nil {
		t.Errorf("%+v %v", list, err)
	}
}

// TestStandingTellsNothingHeldOut checks that the progress of a run of held-out tasks reveals no result.
func TestStandingTellsNothingHeldOut(t *testing.T) {
	b := newBench(t)
	run := b.written(eval.Run{Suite: "s", Split: eval.HeldOut, Tries: 1}, []eval.Trial{
		{Task: "a", Try: 1, Outcome: eval.Passed, Session: "x"},
		{Task: "b", Try: 1, Outcome: eval.Failed, Reason: "no", Session: "y"},
		{Task: "c", Try: 1, Outcome: eval.Broken, Reason: "down"},
	}, "a", "b", "c")
	s, err := eval.FolderIn(b.Table.StateDir).Standing(t.Context(), run.ID)
	want := []eval.StandingTask{
		{Task: "a", Tries: []eval.StandingTry{{State: "done"}}},
		{Task: "b", Tries: []eval.StandingTry{{State: "done"}}},
		{Task: "c", Tries: []eval.StandingTry{{State: "broken", Reason: "down"}}},
	}
	if diff := gocmp.Diff(want, s.Tasks); diff != "" || err != nil || s.Counts["done"] != 2 || !s.HeldOut {
		t.Errorf("%v %s %+v", err, diff, s)
	}
}
