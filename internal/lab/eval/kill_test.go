package eval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/store"
)

// killed says how many trials the run that is killed has, and how often it is killed.
// INSPAN_EVAL_KILLS=500,50 is the whole proof.
func killed(t *testing.T) (trials, kills int) {
	trials, kills = 12, 5
	if text := os.Getenv("INSPAN_EVAL_KILLS"); text != "" {
		a, b, _ := strings.Cut(text, ",")
		var bad, worse error
		trials, bad = strconv.Atoi(a)
		if kills, worse = strconv.Atoi(b); bad != nil || worse != nil {
			t.Fatalf("INSPAN_EVAL_KILLS: %q is not like 500,50", text)
		}
	}
	return trials, kills
}

// TestKilled kills a run again and again at any moment, sometimes with a session that it drives. No
// trial is lost or doubled: each has one line, and its session came to its end, and had
// its effect once.
func TestKilled(t *testing.T) {
	t.Parallel()
	trials, kills := killed(t)
	b := newBench(t)
	const tries = 4
	b.put("suite/suite.toml", "open = true")
	b.put("ledger/.here", "")
	for n := range trials / tries {
		b.task(fmt.Sprintf("t%03d", n), "", fmt.Sprintf(
			"bash: echo x >> %s/ledger/$(basename $(dirname $PWD))\nbash: echo done > result\nsay: done", b.dir), "grep -q done result")
	}
	b.plan.Mode, b.plan.Tries = "yolo", tries
	run := b.begin()
	most := 500 // milliseconds
	if trials > 100 {
		most = 4000
	}
	at := rand.New(rand.NewPCG(1, 2))
	done, broken := 0, 0
	for n := range kills {
		done += b.killedRun(run.ID, time.Duration(100+at.IntN(most))*time.Millisecond, n%3 == 2)
	}
	run, err := b.Go(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Trials) != trials {
		t.Errorf("%d trials, want %d", len(run.Trials), trials)
	}
	sessions := b.sessionsOf(run)
	for key, one := range b.trials(run) {
		if one.Outcome != eval.Passed {
			t.Errorf("%s: %+v", key, one)
		}
		infos := sessions[key]
		broken += len(infos) - 1 // they were killed
		i := slices.IndexFunc(infos, func(info store.Info) bool { return info.ID == one.Session })
		if i < 0 || infos[i].Stop != event.ReasonDone {
			t.Errorf("%s has the sessions %+v", key, infos)
			continue
		}
		b.once(key, filepath.Base(filepath.Dir(infos[i].Root)), len(infos))
	}
	if t.Failed() {
		data, err := os.ReadFile(filepath.Join(b.Table.StateDir, "evals", run.ID, "claims.jsonl"))
		t.Logf("%s %v", data, err)
	}
	t.Logf("%d kills, %d trials, %d runs came to their end before, %d sessions were begun anew", kills, trials, done, broken)
}

// once holds that the attempt that counts had its effect once, and no more than so many had one.
func (b *bench) once(key, attempt string, most int) {
	b.Helper()
	if data, err := os.ReadFile(filepath.Join(b.dir, "ledger", attempt)); err != nil || string(data) != "x\n" {
		b.Errorf("%s had its effect in %s: %q %v", key, attempt, data, err)
	}
	paths, err := filepath.Glob(filepath.Join(b.dir, "ledger", strings.Replace(key, "#", "-", 1)+"-*"))
	if err != nil || len(paths) > most {
		b.Errorf("%s had its effect in %v, and %d sessions %v", key, paths, most, err)
	}
}

// killedRun continues a run in a process of its own, and kills that after a while, sometimes with the processes of its
// sessions. It returns 1 if the run was faster.
func (b *bench) killedRun(id string, after time.Duration, sessions bool) int {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), after)
	defer stop()
	cmd := exec.CommandContext(ctx, b.Program, "eval", "resume", id, "--jobs=3")
	cmd.Env = append(os.Environ(), "INSPAN_STATE_DIR="+b.Table.StateDir, "INSPAN_CONFIG_DIR="+filepath.Dir(b.Table.ConfigPath))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return 1
	}
	if ctx.Err() == nil {
		b.Fatalf("%v: %s", err, out)
	}
	held, err := b.Table.Sessions.Held(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range held {
		if p, err := os.FindProcess(h.PID); err == nil && sessions && h.Here() {
			_ = p.Kill()
		}
	}
	return 0
}

// sessionsOf are the sessions of a run in which something was said, by the trial.
func (b *bench) sessionsOf(run *eval.Run) map[string][]store.Info {
	b.Helper()
	infos, err := b.Table.Sessions.List(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	out := map[string][]store.Info{}
	for _, info := range infos {
		if key := info.Labels["task"] + "#" + info.Labels["try"]; info.Labels["eval"] == run.ID && !info.Empty {
			out[key] = append(out[key], info)
		}
	}
	return out
}
