package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

func compare(t *testing.T, how eval.Comparing, base eval.Run, candidates ...eval.Run) []eval.Comparison {
	t.Helper()
	cs, err := eval.Compare(base, candidates, how)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// devs are the halves as runs of dev tasks.
func devs() (won, lost eval.Run) {
	won, lost = halves()
	won.Split, lost.Split = eval.Dev, eval.Dev
	return won, lost
}

// TestOnlyWhatBothHaveCounts checks that broken trials and tasks of one side change no figure but are counted.
func TestOnlyWhatBothHaveCounts(t *testing.T) {
	won, lost := devs()
	plain := compare(t, eval.Comparing{}, lost, won)[0]
	won.Trials = append(won.Trials, eval.Trial{Task: "secret-0", Try: 2, Outcome: eval.Broken},
		eval.Trial{Task: "new", Try: 1, Outcome: eval.Passed})
	lost.Trials = append(lost.Trials, eval.Trial{Task: "gone", Try: 1, Outcome: eval.Broken})
	c := compare(t, eval.Comparing{}, lost, won)[0]
	if c.Gain != plain.Gain || *c.P != *plain.P || c.Tasks != 12 {
		t.Errorf("the gain is %+v with p %v over %d tasks, and was %+v with %v", c.Gain, *c.P, c.Tasks, plain.Gain, *plain.P)
	}
	if c.Alone != 2 || c.Base.Broken != 1 || c.Candidate.Broken != 1 || c.Cost != nil || plain.Cost != nil {
		t.Errorf("%d tasks alone, %d and %d trials broken, costs %v", c.Alone, c.Base.Broken, c.Candidate.Broken, c.Cost)
	}
	said := strings.Join(c.Says.Unknown, "\n")
	if !strings.Contains(said, "2 trials were set aside") || !strings.Contains(said, "2 tasks were left out") {
		t.Errorf("it does not say what was left out:\n%s", said)
	}
	if diff := cmp.Diff(fmt.Sprint(plain), fmt.Sprint(compare(t, eval.Comparing{}, lost, won)[0])); diff == "" {
		t.Error("the comparisons are the same")
	}
	again := compare(t, eval.Comparing{}, lost, won)[0]
	if again.Gain != c.Gain || again.Tokens != c.Tokens {
		t.Error("the same runs give other figures")
	}
	won.Digest = "another"
	if _, err := eval.Compare(lost, []eval.Run{won}, eval.Comparing{}); err == nil {
		t.Error("runs of different suites are compared")
	}
}

// TestSeveralCandidatesAreCorrected checks that a candidate that looks better alone does not among equal ones, any of
// which could have looked so.
func TestSeveralCandidatesAreCorrected(t *testing.T) {
	won, lost := devs()
	alone := compare(t, eval.Comparing{}, lost, won)[0]
	among := compare(t, eval.Comparing{}, lost, won, lost, lost)
	if alone.Verdict != eval.Better || among[0].Verdict != eval.Unknown || math.Abs(*among[0].P-3**alone.P) > 1e-12 {
		t.Errorf("alone it is %s (p = %v), among three %s (p = %v)", alone.Verdict, *alone.P, among[0].Verdict, *among[0].P)
	}
	if *among[1].P != 1 {
		t.Errorf("a run compared with itself has p = %v", *among[1].P)
	}
}

// TestLooksWaitForTheirTasks checks that a look takes the first tasks in the order of the suite, whatever else has
// ended, and that its finding stays.
func TestLooksWaitForTheirTasks(t *testing.T) {
	a := agents{rand.New(rand.NewPCG(1, 5)), 100, 1}
	base, candidate := a.run("base"), a.run("candidate")
	candidate.Digest = base.Digest
	var tasks []string
	for i := range a.tasks {
		a.try(&base, i, 0.2)
		a.try(&candidate, i, 0.9)
		tasks = append(tasks, base.Trials[i].Task)
	}
	at := map[string]int{}
	for i, task := range eval.Order(base.Digest, tasks) {
		at[task] = i
	}
	part := func(keep func(at int) bool) eval.Comparison {
		some := candidate
		some.Trials = nil
		for _, trial := range candidate.Trials {
			if keep(at[trial.Task]) {
				some.Trials = append(some.Trials, trial)
			}
		}
		return compare(t, eval.Comparing{Looks: 5}, base, some)[0]
	}
	if c := part(func(at int) bool { return at > 0 }); len(c.Looks) != 0 || c.Verdict != eval.Unknown || c.Next != 20 {
		t.Errorf("without the first task there are looks: %+v, %s, next %d", c.Looks, c.Verdict, c.Next)
	}
	for i, trial := range base.Trials {
		if at[trial.Task] == 30 {
			base.Trials[i].Outcome = eval.Broken // it says nothing, and holds nothing up
		}
	}
	first := part(func(at int) bool { return at < 45 })
	if len(first.Looks) == 0 || first.Verdict != eval.Better || first.P != nil || first.Next != 0 {
		t.Fatalf("after 45 tasks: %+v, %s", first.Looks, first.Verdict)
	}
	base.Tries = 2
	if c := part(func(int) bool { return true }); len(c.Looks) != 0 {
		t.Errorf("there are looks while second tries are missing: %+v", c.Looks)
	}
	base.Tries = 1
	all := part(func(int) bool { return true })
	if diff := cmp.Diff(first.Looks, all.Looks); diff != "" || all.Verdict != eval.Better {
		t.Errorf("later the looks are others: %s", diff)
	}
}

// TestHeldOutShowsOnlyTheVerdict checks that the output for a person who improves things contains no single task and no
// figure, in any format.
func TestHeldOutShowsOnlyTheVerdict(t *testing.T) {
	won, lost := halves()
	c := compare(t, eval.Comparing{}, lost, won)[0]
	if len(c.Flips) > 0 || !c.HeldOut {
		t.Errorf("held-out tasks are listed: %+v", c.Flips)
	}
	blind := c.Blind()
	if blind.Verdict != eval.Better {
		t.Errorf("the verdict is %s", blind.Verdict)
	}
	for _, format := range eval.Formats() {
		var b bytes.Buffer
		if err := eval.Report(&b, format, []eval.Comparison{blind}, ""); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"secret-", "50.0", "0.5", "0.03", "the checker said no", "points"} {
			if strings.Contains(b.String(), secret) && (format != "html" || !strings.HasPrefix(secret, "0.")) {
				t.Errorf("%s tells %q:\n%s", format, secret, b.String())
			}
		}
	}
	won.Split, lost.Split = eval.Dev, eval.Dev
	if c := compare(t, eval.Comparing{}, lost, won)[0]; len(c.Blind().Flips) != 6 {
		t.Errorf("of dev tasks %d flips are shown", len(c.Blind().Flips))
	}
}

