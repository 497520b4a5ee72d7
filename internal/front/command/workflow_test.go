package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// wide is a workflow of 20 steps, eight of which are agents that work in parallel.
func wide() string {
	var b strings.Builder
	b.WriteString("name: wide\nlimits: {concurrency: 8}\nreturns: {all: {from: sum.output}}\nsteps:\n")
	step := func(format string, args ...any) { fmt.Fprintf(&b, "  - "+format+"\n", args...) }
	step("{id: begin, kind: run, again: true, run: 'echo begun > begin.txt', artefacts: {begin: begin.txt}}")
	for n := range 8 {
		step("{id: agent%d, kind: agent, needs: [begin], prompt: 'Work number %d'}", n, n)
	}
	for n := range 4 {
		step("{id: once%d, kind: run, needs: [agent%d, agent%d], run: 'echo once%d >> ledger', artefacts: {ledger: ledger}}", n, n, n+4, n)
	}
	step("{id: ok, kind: approval, needs: [once0, once1, once2, once3], prompt: 'Release?'}")
	for n := range 4 {
		step("{id: check%d, kind: check, needs: [ok], run: 'test -f agent%d.txt'}", n, n)
	}
	step("{id: sum, kind: run, needs: [check0, check1, check2, check3], again: true, run: 'sort -u ledger | tr \"\\n\" \" \"'}")
	step("{id: end, kind: run, again: true, run: 'cat begin.txt > end.txt', artefacts: {end: end.txt}}")
	return b.String()
}

// worker answers an agent of that workflow: with one command, again if it is not known how that ended,
// and then with a word.
func worker(_ *http.Request, body []byte) anthropictest.Answer {
	usage := llm.Usage{Input: 100, Output: 10}
	_, after, _ := bytes.Cut(body, []byte("Work number "))
	last := body[max(0, bytes.LastIndex(body, []byte("tool_result"))):]
	if len(after) == 0 || turnOf(body) > 1 && !bytes.Contains(last, []byte("Outcome unknown")) {
		return anthropictest.Answer{Parts: llm.Say("Done."), Usage: usage}
	}
	args := fmt.Sprintf(`{"command":"echo x >> agent%c.txt"}`, after[0])
	call := llm.Call{ID: fmt.Sprint("call_", turnOf(body)), Name: "bash", Args: json.RawMessage(args)}
	return anthropictest.Answer{Parts: llm.Parts{call}, Usage: usage}
}

// TestKillWorkflow kills the run of a workflow with SIGKILL at random moments and continues it in other processes.
// INSPAN_KILLS is how often, 200 for the figure in docs/BENCHMARKS.md.
func TestKillWorkflow(t *testing.T) {
	t.Parallel()
	kills := 8
	if testing.Short() {
		kills = 3
	}
	if n, err := strconv.Atoi(os.Getenv("INSPAN_KILLS")); err == nil {
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	url := anthropictest.Start(t, &anthropictest.Server{Answer: worker})
	whole := wideRun(t, url, func(int) time.Duration { return 0 })
	t.Logf("a run takes %v", whole)
	for range kills {
		wideRun(t, url, func(try int) time.Duration {
			if try > 3 {
				return 0
			}
			return 1 + time.Duration(chance.Int64N(int64(whole)))
		})
		if t.Failed() {
			return
		}
	}
}

// wideRun runs the workflow to its end, with processes that live so long, 0 for no limit, answers the questions, and
// checks the result. It returns how long all took.
func wideRun(t *testing.T, url string, lives func(try int) time.Duration) time.Duration {
	t.Helper()
	h := newHome(t, url)
	file := filepath.Join(h.work, "wide.yaml")
	if err := os.WriteFile(file, []byte(wide()), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	args := []string{"workflow", "run", "--mode", "auto", "--output", "json", "wide.yaml"}
	for try := 1; ; try++ {
		if try > 40 {
			t.Fatal("it does not end")
		}
		r, code := h.live(t, lives(try), args...)
		id := h.begun(t)
		switch {
		case id == "":
			if code != -1 {
				t.Fatalf("exit code %d: %+v", code, r)
			}
			continue // it died before there was a session
		case code == console.ExitDone, strings.Contains(r.Detail, "has ended as done"): // and was killed right behind that
			h.looksWhole(t, id)
			return time.Since(began)
		case code == console.ExitWaiting:
			for _, o := range r.Open {
				if out, err := h.command(t.Context(), "send", "--allow", o.ID, id, "1").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		case code != -1:
			t.Fatalf("exit code %d: %+v", code, r)
		}
		args = []string{"workflow", "resume", "--output", "json", id}
	}
}

// live runs the command for a while at most; 0 means to its end. The code of one that was killed is -1.
func (h home) live(t *testing.T, most time.Duration, args ...string) (r console.Result, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := h.command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if most > 0 {
		timer := time.AfterFunc(most, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_ = json.Unmarshal(out.Bytes(), &r)
	if code = cmd.ProcessState.ExitCode(); code > 0 && code != console.ExitWaiting {
		t.Logf("%s\n%s", out.String(), errs.String())
	}
	return r, code
}

// begun is the session that the workflow has; empty means none yet.
func (h home) begun(t *testing.T) string {
	t.Helper()
	list, err := h.store().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.Parent == "" && !info.Empty {
			return info.ID
		}
	}
	return ""
}

// looksWhole checks that no finished step or agent begins again, no gate is passed before it opens, and no artefact is
// lost.
func (h home) looksWhole(t *testing.T, id string) {
	t.Helper()
	over, decided := map[string]bool{}, false
	log, err := h.store().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	children := map[string]bool{}
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.StepStarted:
			if over[b.Step] {
				t.Errorf("step %s began again after its end", b.Step)
			}
			if strings.HasPrefix(b.Step, "check") && !decided {
				t.Errorf("step %s began before the gate was open", b.Step)
			}
		case event.StepEnded:
			if over[b.Step] || b.Outcome != event.OutcomeOK {
				t.Errorf("step %s ended as %s, before: %t", b.Step, b.Outcome, over[b.Step])
			}
			over[b.Step] = true
			for _, blob := range b.Blobs {
				r, err := log.Blobs().Get(t.Context(), blob.Digest)
				if err != nil {
					t.Errorf("artefact %s of %s: %v", blob.Name, b.Step, err)
					continue
				}
				_ = r.Close()
			}
		case event.Decided:
			decided = decided || b.Call == "ok"
		case event.Spawned:
			children[b.Child] = true
		}
	}
	if len(over) != 21 || len(children) != 8 {
		t.Errorf("%d steps ended, %d agents worked", len(over), len(children))
	}
	for child := range children {
		h.endedOnce(t, child)
	}
}

func (h home) endedOnce(t *testing.T, child string) {
	t.Helper()
	done := false
	for e, err := range store.Events(t.Context(), h.store(), child) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Stopped:
			done = done || b.Reason == event.ReasonDone
		case event.Asked:
			if done {
				t.Errorf("agent %s was asked again after its end", child)
			}
		}
	}
	if !done {
		t.Errorf("agent %s did not end", child)
	}
}

// TestTimeUntil checks how people write when a goal is given up.
func TestTimeUntil(t *testing.T) {
	now := time.Date(2026, 11, 27, 17, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"18:00": 30 * time.Minute, "17:30": 24 * time.Hour, "07:00": 13*time.Hour + 30*time.Minute, "6h": 6 * time.Hour,
		"2026-11-27T18:30:00Z": time.Hour, "2026-11-26T18:30:00Z": 0, "-1h": 0, "25:00": 0, "soon": 0, "": 0,
	} {
		if got, err := timeUntil(text, now); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
