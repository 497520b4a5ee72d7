package command

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// TestCanaryRollsBackByItself checks that sessions choose at random whether they get a change, that their labels name
// the arm, and that a harmful change is rolled back without a person.
func TestCanaryRollsBackByItself(t *testing.T) {
	t.Parallel()
	const harm = "Keep your notes in /etc."
	var got atomic.Bool // whether the session that runs has the change
	h := newHome(t, anthropictest.Start(t, &anthropictest.Server{Answer: func(_ *http.Request, body []byte) anthropictest.Answer {
		with := bytes.Contains(body, []byte(harm))
		if with {
			got.Store(true)
		}
		if with && !bytes.Contains(body, []byte(`"role":"assistant"`)) {
			return anthropictest.Answer{Parts: llm.Parts{callOf("c", "write_file", map[string]any{"path": "/etc/zz", "content": "x"})}}
		}
		return anthropictest.Answer{Parts: llm.Say("ok")}
	}}))
	root, err := filepath.EvalSymlinks(h.work)
	if err != nil {
		t.Fatal(err)
	}
	ledger := eval.LedgerIn(filepath.Join(h.dir, "state"))
	id := onCanary(t, ledger, root, "# Notes\n\n"+harm+"\n")
	p := func() *eval.Proposal {
		book, err := ledger.Book()
		if err != nil {
			t.Fatal(err)
		}
		p, err := book.Proposal(id)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	with, without := 0, 0
	told := ""
	for n := 0; p().Step == eval.Canaried; n++ {
		if n == 100 {
			t.Fatalf("%d sessions with it and %d without it, and it is %s", with, without, p().Step)
		}
		got.Store(false)
		cmd := h.command(t.Context(), "run", "--mode", "auto", strings.Repeat("x", n+1))
		out, _ := cmd.CombinedOutput() // with the change it ends with 18
		told = string(out)
		last, err := h.store().Resolve(t.Context(), "last")
		if err != nil {
			t.Fatal(err)
		}
		label := map[bool]string{true: eval.WithChange, false: eval.WithoutChange}[got.Load()]
		for e, err := range store.Events(t.Context(), h.store(), last) {
			if err != nil {
				t.Fatal(err)
			}
			if b, is := e.Body.(event.Opened); is && b.Labels[p().Label()] != label {
				t.Fatalf("session %d is labelled %v, and has the change: %v", n, b.Labels, got.Load())
			}
		}
		if got.Load() {
			with++
		} else {
			without++
		}
	}
	if p().Step != eval.RolledBack || with < 5 || without < 1 || !strings.Contains(told, "is rolled back") {
		t.Errorf("%s after %d sessions with it and %d without it; the last said %s", p().Step, with, without, told)
	}
	got.Store(false)
	if out, err := h.command(t.Context(), "run", "--mode", "auto", "after it").CombinedOutput(); err != nil || got.Load() {
		t.Errorf("after it: %v, with the change: %v\n%s", err, got.Load(), out)
	}
}

// onCanary brings a new AGENTS.md of a workspace as far as its canary, with invented runs.
func onCanary(t *testing.T, ledger eval.Ledger, root, text string) (id string) {
	t.Helper()
	c, err := eval.NewChange(root, "AGENTS.md", "", text)
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, split eval.Split, outcome eval.Outcome) eval.Run {
		r := eval.Run{ID: name, Suite: "s", Digest: "d", Split: split, Tries: 1}
		for i := range 20 {
			r.Trials = append(r.Trials, eval.Trial{Task: strings.Repeat("t", i+1), Try: 1, Outcome: outcome})
		}
		return r
	}
	id = c.ID()
	dev, held := []eval.Run{run("a", eval.Dev, eval.Failed), run("b", eval.Dev, eval.Passed)}, []eval.Run{run("c", eval.HeldOut, eval.Failed), run("d", eval.HeldOut, eval.Passed)}
	for _, step := range []func(b *eval.Book) (eval.Entry, error){
		func(b *eval.Book) (eval.Entry, error) { return b.Propose(c), nil },
		func(b *eval.Book) (eval.Entry, error) { return b.Try(id, dev[0], dev[1]) },
		func(b *eval.Book) (eval.Entry, error) { return b.Look(id, held[0], held[1], 0) },
		func(b *eval.Book) (eval.Entry, error) { return b.Judge(id, held[0], held[1]) },
		func(*eval.Book) (eval.Entry, error) {
			return eval.Entry{Step: eval.Canaried, Proposal: id, Share: 0.5}, nil
		},
	} {
		if _, _, err := ledger.Add(t.Context(), time.Now().Add(-time.Minute), "me", step); err != nil {
			t.Fatal(err)
		}
	}
	return id
}