// TestReports checks that reports have all that is known, and that names in them stay text.
func TestReports(t *testing.T) {
	won, lost := devs()
	won.Config = `<script>alert("x")</script> | **bold**`
	cs := compare(t, eval.Comparing{}, lost, won)
	report := map[string]string{}
	for _, format := range eval.Formats() {
		var b bytes.Buffer
		if err := eval.Report(&b, format, cs, ""); err != nil {
			t.Fatal(err)
		}
		report[format] = b.String()
	}
	if page := report["html"]; strings.Contains(page, "<script") || !strings.Contains(page, "&lt;script&gt;") {
		t.Error("the page has the script of a name")
	}
	for _, flip := range cs[0].Flips {
		for format, text := range report {
			if !strings.Contains(text, flip.Task) {
				t.Errorf("%s does not tell of %s", format, flip.Task)
			}
		}
	}
	if !strings.Contains(report["md"], `\<script\>alert("x")\</script\> \| \*\*bold\*\* | change |`) {
		t.Errorf("a name breaks the table:\n%s", report["md"])
	}
	if bare := strings.NewReplacer(`\<`, "", `\*`, "").Replace(report["md"]); strings.ContainsAny(bare, "<*") {
		t.Errorf("a name is a mark:\n%s", report["md"])
	}
	var back []eval.Comparison
	if err := json.Unmarshal([]byte(report["json"]), &back); err != nil {
		t.Fatal(err)
	}
	if back[0].Gain != cs[0].Gain || !math.IsInf(back[0].Tokens.Times.High, 1) && math.IsInf(cs[0].Tokens.Times.High, 1) {
		t.Errorf("as JSON the gain is %+v, and was %+v", back[0].Gain, cs[0].Gain)
	}
}

