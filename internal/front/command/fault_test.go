package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
)

// TestFaultAtEveryCall lets the kernel fail the Nth operation on the log of a
// real run, for every N until none is left to fail: kills, full disks, broken
// disks and failed syncs. Whatever was acknowledged must be there, nothing may
// have happened that is not in the log, and the session must go on.
//
// strace injects the faults, so the program is tested as it is.
func TestFaultAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it starts a thousand processes")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED TestFaultAtEveryCall: strace is not installed (apt-get install strace)")
		t.Skip("strace is not installed")
	}
	url := anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		a, err := parse(body)
		if err != nil {
			return anthropictest.Answer{Status: 400, Message: err.Error()}
		}
		return twentyCalls(a.replies + 15) // the last five
	}})
	if !canInject(t, strace) {
		fmt.Fprintln(os.Stderr, "SKIPPED TestFaultAtEveryCall: strace can not trace here")
		t.Skip("strace can not trace here")
	}
	for _, fault := range []string{
		"write:signal=SIGKILL", "fdatasync:signal=SIGKILL", "write:error=ENOSPC", "write:error=EIO", "fdatasync:error=EIO",
	} {
		t.Run(strings.ReplaceAll(fault, ":", " "), func(t *testing.T) {
			fired := 0
			for n := 1; faultOnce(t, strace, url, fault, n); n++ {
				if fired++; t.Failed() || fired > 200 {
					t.Fatalf("fault %d", n)
				}
			}
			t.Logf("%d faults", fired)
			if fired < 3 {
				t.Errorf("only %d faults were injected", fired)
			}
		})
	}
}

// canInject tries strace on a harmless program.
func canInject(t *testing.T, strace string) bool {
	return exec.CommandContext(t.Context(), strace, "-f", "-o", os.DevNull, "true").Run() == nil
}

// faultOnce makes a session, continues it with a fault at the nth call, resumes it without one, and checks it. It
// reports whether the fault was injected.
func faultOnce(t *testing.T, strace, url, fault string, n int) bool {
	t.Helper()
	h := newHome(t, url)
	if out, err := h.command(t.Context(), "run", "--mode", "auto", "--max-turns", "1", "--output", "json",
		"go").CombinedOutput(); !bytes.Contains(out, []byte("max_turns")) {
		t.Fatalf("%v\n%s", err, out)
	}
	id, err := h.store().Resolve(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	log, trace := filepath.Join(h.store().Dir, id, "log.jsonl"), filepath.Join(h.dir, "trace")
	call, _, _ := strings.Cut(fault, ":")
	cmd := h.command(t.Context(), "resume", "--max-turns", "50", "--output", "stream-json")
	cmd.Args = append([]string{
		strace, "-f", "-qq", "-o", trace, "-P", log, "-e", "trace=" + call, "-e",
		fmt.Sprintf("inject=%s:when=%d", fault, n), h.bin,
	}, cmd.Args[1:]...)
	cmd.Path = strace
	var out bytes.Buffer
	cmd.Stdout = &out
	failed := cmd.Run() != nil
	seen, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	injected := bytes.Contains(seen, []byte("INJECTED")) || bytes.Contains(seen, []byte("SIGKILL"))
	if injected && !failed {
		t.Errorf("the fault went unnoticed:\n%s", out.Bytes())
	}
	before := logged(t, h, id)
	for _, a := range stored(t, append(out.Bytes(), '\n')) {
		if a.Seq > uint64(len(before)) || !bytes.Equal(before[a.Seq-1].line, a.line) {
			t.Fatalf("event %d was acknowledged and is lost:\n%s", a.Seq, a.line)
		}
	}
	if failed {
		raw, err := h.command(t.Context(), "resume", "--max-turns", "50", "--output", "json").Output()
		var r struct{ Reason, Detail string }
		// the last write may have come through
		finished := json.Unmarshal(raw, &r) == nil && (r.Reason == "done" || strings.Contains(r.Detail, "is done"))
		if !finished {
			t.Fatalf("resume: %v\n%s", err, raw)
		}
	}
	checkRun(t, h, before, logged(t, h, id))
	return injected
}
