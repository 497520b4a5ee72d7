package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
)

// result finds the one result object in an output.
func result(t *testing.T, out string) console.Result {
	t.Helper()
	if n := strings.Count(out, `"type":"result"`); n != 1 {
		t.Fatalf("%d results in:\n%s", n, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var r console.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// TestSignals sends a signal to a run that is waiting for its model: it ends
// with a result, the session can be gone on with, and a second signal ends it
// at once.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			h := newHome(t, "http://127.0.0.1:9")
			cmd := h.command(t.Context(), "run", "--model", "script", "--output", "stream-json", "delay: 10m\nsay: late")
			out := until(t, cmd, "asked", func() { _ = cmd.Process.Signal(sig) })
			if r := result(t, out); r.Reason != "cancelled" || r.ExitCode != console.ExitCancelled ||
				cmd.ProcessState.ExitCode() != console.ExitCancelled {
				t.Errorf("%+v, exit code %d", r, cmd.ProcessState.ExitCode())
			}
			raw, err := h.command(t.Context(), "sessions", "list").Output()
			if err != nil || !strings.Contains(string(raw), "cancelled") {
				t.Errorf("%v\n%s", err, raw)
			}
		})
	}
}

// TestInterruptReachesTheCommand interrupts a run while a command of the agent
// sleeps; nothing of it may be left.
func TestInterruptReachesTheCommand(t *testing.T) {
	t.Parallel()
	h := newHome(t, "http://127.0.0.1:9")
	nap := fmt.Sprint(600 + rand.Float64()) // to be found among all processes
	cmd := h.command(t.Context(), "run", "--model", "script", "--mode",
		"auto", "--output", "stream-json", "bash: echo 1 > pid; exec sleep "+nap)
	out := until(t, cmd, "started", func() {
		testkit.WaitFor(t, "the command", func() bool { return sleeps(nap) })
		_ = cmd.Process.Signal(os.Interrupt)
	})
	if r := result(t, out); r.Reason != "cancelled" {
		t.Errorf("%+v", r)
	}
	if sleeps(nap) {
		t.Error("the command still runs")
	}
}

// sleeps reports whether a process of this machine sleeps for just that long.
func sleeps(nap string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		if raw, err := os.ReadFile(name); err == nil && string(raw) == "sleep\x00"+nap+"\x00" {
			return true
		}
	}
	return false
}

// until runs the command, calls do when an event of the kind comes by, and
// returns all output.
func until(t *testing.T, cmd *exec.Cmd, kind string, do func()) string {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	done := false
	for s := bufio.NewScanner(pipe); s.Scan(); {
		out.WriteString(s.Text() + "\n")
		if e, err := event.Decode(s.Bytes()); err == nil && e.Body.Kind() == kind && !done {
			done = true
			do()
		}
	}
	_ = cmd.Wait() // the exit code is looked at by the caller
	if !done {
		t.Fatalf("no event %s in:\n%s", kind, out.String())
	}
	return out.String()
}

// TestBudget stops a run that gets too expensive before the next request, and continues it with a higher limit.
func TestBudget(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		a, err := parse(body)
		if err != nil {
			return anthropictest.Answer{Status: 400, Message: err.Error()}
		}
		asked.Add(1)
		answer := twentyCalls(a.replies)
		answer.Usage = llm.Usage{Input: 4000, Output: 10}
		return answer
	}})
	h := newHome(t, url)
	// A turn costs 4,000 + 10 tokens at a dollar a million, and a prompt about 3,000.
	raw, err := h.command(t.Context(), "run", "--mode", "auto", "--output", "json", "--max-cost", "0.012", "go").Output()
	if r := result(t, string(raw)); r.Reason != "budget" || r.ExitCode != console.ExitBudget ||
		asked.Load() != 3 || r.Cost < 0.012 || r.Cost > 0.0125 {
		t.Errorf("%v, %+v, asked %d times", err, r, asked.Load())
	}
	raw, err = h.command(t.Context(), "resume", "--output", "json", "--max-cost", "1").Output()
	// It never checks its changes, and is asked about that once.
	if r := result(t, string(raw)); err != nil || r.Reason != "done" || r.Turns != 22 {
		t.Errorf("%v, %+v", err, r)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("the reader broke") }

func TestPanicEndsWithAResult(t *testing.T) {
	var out, errs bytes.Buffer
	code := Program{}.Main([]string{"run", "--output", "json", "--model", "script"}, panicking{}, &out, &errs)
	if r := result(t, out.String()); code != console.ExitError || r.Reason != "error" || !strings.Contains(r.Detail, "the reader broke") {
		t.Errorf("code %d, %+v", code, r)
	}
	if !strings.Contains(errs.String(), "goroutine") {
		t.Error("the trace is missing")
	}
}