func TestGate(t *testing.T) {
	won, lost := devs()
	for _, c := range []struct {
		base, candidate eval.Run
		alpha           float64
		pass            bool
		says            int
	}{{lost, won, 0.05, true, 2}, {won, lost, 0.05, false, 2}, {won, lost, 0.01, true, 2}, {won, won, 0.05, true, 3}} {
		g, err := eval.Gate(c.base, c.candidate, eval.Comparing{Alpha: c.alpha})
		if err != nil || g.Pass != c.pass || g.Smallest <= 0.2 || len(g.Says) != c.says {
			t.Errorf("%s after %s at %g: %+v, %v", c.candidate.Config, c.base.Config, c.alpha, g, err)
		}
	}
	won, lost = halves()
	g, err := eval.Gate(won, lost, eval.Comparing{})
	told, bad := json.Marshal(g)
	if err != nil || bad != nil || g.Pass || strings.Contains(string(told), "0.5") || strings.Contains(string(told), "points") {
		t.Errorf("of held-out tasks the gate tells %s, %v", told, err)
	}
}

// TestTheSameTrialsShowNothing checks that the comparison of a run with itself, or with its cached trials, says so.
func TestTheSameTrialsShowNothing(t *testing.T) {
	won, lost := devs()
	for i := range won.Trials {
		won.Trials[i].Session, lost.Trials[i].Session = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	cached := won
	cached.ID = "cached"
	cached.Trials = slices.Concat(won.Trials[:6], lost.Trials[6:])
	for _, c := range []struct {
		candidate eval.Run
		shared    int
	}{{won, 12}, {cached, 6}, {lost, 0}} {
		got := compare(t, eval.Comparing{}, won, c.candidate)[0]
		said := strings.Contains(strings.Join(got.Says.Unknown, "\n"), fmt.Sprint(c.shared, " trials are the same on both sides"))
		if got.Shared != c.shared || said != (c.shared > 0) {
			t.Errorf("%s: %d trials are shared, and it says %q", c.candidate.ID, got.Shared, got.Says.Unknown)
		}
	}
}

// TestFreeTrials checks that a comparison of zero costs contains only valid figures.
func TestFreeTrials(t *testing.T) {
	won, lost := devs()
	for i := range won.Trials {
		won.Trials[i].Priced, lost.Trials[i].Priced = true, true
	}
	c := compare(t, eval.Comparing{}, lost, won)[0]
	said := strings.Join(append(c.Says.Known, c.Says.Unknown...), "\n")
	if strings.Contains(said, "NaN") || strings.Contains(said, "not to") || !strings.Contains(said, "A success costs $0 on either side.") {
		t.Errorf("it says\n%s", said)
	}
}

// TestFewTasksShowNothing checks that neither a comparison nor a gate of four tasks promises anything, or lets a
// candidate pass that fails all of them.
func TestFewTasksShowNothing(t *testing.T) {
	won, lost := devs()
	won.Trials, lost.Trials = won.Trials[:4], lost.Trials[:4]
	for i := range lost.Trials {
		lost.Trials[i].Outcome = eval.Failed
	}
	c := compare(t, eval.Comparing{}, won, lost)[0]
	said := strings.Join(append(c.Says.Known, c.Says.Unknown...), "\n")
	if c.Smallest != 0 || !math.IsInf(c.Gain.Low, -1) || strings.Contains(said, "-100.0 to") || strings.Contains(said, "would be found in") ||
		!strings.Contains(said, "it takes at least 6 tasks") || !strings.Contains(said, "95 % interval not known)") {
		t.Errorf("the interval is %+v, and it says\n%s", c.Gain, said)
	}
	for _, candidate := range []eval.Run{lost, won} {
		g, err := eval.Gate(won, candidate, eval.Comparing{})
		if err != nil || g.Pass || g.Result != eval.GateUndecided || g.Smallest != 0 || !strings.Contains(g.Says[0], "it takes at least 5") {
			t.Errorf("the gate says %+v, %v", g, err)
		}
	}
	won.Split, lost.Split = eval.HeldOut, eval.HeldOut
	if g, err := eval.Gate(won, lost, eval.Comparing{}); err != nil || g.Pass || len(g.Says) != 1 || strings.Contains(g.Says[0], "points") {
		t.Errorf("of held-out tasks the gate says %+v, %v", g, err)
	}
	won, _ = devs()
	if c := compare(t, eval.Comparing{}, won, won)[0]; c.Gain.Low > -0.2 || c.Gain.High < 0.2 {
		t.Errorf("twelve equal tasks say that the gain is in %+v", c.Gain)
	}
}

// TestGateNeedsAllTrials checks that a gate does not pass a candidate of which only the first tasks have ended, unless
// that was requested.
func TestGateNeedsAllTrials(t *testing.T) {
	won, _ := devs()
	part := won
	part.Trials = won.Trials[:10]
	for _, c := range []struct {
		base, candidate eval.Run
		how             eval.Comparing
		want            eval.GateResult
	}{
		{won, part, eval.Comparing{}, eval.GateUndecided},
		{part, won, eval.Comparing{}, eval.GateUndecided},
		{part, part, eval.Comparing{}, eval.GatePassed},
		{part, part, eval.Comparing{Planned: 12}, eval.GateUndecided},
		{won, part, eval.Comparing{Partial: true}, eval.GatePassed},
	} {
		g, err := eval.Gate(c.base, c.candidate, c.how)
		if err != nil || g.Result != c.want || g.Pass != (c.want == eval.GatePassed) {
			t.Errorf("%d and %d trials, %+v: %+v, %v", len(c.base.Trials), len(c.candidate.Trials), c.how, g, err)
		}
	}
	c := compare(t, eval.Comparing{}, won, part)[0]
	if said := strings.Join(c.Says.Unknown, "\n"); !strings.Contains(said, "2 trials have not ended, 0 of the base, 2 of the candidate") {
		t.Errorf("it does not say what is missing:\n%s", said)
	}
	won.Tries = 2
	if g, err := eval.Gate(won, part, eval.Comparing{}); err != nil || !strings.Contains(g.Says[0], "12 trials of run won have not ended") {
		t.Errorf("without second tries: %+v, %v", g, err)
	}
}

// TestWhatBreaksIsNoProof checks that an agent which breaks the trials that it would fail passes no gate and is not
// promoted, and that a few broken trials of both change nothing.
func TestWhatBreaksIsNoProof(t *testing.T) {
	won, lost := devs()
	few, bad := won, won
	few.Trials, bad.Trials = nil, nil
	for i, trial := range won.Trials {
		broken := trial
		broken.Outcome = eval.Broken
		few.Trials, bad.Trials = append(few.Trials, trial), append(bad.Trials, trial)
		if i < 2 {
			few.Trials[i] = broken
		}
		if i < 3 {
			bad.Trials[i] = broken
		}
	}
	for candidate, want := range map[*eval.Run]eval.GateResult{&few: eval.GatePassed, &bad: eval.GateUndecided} {
		g, err := eval.Gate(won, *candidate, eval.Comparing{})
		if err != nil || g.Result != want {
			t.Errorf("the gate says %+v, %v", g, err)
		}
	}
	if g, err := eval.Gate(bad, bad, eval.Comparing{}); err != nil || !g.Pass {
		t.Errorf("with the same trials broken on both sides, the gate says %+v, %v", g, err)
	}
	c := compare(t, eval.Comparing{}, won, bad)[0]
	if said := strings.Join(c.Says.Unknown, "\n"); !c.Uneven || !strings.Contains(said, "Find the cause first") {
		t.Errorf("it does not say that one side breaks more:\n%s", said)
	}
	var book eval.Book
	if e, err := book.Try("p", lost, bad); err != nil || e.P != 1 {
		t.Errorf("a proposal that breaks trials is better with p = %v, %v", e.P, err)
	}
	if e, err := book.Try("p", lost, few); err != nil || e.P > 0.05 {
		t.Errorf("two broken trials leave p = %v, %v", e.P, err)
	}
}

// TestWhereSessionsPart compares driven sessions: different times, ids, folders and words do not part them, as long as
// they do the same.
func TestWhereSessionsPart(t *testing.T) {
	var sessions store.Memory
	session := func(id, root, says, command string, exit int) string {
		l, err := sessions.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		call := llm.Call{ID: id, Name: "bash", Args: json.RawMessage(fmt.Sprintf(`{ "command":%q }`, command))}
		appended(t, l, []event.Body{
			event.Claimed{Epoch: 1},
			event.Opened{Format: 1, Root: root},
			event.Said{Parts: llm.Say("fix " + root + "/a.go")},
			event.Asked{Turn: 1},
			event.Replied{Parts: llm.Parts{llm.Text{Text: says}, call}, Millis: int64(len(says))},
			event.Started{Call: id},
			event.Ended{Call: id, Outcome: event.OutcomeOK, Exit: &exit, Parts: llm.Say("in " + root)},
			event.Stopped{Reason: event.ReasonDone},
		})
		return l.ID()
	}
	base := session("c1", "/tmp/one", "Let me look.", "go test /tmp/one", 0)
	for name, c := range map[string]struct {
		other string
		seq   uint64
		kind  string
	}{
		"the same":     {session("c7", "/tmp/two", "Let me look.", "go test /tmp/two", 0), 0, ""},
		"other words":  {session("c7", "/tmp/two", "I look first.", "go test /tmp/two", 0), 5, "replied"},
		"another call": {session("c7", "/tmp/two", "I look first.", "go vet /tmp/two", 0), 5, "replied"},
		"another end":  {session("c7", "/tmp/two", "I look first.", "go test /tmp/two", 1), 7, "ended"},
	} {
		d, err := eval.Diff(t.Context(), &sessions, base, c.other)
		switch {
		case err != nil:
			t.Error(err)
		case c.seq == 0 && d.Parting != nil, c.seq != 0 && d.Parting == nil:
			t.Errorf("%s: %+v", name, d.Parting)
		case c.seq != 0 && (d.Parting.Base.Seq != c.seq || d.Parting.Candidate.Kind != c.kind):
			t.Errorf("%s: they part at %+v", name, d.Parting)
		}
	}
	won, lost := devs()
	won.Trials[0].Session, lost.Trials[0].Session = session("c7", "/tmp/two", "Go.", "go vet", 0), base
	won.Trials[2].Session, lost.Trials[2].Session = "20261127-gone", base
	c := compare(t, eval.Comparing{}, lost, won)[0]
	if err := c.Part(t.Context(), &sessions); err != nil {
		t.Fatal(err)
	}
	if f := c.Flips[0]; f.Parting == nil || f.Parting.Base.Seq != 5 || !strings.Contains(f.Parting.Base.Text, "go test .") {
		t.Errorf("the flip of %s: %+v", f.Task, f)
	}
	for format, want := range map[string]string{
		"html": `<a href="http://host/s/` + base + `#5">event 5</a>`, "md": "[" + base + ":5](http://host/s/" + base + "#5)",
	} {
		var b bytes.Buffer
		if err := eval.Report(&b, format, []eval.Comparison{c}, "http://host/"); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s does not link the event: %v\n%s", format, err, b.String())
		}
	}
	var b bytes.Buffer
	if err := eval.Failures(t.Context(), &b, &sessions, lost); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"task secret-0, try 1: the checker said no\n", base + ":5  replied  bash {\"command\":\"go test .\"}\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the failures lack %q:\n%s", line, b.String())
		}
	}
	lost.Split = eval.HeldOut
	if err := eval.Failures(t.Context(), &b, &sessions, lost); err == nil {
		t.Error("failures of held-out tasks are shown")
	}
	for _, f := range c.Flips[1:] {
		if f.Parting != nil || f.Why == "" {
			t.Errorf("the flip of %s has no reason: %+v", f.Task, f)
		}
	}
}
