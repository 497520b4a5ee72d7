package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
)

// rule is the instruction that helps: an agent that reads it does its task.
const rule = "Always leave the file done.txt."

// As few tasks as can show a difference: chance gives four gains of four in 6 % of cases, and six of six in 1.6 %.
const devTasks, heldTasks = 4, 6

// learner plays a model that does its task only if an instruction says how, and proposes that instruction.
type learner struct {
	proposals atomic.Int64
	nothing   atomic.Bool // it proposes nothing
}

func (l *learner) answer(_ *http.Request, body []byte) anthropictest.Answer {
	a := l.says(body)
	a.Usage = llm.Usage{Input: 10_000} // a cent
	return a
}

func (l *learner) says(body []byte) anthropictest.Answer {
	call := func(name, path string) anthropictest.Answer {
		return anthropictest.Answer{Parts: llm.Parts{callOf("c", name, map[string]any{"path": path, "content": "x"})}}
	}
	begins := !bytes.Contains(body, []byte(`"role":"assistant"`))
	switch {
	case bytes.Contains(body, []byte("Propose one small change of the file")):
		l.proposals.Add(1)
		s := eval.Suggestion{Why: "agents forget the file", Content: "# Rules\n\n" + rule + "\n"}
		if s.From = regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]{4}:\d+`).FindAllString(string(body), 1); l.nothing.Load() {
			s = eval.Suggestion{Why: "all is well"}
		}
		raw, _ := json.Marshal(s)
		return anthropictest.Answer{Parts: llm.Say("Here it is:\n" + string(raw))}
	case begins && bytes.Contains(body, []byte(rule)):
		return call("write_file", "done.txt")
	case begins && bytes.Contains(body, []byte("go where you may not")):
		return call("write_file", "/etc/zz")
	}
	return anthropictest.Answer{Parts: llm.Say("ok")}
}

// newNight makes a home with a suite of dev tasks and held-out tasks, and a session that went wrong.
func newNight(t *testing.T, l *learner) (h home, suite string) {
	t.Helper()
	h = newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: l.answer}))
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: h.bin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() }) // nothing ran in it
	if !env.Walls.Workspace {
		t.Skip("checkers need a sandbox: " + env.Walls.Why)
	}
	suite = filepath.Join(h.dir, "suite")
	files := map[string]string{"suite.toml": "[splits]\nheld-out = [\"h*\"]\n"}
	for n := range devTasks {
		files[fmt.Sprintf("d%d/instruction.md", n)] = "Do your part."
	}
	for n := range heldTasks {
		files[fmt.Sprintf("h%d/instruction.md", n)] = "Do your part."
	}
	for name, content := range files {
		path := filepath.Join(suite, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Join(filepath.Dir(path), "check"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "suite.toml" {
			continue
		}
		for file, content := range map[string]string{"task.toml": "", "check/run.sh": "test -f done.txt\n"} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := h.command(t.Context(), "run", "--mode", "auto", "go where you may not").CombinedOutput(); err == nil {
		t.Fatalf("the session did not go wrong: %s", out)
	}
	return h, suite
}

// night is the command for a night, with more arguments.
func (h home) night(ctx context.Context, suite string, more ...string) *exec.Cmd {
	return h.command(ctx, append([]string{"eval", "learn", "night", suite, "--tries=1", "--jobs=2", "--budget=5"}, more...)...)
}

// book reads the ledger.
func (h home) book(t *testing.T) *eval.Book {
	t.Helper()
	book, err := eval.LedgerIn(filepath.Join(h.dir, "state")).Book()
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// TestNight lets a night learn an instruction that helps, and kills it at each stage. What had been done is not done
// again, the held-out tasks are looked at once, and no session gets the change without the person's word.
func TestNight(t *testing.T) {
	t.Parallel()
	var l learner
	h, suite := newNight(t, &l)
	folder := eval.FolderIn(filepath.Join(h.dir, "state"))
	last := func() *eval.Night {
		list, err := folder.Nights()
		if err != nil || len(list) != 1 {
			return &eval.Night{}
		}
		return list[0]
	}
	trials := func(id string) int {
		run, err := folder.Open(id)
		if id == "" || err != nil {
			return 0
		}
		return len(run.Trials)
	}
	for _, reached := range []func() bool{
		func() bool { return len(last().Asked) > 0 },
		func() bool { return last().Proposal != "" },
		func() bool { return trials(last().Dev.Base) > 1 },
		func() bool { return trials(last().Dev.Candidate) > 1 },
		func() bool { return trials(last().HeldOut.Candidate) > 1 },
	} {
		p := testkit.Start(t, h.night(t.Context(), suite))
		p.WaitFor("the next stage", func() bool { return reached() || p.Over() })
		p.Kill()
	}
	out, err := h.night(t.Context(), suite).Output() // progress is on standard error
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"the change is promoted", "held-out tasks: better", "+" + rule, "inspan eval learn canary"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the page lacks %q:\n%s", want, out)
		}
	}
	steps := map[eval.Step]int{}
	for _, e := range h.book(t).Entries {
		steps[e.Step]++
	}
	if steps[eval.Looked] != 1 || steps[eval.Promoted] != 1 || steps[eval.Canaried] != 0 {
		t.Errorf("the ledger has %v", steps)
	}
	for id, want := range map[string]int{
		last().Dev.Base: devTasks, last().Dev.Candidate: devTasks, last().HeldOut.Base: heldTasks, last().HeldOut.Candidate: heldTasks,
	} {
		if n := trials(id); n != want {
			t.Errorf("run %s has %d trials, want %d", id, n, want)
		}
	}
	if _, err := os.Stat(filepath.Join(h.work, "AGENTS.md")); err == nil {
		t.Error("the change was made without the person's word")
	}
	again, err := h.command(t.Context(), "eval", "learn", "report").CombinedOutput()
	if err != nil || !bytes.Equal(out, again) {
		t.Errorf("report prints %v\n%s\nand the night had printed\n%s", err, again, out)
	}
}

// TestNightKeeps checks that the person's word in advance gives a promoted change to a share of the sessions, and
// that a later night keeps it when sessions of both kinds did well.
func TestNightKeeps(t *testing.T) {
	t.Parallel()
	var l learner
	h, suite := newNight(t, &l)
	if out, err := h.night(t.Context(), suite, "--keep").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("20 % of new sessions get it now")) {
		t.Fatalf("%v: %s", err, out)
	}
	p := h.book(t).Proposals()[0]
	for with, without := 0, 0; with < leastWatched || without < leastWatched; {
		if with+without == 400 {
			t.Fatalf("%d sessions with the change, %d without it", with, without)
		}
		arm := eval.WithoutChange
		if with < leastWatched {
			arm = eval.WithChange
			with++
		} else {
			without++
		}
		label := "--label=" + p.Label() + "=" + arm
		if out, err := h.command(t.Context(), "run", "--mode", "plan", label, fmt.Sprint("hello ", with+without)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l.nothing.Store(true)
	out, err := h.night(t.Context(), suite, "--keep").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(p.ID+", AGENTS.md: kept")) || !bytes.Contains(out, []byte("the model proposed nothing: all is well")) {
		t.Errorf("%v: %s", err, out)
	}
	if content, err := os.ReadFile(filepath.Join(h.work, "AGENTS.md")); err != nil || !strings.Contains(string(content), rule) {
		t.Errorf("AGENTS.md is %q, %v", content, err)
	}
}

// TestNightBounds checks that a night stays within its budget, and that an unusable answer of the model ends it.
func TestNightBounds(t *testing.T) {
	t.Parallel()
	var l learner
	h, suite := newNight(t, &l)
	for _, args := range [][]string{{"--budget=0"}, {"--tries=0"}, {"--mode=frob"}, {"--every=whenever"}} {
		if out, err := h.night(t.Context(), suite, args...).CombinedOutput(); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
	if n := l.proposals.Load(); n > 0 {
		t.Errorf("a model was asked %d times", n)
	}
	out, err := h.night(t.Context(), suite, "--budget=0.005").CombinedOutput()
	if !bytes.Contains(out, []byte("budget")) || bytes.Contains(out, []byte("promoted")) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = h.night(t.Context(), suite, "--budget=0.08").CombinedOutput() // not enough for all dev tasks
	if err != nil || !bytes.Contains(out, []byte("used up before all dev tasks")) || !bytes.Contains(out, []byte("the next night continues with it")) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = h.night(t.Context(), suite, "--budget=0.5").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("the change is promoted")) || l.proposals.Load() != 1 {
		t.Errorf("%d proposals, %v: %s", l.proposals.Load(), err, out)
	}
}

// TestNightOfASchedule checks that a schedule begins a night once for an occasion.
func TestNightOfASchedule(t *testing.T) {
	t.Parallel()
	var l learner
	l.nothing.Store(true)
	h, suite := newNight(t, &l)
	if out, err := h.night(t.Context(), suite, "--every=0 2 * * *").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("learn runs next at")) {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := h.command(t.Context(), "schedule", "run", "learn").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folder := eval.FolderIn(filepath.Join(h.dir, "state"))
	var night *eval.Night
	testkit.WaitFor(t, "the night to end", func() bool {
		list, err := folder.Nights()
		if err != nil || len(list) == 0 {
			return false
		}
		night = list[0]
		return !night.Ended.IsZero()
	})
	if out, err := h.night(t.Context(), suite, "--occasion="+night.Occasion).CombinedOutput(); err != nil || len(out) > 0 || l.proposals.Load() != 1 {
		t.Errorf("the occasion has a second night: %v, %d proposals\n%s", err, l.proposals.Load(), out)
	}
}
