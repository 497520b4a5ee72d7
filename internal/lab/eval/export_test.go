package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/testkit"
)

// export exports a run to a new path with the command.
func (b *bench) export(run *eval.Run, shape string) (path, errs string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "out.jsonl")
	var said bytes.Buffer
	cmd := exec.CommandContext(b.Context(), b.Program, "eval", "export", run.ID, "--as", shape, "--out", path)
	cmd.Env = append(os.Environ(), "INSPAN_STATE_DIR="+b.Table.StateDir, "INSPAN_CONFIG_DIR="+filepath.Dir(b.Table.ConfigPath))
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		b.Fatal(err, said.String())
	}
	return path, said.String()
}

// theirs runs Python code with a third-party package, and decodes its output. Without the package it skips the test,
// and says so.
func theirs(t *testing.T, pack, code string, into any, args ...string) {
	t.Helper()
	python := testkit.Python(t.Context())
	if python == "" {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: no Python 3.12 or later\n", t.Name())
		t.Skip("no Python 3.12 or later")
	}
	uv := filepath.Join(testkit.Uv(t), "uv")
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), uv, append([]string{
			"run", "--quiet", "--no-project", "--python", python, "--with", pack,
		}, args...)...)
		cmd.Stderr = os.Stderr
		return cmd.Output()
	}
	if _, err := run("python", "-c", ""); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: %s can't be installed\n", t.Name(), pack)
		t.Skip(pack + " can't be installed")
	}
	out, err := run(append([]string{"python", "-c", code}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestHarborTakesIt has Harbor read the folder of a job, and count its trials as we do.
func TestHarborTakesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.task("right", "", "bash: echo 1\nsay: hi", "exit 0")
	b.task("wrong", "", "say: hi", "echo no; exit 3")
	long := strings.Repeat("x", 40)
	b.task(long+"1", "", "say: hi", "exit 0")
	b.task(long+"2", "", "say: hi", "exit 0")
	b.task("missing", "needs = [\"no-such-program-anywhere\"]", "say: hi", "exit 0")
	b.plan.Tries, b.plan.Model = 2, "script/commands"
	run, err := b.Go(t.Context(), b.begin().ID)
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := b.export(run, "harbor")
	var got struct {
		Ours, Theirs struct {
			Trials  int                         `json:"n_trials"`
			Errors  int                         `json:"n_errors"`
			Rewards map[string]map[string][]any `json:"reward_stats"`
			Broken  map[string][]string         `json:"exception_stats"`
		}
		Total, Completed, Errored, Steps, Input int
		Causes                                  []string
	}
	theirs(t, "harbor==0.25.0", `
import json, pathlib, sys
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
dir = pathlib.Path(sys.argv[1])
job = JobResult.model_validate_json((dir / "result.json").read_text())
JobConfig.model_validate_json((dir / "config.json").read_text())
trials, steps = [], 0
for at in sorted(p for p in dir.iterdir() if p.is_dir()):
    trials.append(TrialResult.model_validate_json((at / "result.json").read_text()))
    assert TrialConfig.model_validate_json((at / "config.json").read_text()) == trials[-1].config
    if trials[-1].reward_valid or trials[-1].verifier_result:
        assert float((at / "verifier/reward.txt").read_text()) == trials[-1].verifier_result.rewards["reward"]
        steps += len(Trajectory.model_validate_json((at / "agent/trajectory.json").read_text()).steps)
stats = JobStats.from_trial_results(trials)
[(name, theirs)] = stats.evals.items()
def plain(stats):
    stats = stats.model_dump(mode="json")
    stats["reward_stats"] = {r: {str(float(k)): v for k, v in by.items()} for r, by in stats["reward_stats"].items()}
    return stats
print(json.dumps({
    "ours": plain(job.stats.evals[name]), "theirs": plain(theirs), "total": job.n_total_trials,
    "completed": job.stats.n_completed_trials - stats.n_completed_trials, "errored": job.stats.n_errored_trials - stats.n_errored_trials,
    "steps": steps, "input": stats.n_input_tokens, "causes": [str(t.failure_cause) for t in trials],
}))`, &got, dir)
	if diff := gocmp.Diff(got.Theirs, got.Ours); diff != "" || got.Theirs.Trials != 8 || got.Theirs.Errors != 2 {
		t.Errorf("Harbor counts otherwise: %s\n%+v", diff, got.Theirs)
	}
	if got.Total != 10 || got.Completed != 0 || got.Errored != 0 || got.Steps < 8 || got.Input == 0 {
		t.Errorf("%+v", got)
	}
}

// TestSWEBenchTakesIt has SWE-bench read the predictions: there is one for each task.
func TestSWEBenchTakesIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: their package takes half a minute to load")
	}
	b := newBench(t)
	one, two := "diff --git a/é b/é\n<&>\n", ""
	run := b.written(eval.Run{Suite: "s", Version: "1", Model: "a/m", Tries: 2}, []eval.Trial{
		{Task: "me__calc-2", Try: 1, Outcome: eval.Failed, Patch: &two},
		{Task: "me__calc-1", Try: 2, Outcome: eval.Passed, Patch: &one},
		{Task: "me__calc-1", Try: 1, Outcome: eval.Broken},
		{Task: "me__calc-2", Try: 2, Outcome: eval.Passed, Patch: &one},
	})
	path, errs := b.export(run, "swe-bench")
	if !strings.Contains(errs, "2 trials are left out") {
		t.Errorf("it says %q", errs)
	}
	var got []map[string]string
	theirs(t, "swebench==5.0.2", `
import json, sys
from swebench.harness.utils import get_predictions_from_file
print(json.dumps([{"id": p["instance_id"], "model": p["model_name_or_path"], "patch": p["model_patch"]}
    for p in get_predictions_from_file(sys.argv[1], "", "")]))
`, &got, path)
	want := []map[string]string{
		{"id": "me__calc-1", "model": "inspan-1+a/m", "patch": one}, {"id": "me__calc-2", "model": "inspan-1+a/m", "patch": two},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// written is a run that was performed elsewhere.
func (b *bench) written(run eval.Run, trials []eval.Trial, tasks ...string) *eval.Run {
	b.Helper()
	run.ID = "r1"
	raw, err := json.Marshal(struct {
		eval.Run
		Tasks []string `json:"tasks"`
	}{run, tasks})
	if err != nil {
		b.Fatal(err)
	}
	b.put("state/evals/r1/run.json", string(raw))
	lines := ""
	for _, trial := range trials {
		raw, err := json.Marshal(trial)
		if err != nil {
			b.Fatal(err)
		}
		lines += string(raw) + "\n"
	}
	b.put("state/evals/r1/trials.jsonl", lines)
	run.Trials = trials
	return &run
}

// TestExportOfHeldOut checks that an export of held-out tasks counts as a look at them, which is recorded.
func TestExportOfHeldOut(t *testing.T) {
	b := newBench(t)
	ledger := eval.Ledger{Path: filepath.Join(b.dir, "state", "evals", "learned.jsonl")}
	trials := []eval.Trial{{Task: "a", Try: 1, Outcome: eval.Passed, Score: 1}}
	for split, looks := range map[eval.Split]int{eval.Dev: 0, eval.HeldOut: 1} {
		path, errs := b.export(b.written(eval.Run{Suite: "s", Digest: "d", Split: split, Tries: 1}, trials), "jsonl")
		book, err := ledger.Book()
		if err != nil || len(book.Entries) < looks || looks > 0 && (book.Entries[0].Step != eval.Looked || !strings.Contains(errs, "a look at them")) {
			t.Errorf("%s: %+v %v %q", split, book, err, errs)
		}
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(raw), `"suite":"s"`) || !strings.Contains(string(raw), `"outcome":"passed"`) {
			t.Errorf("%s %v", raw, err)
		}
	}
	if book, err := ledger.Book(); err != nil || len(book.Entries) != 1 {
		t.Errorf("%+v %v", book, err)
	}
}
