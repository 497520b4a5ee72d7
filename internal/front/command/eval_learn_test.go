package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/store"
)

// keptRun writes a run of twelve tasks that passes all, or none.
func keptRun(t *testing.T, name string, split eval.Split, outcome eval.Outcome) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	head, err := json.Marshal(eval.Run{ID: name, Suite: "s", Digest: string(split), Config: name, Pinned: name, Split: split, Tries: 1})
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

// TestLostLooksAreNotRefunded checks that deleting the ledger does not give back what earlier looks have spent, as long
// as the list of held-out runs is there.
func TestLostLooksAreNotRefunded(t *testing.T) {
	c := &comparisons{State: t.TempDir(), Sessions: &store.Memory{}, Out: &bytes.Buffer{}, Now: time.Now(), By: "me"}
	base, better := keptRun(t, "a", eval.HeldOut, eval.Failed), keptRun(t, "b", eval.HeldOut, eval.Passed)
	ledger := filepath.Join(c.State, "evals", "learned.jsonl")
	if err := os.MkdirAll(filepath.Dir(ledger), 0o755); err != nil {
		t.Fatal(err)
	}
	var tried strings.Builder
	for i := range 5 {
		fmt.Fprintf(&tried, "{\"run\":\"r%d\",\"suite\":\"s\",\"config_digest\":\"c%[1]d\"}\n", i)
	}
	if err := os.WriteFile(filepath.Join(c.State, "evals", "held-out.jsonl"), []byte(tried.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.compare(t.Context(), []string{base, better}); err != nil {
		t.Fatal(err)
	}
	book, err := (eval.Ledger{Path: ledger}).Book()
	if err != nil || len(book.Entries) != 1 || book.Entries[0].Allowed != eval.Promote*stats.Share(4) {
		t.Errorf("%+v, %v", book, err)
	}
}

// TestProposalsNeedASource checks that a proposed change names events that exist and are not held out, or says that
// it has no source.
func TestProposalsNeedASource(t *testing.T) {
	var sessions store.Memory
	c := &comparisons{State: t.TempDir(), Sessions: &sessions, Out: &bytes.Buffer{}, Now: time.Now(), By: "me"}
	open, held := ended(t, &sessions, nil, event.ReasonStuck), ended(t, &sessions, nil, event.ReasonStuck)
	run := filepath.Join(c.State, "evals", "r1")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{
		"run.json": `{"id":"r1","split":"held-out"}`, "trials.jsonl": `{"task":"a","try":1,"session":"` + held + `"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(run, file), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []struct {
		by, from, why, want string
	}{
		{"me", "", "it fails", "needs --from"},
		{"", open + ":2,99", "it fails", "has no event 99"},
		{"", held + ":2", "it fails", "held-out task"},
		{"", open + ":2,3", "it f\xe4ils", "must be UTF-8"},
		{"m\xe9", open + ":2,3", "it fails", "must be UTF-8"},
		{"", open + ":2,3", "it fails", ""},
		{byHand, "", "it fails", ""},
	} {
		next := filepath.Join(t.TempDir(), "next.md")
		if err := os.WriteFile(next, []byte("Test first.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		one := proposing{Root: t.TempDir(), File: "AGENTS.md", To: next, Why: p.why, By: p.by}
		if p.from != "" {
			one.From = []string{p.from}
		}
		err := c.propose(t.Context(), one)
		if (err == nil) != (p.want == "") || err != nil && !strings.Contains(err.Error(), p.want) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// canaried sets up a workspace without AGENTS.md, and a change that adds one, which half of the sessions get.
func canaried(t *testing.T, c *comparisons) (root, id string) {
	t.Helper()
	root = t.TempDir()
	next := filepath.Join(root, "next.md")
	if err := os.WriteFile(next, []byte("Never test.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := c.propose(ctx, proposing{Root: root, File: "AGENTS.md", To: next, Why: "it is faster", By: byHand}); err != nil {
		t.Fatal(err)
	}
	id, err := c.named("last")
	if err != nil {
		t.Fatal(err)
	}
	c.Unchecked = true
	for _, err := range []error{
		c.try(ctx, id, keptRun(t, "a", eval.Dev, eval.Failed), keptRun(t, "b", eval.Dev, eval.Passed)),
		c.promote(ctx, id, keptRun(t, "a", eval.HeldOut, eval.Failed), keptRun(t, "b", eval.HeldOut, eval.Passed)),
		c.canary(ctx, id, 0.5),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root, id
}

// TestCopiesAreOtherFolders checks that a session gets a change in a copy of the workspace only, and that a link cannot be
// proposed.
func TestCopiesAreOtherFolders(t *testing.T) {
	var sessions store.Memory
	c := &comparisons{State: t.TempDir(), Sessions: &sessions, Out: &bytes.Buffer{}, Now: time.Now(), By: "me"}
	root, id := canaried(t, c)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := c.arm(id, key, filepath.Join(root, ".")); err == nil || !strings.Contains(err.Error(), "the workspace of "+id+" itself") {
			t.Errorf("%s: %v", key, err)
		}
		if err := c.arm(id, key, t.TempDir()); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "AGENTS.md")); err == nil {
		t.Error("the change is made in the workspace")
	}
	if err := os.Symlink("next.md", filepath.Join(root, "LINK.md")); err != nil {
		t.Skip("no links here")
	}
	link := proposing{Root: root, File: "LINK.md", To: filepath.Join(t.TempDir(), "x"), Why: "it fails", By: byHand}
	if err := c.propose(t.Context(), link); !errors.Is(err, eval.ErrLink) {
		t.Error(err)
	}
}

// TestStepsThatFailChangeNothing checks that the ledger says that a change was kept, or taken back, only once it was,
// and that a session which could not get it does not count as having it.
func TestStepsThatFailChangeNothing(t *testing.T) {
	var out bytes.Buffer
	var sessions store.Memory
	c := &comparisons{State: t.TempDir(), Sessions: &sessions, Out: &out, Now: time.Now().Add(-time.Hour), By: "me"}
	root, id := canaried(t, c)
	file := filepath.Join(root, "AGENTS.md")
	if err := c.keep(t.Context(), id); !errors.Is(err, eval.ErrStep) {
		t.Errorf("a change that no session has tried was kept: %v", err)
	}
	for _, arm := range []string{eval.WithChange, eval.WithoutChange} {
		ended(t, &sessions, map[string]string{"learned." + id: arm}, event.ReasonDone)
	}
	if err := c.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Now = time.Now().Add(time.Hour)
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is := func(step eval.Step) {
		t.Helper()
		out.Reset()
		if err := c.told(id); err != nil || !strings.Contains(out.String(), id+", "+string(step)+"\n") {
			t.Errorf("it is not %s: %s, %v", step, out.String(), err)
		}
	}
	write("Somebody else was faster.\n")
	if err := c.keep(t.Context(), id); !errors.Is(err, eval.ErrMoved) {
		t.Errorf("a change that does not fit is kept: %v", err)
	}
	is(eval.Canaried)
	failed := 0
	for i := range 40 {
		out.Reset()
		if err := c.arm(id, fmt.Sprint(i), root); err != nil {
			failed++
			if out.Len() > 0 {
				t.Errorf("a session that can't get the change is labelled %s", out.String())
			}
		}
	}
	if failed == 0 {
		t.Error("every session got a change that does not fit")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := c.keep(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	is(eval.Kept)
	out.Reset()
	if err := c.watch(t.Context()); err != nil || !strings.Contains(out.String(), id+" is kept: 0 of 0 sessions since then failed, 0 of 2 in the time of its canary") {
		t.Errorf("after keep, watch says %s, %v", out.String(), err)
	}
	write("Somebody changed it.\n")
	if err := c.withdraw(t.Context(), id, ""); !errors.Is(err, eval.ErrMoved) {
		t.Errorf("a change that is no longer there is taken back: %v", err)
	}
	is(eval.Kept)
}

// TestCanaryIsRolledBack lets only sessions with a promoted change fail. No session gets the change afterwards, and
// the ledger gives the reason why.
func TestCanaryIsRolledBack(t *testing.T) {
	var out bytes.Buffer
	var sessions store.Memory
	c := &comparisons{State: t.TempDir(), Sessions: &sessions, Out: &out, Now: time.Now().Add(-time.Hour), By: "me"}
	ctx := t.Context()
	_, id := canaried(t, c)
	root := t.TempDir() // another workspace
	for i := range 40 {
		out.Reset()
		if err := c.arm(id, fmt.Sprint("ticket ", i), ""); err != nil {
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
	if err := c.watch(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), " 0 of ") || !strings.Contains(out.String(), "more than chance") {
		t.Errorf("watching says %s", out.String())
	}
	out.Reset()
	for i := range 40 {
		if err := c.arm(id, fmt.Sprint("another ", i), root); err != nil {
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
	if err := c.told(id); err != nil || !strings.Contains(out.String(), id+", rolled_back") {
		t.Errorf("the ledger says %s, %v", out.String(), err)
	}
	if err := c.keep(ctx, id); err == nil {
		t.Error("it can still be kept")
	}
}

// ended makes a session with labels that has ended.
func ended(t *testing.T, sessions store.Store, labels map[string]string, reason event.Reason) (id string) {
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
	return l.ID()
}
