package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/eval"
	"github.com/inspan/inspan/store"
)

// keptRun writes a run of twelve tasks that passes all, or none.
func keptRun(t *testing.T, name string, split eval.Split, outcome eval.Outcome) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	head, err := json.Marshal(eval.Run{ID: name, Suite: "s", Digest: string(split), Config: name, Split: split, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	var trials bytes.Buffer
	for i := range 12 {
		if err := json.NewEncoder(&trials).Encode(eval.Trial{Task: fmt.Sprint(i), Try: 1, Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
	}
	for file, data := range map[string][]byte{"run.json": head, "trials.jsonl": trials.Bytes()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCanaryIsRolledBack has sessions with a promoted change fail, and those without it not. No session
// gets the change afterwards, and the ledger says why.
func TestCanaryIsRolledBack(t *testing.T) {
	var out bytes.Buffer
	var sessions store.Memory
	root := t.TempDir()
	c := &console.Comparisons{State: t.TempDir(), Sessions: &sessions, Out: &out, Now: time.Now().Add(-time.Hour), By: "me"}
	next := filepath.Join(root, "next.md")
	if err := os.WriteFile(next, []byte("Never test.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := c.Propose(ctx, console.Proposing{Root: root, File: "AGENTS.md", To: next, Why: "it is faster"}); err != nil {
		t.Fatal(err)
	}
	id, err := c.Named("last")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		c.Try(ctx, id, keptRun(t, "a", eval.Dev, eval.Failed), keptRun(t, "b", eval.Dev, eval.Passed)),
		c.Promote(ctx, id, keptRun(t, "a", eval.HeldOut, eval.Failed), keptRun(t, "b", eval.HeldOut, eval.Passed)),
		c.Canary(ctx, id, 0.5),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		out.Reset()
		if err := c.Arm(id, fmt.Sprint("ticket ", i), ""); err != nil {
			t.Fatal(err)
		}
		arm := strings.TrimSpace(out.String())
		reason := event.ReasonDone
		if arm == eval.WithChange {
			reason = event.ReasonStuck
		}
		ended(t, &sessions, map[string]string{"learned." + id: arm}, reason)
	}
	out.Reset()
	if err := c.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), " 0 of ") || !strings.Contains(out.String(), "more than chance") {
		t.Errorf("watching says %s", out.String())
	}
	out.Reset()
	for i := range 40 {
		if err := c.Arm(id, fmt.Sprint("another ", i), root); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(out.String(), "without\n") != 40 {
		t.Errorf("after it was rolled back, sessions are %s", out.String())
	}
	if _, err := os.Stat(filepath.Join(root, "AGENTS.md")); err == nil {
		t.Error("the change was made")
	}
	out.Reset()
	if err := c.Told(id); err != nil || !strings.Contains(out.String(), id+", rolled_back") {
		t.Errorf("the ledger says %s, %v", out.String(), err)
	}
	if err := c.Keep(ctx, id); err == nil {
		t.Error("it can still be kept")
	}
}

// ended makes a session with labels that has ended.
func ended(t *testing.T, sessions store.Store, labels map[string]string, reason event.Reason) {
	t.Helper()
	l, err := sessions.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = l.AppendAs(t.Context(), event.Driver{Epoch: 1}, event.Claimed{Epoch: 1}, event.Opened{Format: 1, Labels: labels}, event.Stopped{Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
}
