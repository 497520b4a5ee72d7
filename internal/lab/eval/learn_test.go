package eval_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// learningLoop is one of learning: five proposals are tried on dev tasks, and the best two that are better
// there are looked at on held-out ones. One of them has a real effect, or none has. It returns whether
// any was promoted, and whether that was the real one.
func learningLoop(t *testing.T, dev, heldOut agents, effect float64) (any, right bool) {
	t.Helper()
	var book eval.Book
	apply := func(e eval.Entry, err error) eval.Entry {
		if err == nil {
			err = book.Apply(e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	effects := map[string]float64{}
	for i := range 5 {
		c, err := eval.NewChange("/w", "AGENTS.md", "", fmt.Sprint("Rule ", i, "\n"))
		e := apply(book.Propose(c), err)
		if i == 2 {
			effects[e.Proposal] = effect
		}
		base, candidate := dev.runs(effects[e.Proposal])
		base.Split, candidate.Split, candidate.Digest = eval.Dev, eval.Dev, base.Digest
		apply(book.Try(e.Proposal, base, candidate))
	}
	for range 2 {
		p := book.Best()
		if p == nil {
			return any, right
		}
		base, candidate := heldOut.runs(effects[p.ID])
		base.Split, candidate.Split = eval.HeldOut, eval.HeldOut
		base.Digest, candidate.Digest = "held out", "held out"
		apply(book.Look(p.ID, base, candidate, 0))
		if apply(book.Judge(p.ID, base, candidate)).Step == eval.Promoted {
			any, right = true, right || effects[p.ID] > 0
		}
	}
	return any, right
}

// TestLearningLoops runs 1,000 loops in full. On noise at most 5 % may promote anything; a real effect of
// 8 points is to be promoted in at least 80 %, with the number of tasks and tries that power says. Both
// within three standard errors of such a count.
func TestLearningLoops(t *testing.T) {
	t.Parallel()
	n, _ := times(1000)
	// The first look may spend 2.5 %, on one side. As the real one has to get there too, 9 of 10 are asked for.
	d := stats.Design{Tries: 5, Disagree: disagree, Spread: spread(0.08), Alpha: eval.Promote * stats.Share(1), OneSided: true}
	tasks := d.TasksFor(0.08, 0.9)
	src := rand.New(rand.NewPCG(3, 9))
	a := agents{src, tasks, d.Tries}
	noise, real := 0, 0
	for range n {
		if any, _ := learningLoop(t, a, a, 0); any {
			noise++
		}
		if _, right := learningLoop(t, a, a, 0.08); right {
			real++
		}
	}
	t.Logf("%d tasks, %d tries: on noise %.1f %% of %d loops promote, on 8 points %.1f %%", tasks, d.Tries,
		100*float64(noise)/float64(n), n, 100*float64(real)/float64(n))
	if share := float64(noise) / float64(n); share > 0.05+tolerance(0.05, n) {
		t.Errorf("on noise %.1f %% of loops promote something", 100*share)
	}
	if share := float64(real) / float64(n); share < 0.8-tolerance(0.8, n) {
		t.Errorf("on 8 points %.1f %% of loops promote the real one", 100*share)
	}
}

// TestCanaries runs canaries of changes that do no harm and of one that doubles the failures.
func TestCanaries(t *testing.T) {
	n, _ := times(2000)
	src := rand.New(rand.NewPCG(4, 9))
	rolled := func(with float64) float64 {
		back := 0
		for range n {
			book, p := canary(t)
			var signals []eval.Signal
			for i := range 600 {
				s := eval.Signal{Ended: true, Labels: map[string]string{p.Label(): eval.WithoutChange}, Failed: src.Float64() < 0.15}
				s.Cost = math.Exp(src.NormFloat64()) // some cost far more than others, whichever arm they are of
				if p.With(fmt.Sprint(src.Uint64(), i)) {
					s.Labels[p.Label()], s.Failed = eval.WithChange, src.Float64() < with
				}
				signals = append(signals, s)
			}
			e, err := book.Watch(p.ID, signals)
			if err != nil {
				t.Fatal(err)
			}
			if e.Step == eval.RolledBack {
				back++
			}
		}
		return float64(back) / float64(n)
	}
	if share := rolled(0.15); share > eval.Roll+tolerance(eval.Roll, n) {
		t.Errorf("%.1f %% of harmless changes are rolled back", 100*share)
	}
	if share := rolled(0.35); share < 0.8 {
		t.Errorf("%.1f %% of harmful changes are rolled back within 600 sessions", 100*share)
	}
}

// canary is a proposal that a quarter of the sessions has.
func canary(t *testing.T) (*eval.Book, *eval.Proposal) {
	t.Helper()
	book := &eval.Book{}
	c, err := eval.NewChange("/w", "AGENTS.md", "", "Test before you say so.\n")
	if err != nil {
		t.Fatal(err)
	}
	won, lost := halves()
	devWon, devLost := won, lost
	devWon.Split, devLost.Split = eval.Dev, eval.Dev
	for _, next := range []func() (eval.Entry, error){
		func() (eval.Entry, error) { return book.Propose(c), nil },
		func() (eval.Entry, error) { return book.Try(c.ID(), devLost, devWon) },
		func() (eval.Entry, error) { return book.Look(c.ID(), lost, won, 0) },
		func() (eval.Entry, error) { return book.Judge(c.ID(), lost, won) },
		func() (eval.Entry, error) {
			return eval.Entry{Seq: len(book.Entries) + 1, Step: eval.Canaried, Proposal: c.ID(), Share: 0.25}, nil
		},
	} {
		e, err := next()
		if err == nil {
			err = book.Apply(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := book.Proposal(c.ID())
	if err != nil {
		t.Fatal(err)
	}
	return book, p
}

// halves are two held-out runs, one that passes all of 12 tasks and one that passes half of them.
func halves() (won, lost eval.Run) {
	won = eval.Run{ID: "won", Digest: "d", Config: "won", Split: eval.HeldOut}
	lost = eval.Run{ID: "lost", Digest: "d", Config: "lost", Split: eval.HeldOut}
	for i := range 12 {
		passed := eval.Trial{Task: fmt.Sprint("secret-", i), Try: 1, Outcome: eval.Passed, Tokens: int64(1000 + i)}
		won.Trials = append(won.Trials, passed)
		if i%2 == 0 {
			passed.Outcome, passed.Reason = eval.Failed, "the checker said no"
		}
		lost.Trials = append(lost.Trials, passed)
	}
	return won, lost
}

// TestStepsAreEarned checks that nothing is promoted, given to sessions or kept that has not been shown to be better on
// held-out tasks.
func TestStepsAreEarned(t *testing.T) {
	won, lost := halves()
	var book eval.Book
	c, err := eval.NewChange("/w", "AGENTS.md", "one\n", "two\n")
	if err != nil {
		t.Fatal(err)
	}
	id := c.ID()
	refuse := func(what string, e eval.Entry, err error) {
		t.Helper()
		e.Seq = len(book.Entries) + 1
		if err == nil {
			err = book.Apply(e)
		}
		if err == nil {
			t.Fatalf("%s is not refused", what)
		}
	}
	accept := func(e eval.Entry, err error) {
		t.Helper()
		if err == nil {
			err = book.Apply(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	accept(book.Propose(c), nil)
	refuse("the same proposal", book.Propose(c), nil)
	e, err := book.Look(id, lost, won, 0)
	refuse("a look without a try", e, err)
	_, err = book.Try(id, lost, won)
	refuse("a try on held-out tasks", eval.Entry{}, err)
	dev, better := lost, won
	dev.Split, better.Split = eval.Dev, eval.Dev
	_, err = book.Look(id, dev, better, 0)
	refuse("a look at dev tasks", eval.Entry{}, err)
	accept(book.Try(id, better, dev)) // it is worse
	e, err = book.Look(id, lost, won, 0)
	refuse("a look at what is worse on dev", e, err)
	accept(book.Try(id, dev, better))
	for _, step := range []eval.Step{eval.Promoted, eval.Canaried, eval.Kept, eval.RolledBack, "blessed"} {
		refuse(string(step), eval.Entry{Step: step, Proposal: id, Share: 0.5}, nil)
	}
	e, err = book.Look(id, lost, won, 0)
	e.Allowed = 0.5
	refuse("a look that spends more", e, err)
	accept(book.Look(id, lost, won, 0))
	refuse("a verdict of other runs", eval.Entry{Step: eval.Promoted, Proposal: id, Base: "x", Candidate: "y"}, nil)
	accept(book.Judge(id, lost, won))
	if p, _ := book.Proposal(id); p.Step != eval.Promoted {
		t.Fatalf("six tasks won and none lost is %s", p.Step)
	}
	refuse("a canary of all", eval.Entry{Step: eval.Canaried, Proposal: id, Share: 1}, nil)
	for _, e := range book.Entries {
		if held := e.Step == eval.Looked || e.Step == eval.Promoted; held && (e.P != 0 || e.Gain != 0) {
			t.Errorf("the ledger tells of held-out results: %+v", e)
		}
	}
	if e, err := book.Look(id, lost, won, 0); err != nil || e.Allowed != eval.Promote*stats.Share(2) {
		t.Errorf("the next look may spend %v, %v", e.Allowed, err)
	}
}

// TestRunsBelongToAProposal checks which runs can't say anything of a change.
func TestRunsBelongToAProposal(t *testing.T) {
	var book eval.Book
	c, err := eval.NewChange("/w", "AGENTS.md", "one\n", "two\n")
	won, lost := halves()
	won.Pinned, won.Settings, won.Proposal = "with", "alike", c.ID()
	lost.Pinned, lost.Settings, lost.Proposal, lost.Without = "without", "alike", c.ID(), true
	dev, better := lost, won
	dev.Split, better.Split = eval.Dev, eval.Dev
	if err == nil {
		err = book.Apply(book.Propose(c))
	}
	if err == nil {
		err = book.Tied(c.ID(), dev, better)
	}
	e, bad := book.Try(c.ID(), dev, better)
	if err = errors.Join(err, bad, book.Apply(e)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(base, candidate *eval.Run){
		"":                   func(_, _ *eval.Run) {},
		"another version":    func(_, c *eval.Run) { c.Version = "2" },
		"another model":      func(_, c *eval.Run) { c.Model = "m" },
		"the same":           func(b, c *eval.Run) { c.Pinned = b.Pinned },
		"other settings":     func(_, c *eval.Run) { c.Settings = "else" },
		"no change":          func(_, c *eval.Run) { c.Proposal = "" },
		"another change":     func(_, c *eval.Run) { c.Proposal = "ffffffffffff" },
		"both without":       func(_, c *eval.Run) { c.Without = true },
		"both with":          func(b, _ *eval.Run) { b.Without = false },
		"a base of nothing":  func(b, _ *eval.Run) { b.Proposal, b.Without = "", false },
		"another suite":      func(b, c *eval.Run) { b.Suite, c.Suite = "s", "s" },
		"another candidate":  func(_, c *eval.Run) { c.Pinned = "else" },
		"other models alike": func(b, c *eval.Run) { b.Model, c.Model = "m", "m" },
	} {
		base, candidate := lost, won
		change(&base, &candidate)
		if err := book.Tied(c.ID(), base, candidate); errors.Is(err, eval.ErrUnchecked) != (name != "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestLaterLooksSpendLess checks that the same evidence promotes the first proposal and no fifth one.
func TestLaterLooksSpendLess(t *testing.T) {
	won, lost := halves()
	dev, better := lost, won
	dev.Split, better.Split = eval.Dev, eval.Dev
	var book eval.Book
	var steps []eval.Step
	for i := range 5 {
		c, err := eval.NewChange("/w", "AGENTS.md", "", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range []func() (eval.Entry, error){
			func() (eval.Entry, error) { return book.Propose(c), nil },
			func() (eval.Entry, error) { return book.Try(c.ID(), dev, better) },
			func() (eval.Entry, error) { return book.Look(c.ID(), lost, won, 0) },
			func() (eval.Entry, error) { return book.Judge(c.ID(), lost, won) },
		} {
			e, err := next()
			if err == nil {
				err = book.Apply(e)
			}
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, e.Step)
		}
	}
	if steps[3] != eval.Promoted || steps[19] != eval.Refused {
		t.Errorf("with p = 1/64, the first is %s and the fifth %s", steps[3], steps[19])
	}
}

// TestLooksFollowTheTasks checks which looks begin anew: not those at a suite that has changed elsewhere, not those at
// one with more tasks, and not those that the ledger no longer knows.
func TestLooksFollowTheTasks(t *testing.T) {
	won, lost := halves()
	won.Suite, lost.Suite = "mine", "mine"
	var book eval.Book
	for name, c := range map[string]struct {
		change func(r *eval.Run)
		tried  int
		look   int
	}{
		"the same":             {func(*eval.Run) {}, 0, 3},
		"another digest":       {func(r *eval.Run) { r.Digest = "e" }, 0, 3},
		"another name":         {func(r *eval.Run) { r.Suite = "yours" }, 0, 3},
		"another suite":        {func(r *eval.Run) { r.Suite, r.Digest = "yours", "e" }, 0, 1},
		"one more task":        {func(r *eval.Run) { r.Trials = append(r.Trials[:12:12], eval.Trial{Task: "new", Try: 1}) }, 0, 3},
		"other tasks":          {func(r *eval.Run) { r.Trials = []eval.Trial{{Task: "new", Try: 1}} }, 0, 1},
		"two configurations":   {func(*eval.Run) {}, 2, 3},
		"seven configurations": {func(*eval.Run) {}, 7, 6},
	} {
		for len(book.Entries) < 2 {
			e, err := book.Look("", lost, won, 0)
			if err == nil {
				err = book.Apply(e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		base, candidate := lost, won
		c.change(&base)
		c.change(&candidate)
		if e, err := book.Look("", base, candidate, c.tried); err != nil || e.Allowed != eval.Promote*stats.Share(c.look) {
			t.Errorf("%s may spend %v, not as look %d does, %v", name, e.Allowed, c.look, err)
		}
	}
}

func TestLedger(t *testing.T) {
	l := eval.Ledger{Path: filepath.Join(t.TempDir(), "learn", "ledger.jsonl")}
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	propose := func(text string) error {
		c, err := eval.NewChange("/w", "AGENTS.md", "", text)
		if err != nil {
			t.Fatal(err)
		}
		c.From = []eval.Drawn{{Session: "s1", Events: []uint64{4, 9}}}
		_, _, err = l.Add(t.Context(), now, "a person", func(b *eval.Book) (eval.Entry, error) { return b.Propose(c), nil })
		return err
	}
	for _, text := range []string{"one\n", "two\n", "three\n"} {
		if err := propose(text); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(l.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Path, append(raw, `{"seq":4,"st`...), 0o600); err != nil { // a crash
		t.Fatal(err)
	}
	if err := propose("four\n"); err != nil {
		t.Fatal(err)
	}
	book, err := l.Book()
	if err != nil || len(book.Proposals()) != 4 || book.Proposals()[0].Change.From[0].Events[1] != 9 {
		t.Fatalf("%+v, %v", book, err)
	}
	raw, _ = os.ReadFile(l.Path)
	lines := strings.SplitAfter(string(raw), "\n")
	for what, text := range map[string]string{
		"changed":   strings.Replace(string(raw), "a person", "the model", 1),
		"taken out": lines[0] + lines[2] + lines[3],
	} {
		if err := os.WriteFile(l.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Book(); err == nil {
			t.Errorf("a line that was %s does not show", what)
		}
	}
}

// TestLedgersStayReadable checks that nothing gets into a ledger that would come out of it as something else.
func TestLedgersStayReadable(t *testing.T) {
	const bad = "caf\xe9"
	for what, c := range map[string][4]string{
		"the workspace": {"/w" + bad, "AGENTS.md", "a", "b"}, "the name": {"/w", bad + ".md", "a", "b"},
		"the file": {"/w", "AGENTS.md", bad + strings.Repeat("\nfine", 9), strings.Repeat("\nfine", 9) + "\n"}, "the new one": {"/w", "AGENTS.md", "a", bad},
	} {
		if _, err := eval.NewChange(c[0], c[1], c[2], c[3]); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
			t.Errorf("%s: %v", what, err)
		}
	}
	good, err := eval.NewChange("/w", "AGENTS.md", "", "caf\u00e9, \ufffd and <\u2028>\n")
	if err != nil {
		t.Fatal(err)
	}
	l := eval.Ledger{Path: filepath.Join(t.TempDir(), "ledger.jsonl")}
	add := func(by string, change func(*eval.Change)) error {
		_, _, err := l.Add(t.Context(), time.Now(), by, func(b *eval.Book) (eval.Entry, error) {
			c := good
			change(&c)
			return b.Propose(c), nil
		})
		return err
	}
	for what, change := range map[string]func(*eval.Change){
		"why": func(c *eval.Change) { c.Why = bad }, "by": func(c *eval.Change) { c.By = bad },
		"old": func(c *eval.Change) { c.Old = bad }, "from": func(c *eval.Change) { c.From = []eval.Drawn{{Session: bad}} },
	} {
		if err := add("a person", change); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := add(bad, func(*eval.Change) {}); err == nil {
		t.Error("a person whose name is not UTF-8 is in the ledger")
	}
	if err := add("a person", func(*eval.Change) {}); err != nil {
		t.Error(err)
	}
	book, err := l.Book()
	if err != nil || len(book.Entries) != 1 {
		t.Fatalf("%+v, %v", book, err)
	}
	if _, err := book.Made(good.ID(), eval.Withdrawn, bad); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("the reason to withdraw it: %v", err)
	}
}

// TestChangesGoBack checks that a change and its way back leave a file as it was, also where others have changed it
// elsewhere meanwhile.
func TestChangesGoBack(t *testing.T) {
	lines := func(t *rapid.T, name string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "rule\n"}), 1, 30).Draw(t, name), "")
	}
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		before, after := lines(t, "before"), lines(t, "after")
		c, err := eval.NewChange("/w", "notes/AGENTS.md", before, after)
		if err != nil {
			t.Skip()
		}
		path := filepath.Join(root, "notes", "AGENTS.md")
		holds := func(want string) {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Fatalf("the file is %q and not %q: %v", got, want, err)
			}
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(before), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := c.Make(root); err != nil {
			t.Fatal(err)
		}
		holds(after)
		if err := errors.Join(c.Make(root), c.Make(root)); err != nil { // it is made already
			t.Fatal(err)
		}
		holds(after)
		if err := c.Back().Make(root); err != nil {
			t.Fatal(err)
		}
		holds(before)
	})
	c, err := eval.NewChange("/w", "AGENTS.md", "a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.On("a\nb\nsomething else\nd\ne\n"); !errors.Is(err, eval.ErrMoved) {
		t.Errorf("a file that has changed there: %v", err)
	}
	if _, err := eval.NewChange("/w", "../AGENTS.md", "a", "b"); err == nil {
		t.Error("a file outside of the workspace is taken")
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "out")); err == nil {
		if c, err = eval.NewChange("/w", "out/AGENTS.md", "", "b"); err != nil || c.Make(root) == nil {
			t.Errorf("a link out of the workspace is followed: %v", err)
		}
	}
}

// TestLinksStay checks that no change puts a copy in the place of a symbolic link, wherever that leads.
func TestLinksStay(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "shared.md"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ to, before, after string }{
		"AGENTS.md": {"shared.md", "one\n", "two\n"}, "GONE.md": {"nowhere.md", "", "two\n"}, "LESS.md": {"shared.md", "one\n", ""},
	} {
		link := filepath.Join(root, name)
		if err := os.Symlink(c.to, link); err != nil {
			t.Skip("no links here")
		}
		change, err := eval.NewChange(root, name, c.before, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Make(root); !errors.Is(err, eval.ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
		if to, err := os.Readlink(link); err != nil || to != c.to {
			t.Errorf("%s leads to %q now, %v", name, to, err)
		}
	}
}

// TestSettingsByName checks which files are settings, and which are files of a workspace.
func TestSettingsByName(t *testing.T) {
	for file, want := range map[string]bool{
		"config.toml": true, "home/config.toml": true, ".inspan/strong.toml": true, "sub/.inspan/a/b.toml": true,
		"pyproject.toml": false, "ruff.toml": false, ".inspan.toml": false, "myconfig.toml": false, ".inspan/skills/x/SKILL.md": false,
	} {
		if got := (eval.Change{File: file}).Settings(); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

// TestDearSessions checks that a change with which sessions cost far more is rolled back, and one with which they cost
// the same is not. Without prices tokens are compared.
func TestDearSessions(t *testing.T) {
	for _, c := range []struct {
		price        float64
		tokens, cost int // how often as much, with the change
		want         eval.Step
	}{
		{0.001, 5, 5, eval.RolledBack},
		{0.001, 1, 1, eval.Watched},
		{0.001, 5, 1, eval.Watched}, // nearly all of them are read from a cache
		{0, 5, 1, eval.RolledBack},
		{0, 1, 1, eval.Watched},
	} {
		book, p := canary(t)
		var signals []eval.Signal
		for i := range 60 {
			n := 1000 + 10*(i%7)
			s := eval.Signal{Ended: true, Tokens: n, Cost: c.price * float64(n), Labels: map[string]string{p.Label(): eval.WithoutChange}}
			if i%2 == 1 {
				s.Tokens, s.Cost = c.tokens*n, float64(c.cost)*s.Cost
				s.Labels = map[string]string{p.Label(): eval.WithChange}
			}
			signals = append(signals, s)
		}
		if e, err := book.Watch(p.ID, signals); err != nil || e.Step != c.want {
			t.Errorf("%+v: %s, %s, %v", c, e.Step, e.Why, err)
		}
	}
}

// TestSignals folds sessions that a person took back, stopped, denied, asked again, and accepted, whose last check
// failed, and whose commit was reverted.
func TestSignals(t *testing.T) {
	var sessions store.Memory
	repo := t.TempDir()
	git := func(args ...string) string {
		args = append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	first := git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "y")
	second := git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "Revert \"x\"\n\nThis reverts commit "+first+".")
	ran := func(id, command string, exit int, says string) []event.Body {
		return []event.Body{
			event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Call{ID: id, Name: "bash", Args: []byte("{}")}}, Stop: llm.StopCalls},
			event.Judged{Call: id, Action: tool.Allow, Effects: []tool.Effect{{Kind: tool.Execute, Text: command}}},
			event.Started{Call: id},
			event.Ended{Call: id, Outcome: event.OutcomeOK, Parts: llm.Say(says), Exit: &exit},
		}
	}
	asks := func(answer event.Decided) []event.Body {
		answer.Call = "c"
		return []event.Body{event.Judged{Call: "c", Action: tool.Ask}, event.Waiting{Call: "c"}, answer}
	}
	done := event.Stopped{Reason: event.ReasonDone}
	change := []tool.Effect{{Kind: tool.Write, Path: "/etc/x"}}
	session := func(task string, bodies ...event.Body) string {
		l, err := sessions.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		bodies = append([]event.Body{event.Claimed{Epoch: 1}, event.Opened{Format: 1, Root: repo}, event.Said{Parts: llm.Say(task)}}, bodies...)
		appended(t, l, bodies)
		return l.ID()
	}
	want := map[string]eval.Signal{
		session("fine", done):                                                                                       {Ended: true},
		session("undone", done, event.Rewound{To: 2}):                                                               {Ended: true, Undone: true},
		session("denied", append(asks(event.Decided{}), done)...):                                                   {Ended: true, Denied: true},
		session("allowed", asks(event.Decided{Allow: true})...):                                                     {},
		session("unasked", event.Decided{Call: "c"}, done):                                                          {Ended: true},
		session("refused", event.Judged{Call: "c", Action: tool.Deny, By: "the sandbox", Effects: change}, done):    {Ended: true, Denied: true},
		session("planned", event.Judged{Call: "c", Action: tool.Deny, By: "mode plan", Effects: change}, done):      {Ended: true},
		session("unread", event.Judged{Call: "c", Action: tool.Deny, By: "a rule", Effects: []tool.Effect{}}, done): {Ended: true},
		session("stopped", event.Cancelled{By: "me"}):                                                               {Interrupted: true},
		session("stuck", event.Stopped{Reason: "stuck"}):                                                            {Ended: true, Failed: true},
		session("again", done):                              {Ended: true},
		session(" again", done, event.Said{}, done):         {Ended: true},
		session("late", event.Cancelled{Limit: "max_time"}): {},
		session("broken", slices.Concat(ran("c1", "go test ./...", 1, "FAIL"), []event.Body{done})...):                                                {Ended: true, Unproven: true},
		session("mended", slices.Concat(ran("c1", "go test ./...", 1, "FAIL"), ran("c2", "go test ./...", 0, "ok"), []event.Body{done})...):           {Ended: true},
		session("reverted", slices.Concat(ran("c1", "git commit -m x", 0, "[main "+first[:7]+"] x\n 1 file changed"), []event.Body{done})...):         {Ended: true, Reverted: true},
		session("committed", slices.Concat(ran("c1", "git commit -m y", 0, "[main (root-commit) "+second[:7]+"] y\n 1 file"), []event.Body{done})...): {Ended: true},
	}
	got, err := eval.Signals(t.Context(), &sessions, time.Time{}, "")
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d signals, %v", len(got), err)
	}
	again := 0
	for _, s := range got {
		w := want[s.Session]
		if s.Rerun { // the earlier of two, which may have begun in the same millisecond
			again++
			w.Rerun = w.Ended && !w.Bad()
		}
		if s.Ended != w.Ended || s.Undone != w.Undone || s.Denied != w.Denied || s.Interrupted != w.Interrupted || s.Failed != w.Failed ||
			s.Rerun != w.Rerun || s.Unproven != w.Unproven || s.Reverted != w.Reverted || s.Accepted() != (w.Ended && !w.Bad()) {
			t.Errorf("%+v, not %+v", s, w)
		}
	}
	if again != 1 {
		t.Errorf("%d sessions were asked again", again)
	}
}

// appended stores the events of a driver in a session.
func appended(t *testing.T, l store.Log, bodies []event.Body) {
	t.Helper()
	if err := l.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := uint64(0)
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		after = e.Seq
	}
	for _, body := range bodies {
		events, err := l.AppendAs(context.WithoutCancel(t.Context()), event.Driver{Epoch: 1, After: after}, body)
		if err != nil {
			t.Fatal(err)
		}
		after = events[0].Seq
	}
}

// TestQuietCommits checks that a reverted commit counts against the session that made it, even if git did not print
// it.
func TestQuietCommits(t *testing.T) {
	for date, reverted := range map[string]bool{"": true, "2001-01-01T00:00:00Z": false} {
		t.Setenv("GIT_COMMITTER_DATE", date) // empty means now
		var sessions store.Memory
		repo := t.TempDir()
		git := func(args ...string) string {
			args = append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
			out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		l, err := sessions.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		appended(t, l, []event.Body{
			event.Claimed{Epoch: 1},
			event.Opened{Format: 1, Root: repo},
			event.Say("commit"),
			event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Call{ID: "c", Name: "bash", Args: []byte("{}")}}, Stop: llm.StopCalls},
			event.Judged{Call: "c", Action: tool.Allow, Effects: []tool.Effect{{Kind: tool.Execute, Text: "git commit -q -m x"}}},
			event.Started{Call: "c"},
		})
		git("init", "-q")
		git("commit", "-q", "--allow-empty", "-m", "x")
		git("commit", "-q", "--allow-empty", "-m", "Revert \"x\"\n\nThis reverts commit "+git("rev-parse", "HEAD")+".")
		appended(t, l, []event.Body{event.Ended{Call: "c", Outcome: event.OutcomeOK}, event.Stopped{Reason: event.ReasonDone}})
		signals, err := eval.Signals(t.Context(), &sessions, time.Time{}, "")
		if err != nil || len(signals) != 1 || signals[0].Reverted != reverted {
			t.Errorf("commits of %q: %+v, %v", date, signals, err)
		}
		_ = l.Close()
	}
}

// TestProposalsAreTried checks that the trials of a run get the subject of a proposal, with or without the change, and
// that runs that show it are the ones that can promote it.
func TestProposalsAreTried(t *testing.T) {
	b := newBench(t)
	b.put("work/AGENTS.md", "Be brief.\n")
	instructions, err := eval.NewChange(filepath.Join(b.dir, "work"), "AGENTS.md", "Be brief.\n", "Be brief.\nMARKER-77\n")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := eval.NewChange(filepath.Join(b.dir, "work"), "config.toml", string(b.plan.Settings), string(b.plan.Settings)+"max_turns = 7\n")
	if err != nil {
		t.Fatal(err)
	}
	b.task("t", "", "say: done", "exit 0\n")
	var book eval.Book
	b.put("work/.inspan/memory/MEMORY.md", "- Be brief.\n")
	memory, err := eval.NewChange(filepath.Join(b.dir, "work"), ".inspan/memory/MEMORY.md", "- Be brief.\n", "- Be brief.\n- MARKER-77\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []eval.Change{instructions, settings, memory} {
		if err := book.Apply(book.Propose(c)); err != nil {
			t.Fatal(err)
		}
		var runs []eval.Run
		for _, without := range []bool{true, false} {
			b.plan.Proposal, b.plan.Without = &c, without
			var said strings.Builder
			run, err := b.Go(t.Context(), b.begin().ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, trial := range run.Trials {
				for _, body := range b.events(trial.Session) {
					switch e := body.(type) {
					case event.Added:
						said.WriteString(e.Text)
					case event.Switched:
						if e.Limits != nil {
							fmt.Fprintf(&said, "MARKER-%d7", e.Limits.Turns)
						}
					}
				}
				if trial.Outcome != eval.Passed {
					t.Errorf("%+v", trial)
				}
			}
			if strings.Contains(said.String(), "MARKER-77") == without || c.File != "config.toml" && !strings.Contains(said.String(), "Be brief.") {
				t.Errorf("%s, without %v: %s", c.File, without, said.String())
			}
			runs = append(runs, *run)
		}
		if err := book.Tied(c.ID(), runs[0], runs[1]); err != nil {
			t.Error(err)
		}
		if err := book.Tied(c.ID(), runs[1], runs[0]); !errors.Is(err, eval.ErrUnchecked) {
			t.Errorf("the other way round: %v", err)
		}
	}
	b.put("suite/t/files/AGENTS.md", "mine\n")
	b.plan.Proposal, b.plan.Without = &instructions, false
	for _, trial := range b.run() {
		if trial.Outcome != eval.Broken || !strings.Contains(trial.Reason, "has its own AGENTS.md") {
			t.Errorf("%+v", trial)
		}
	}
	b.plan.Proposal, b.plan.Settings = &settings, []byte("model = \"script\"\n")
	if _, err := b.Begin(b.plan); !errors.Is(err, eval.ErrMoved) {
		t.Errorf("settings that the proposal is not about: %v", err)
	}
}
