package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Eval is what a person wants evaluated.
type Eval struct {
	Table    *running.Table
	Program  string // that trials run in
	Version  string
	Out, Err io.Writer

	Repos   string // folder with clones for rows of SWE-bench
	Pin     bool
	Config  string // settings file; empty: that of the person
	Model   string
	Mode    tool.Mode
	Flags   []string // of 'inspan run'
	With    string   // proposal that the trials have
	Without string   // proposal whose file they have as it is without the change; at most one of the two is set
	Split   string
	Only    []string
	Tries   int
	Jobs    int
	Fresh   bool
	Keep    bool
	Visible bool
	Outside bool
	Budget  float64
	Time    time.Duration
	JSON    bool
}

// Validate reads a suite and says what is in it.
func (e *Eval) Validate(path string) error {
	if e.Pin {
		digest, err := eval.Pin(path)
		if err == nil {
			_, err = fmt.Fprintf(e.Out, "pinned %s\n", digest)
		}
		return err
	}
	s, err := eval.OpenSuite(path, e.Repos)
	if err != nil {
		return err
	}
	counts := map[eval.Split]int{}
	for _, split := range []eval.Split{eval.Train, eval.Dev, eval.HeldOut} {
		counts[split] = len(s.Of(split))
	}
	_, err = fmt.Fprintf(e.Out, "%s: %s (train %d, dev %d, held-out %d)\ndigest %s\n", s.Name, text.Count(len(s.Tasks), "task"),
		counts[eval.Train], counts[eval.Dev], counts[eval.HeldOut], s.Digest)
	return err
}

// Run performs a new run of a suite.
func (e *Eval) Run(ctx context.Context, path string) error {
	if err := oneOf("--split", cmp.Or(e.Split, "dev"), []string{"train", "dev", "held-out"}); err != nil {
		return err
	}
	s, err := eval.OpenSuite(path, e.Repos)
	if err != nil {
		return err
	}
	p := eval.Plan{
		Suite: s, Repos: e.Repos, Mode: e.Mode, Flags: e.Flags, Version: e.Version, Split: eval.Split(e.Split), Only: e.Only,
		Tries: e.Tries, Visible: e.Visible, Outside: e.Outside,
	}
	if p.Config, p.Settings, err = e.settings(); err != nil {
		return err
	}
	p.Model = e.Model
	if p.Proposal, err = e.proposal(); err != nil {
		return err
	}
	p.Without = e.Without != ""
	r := e.runner()
	run, err := r.Begin(p)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Err, "run %s of %s\n", run.ID, run.Suite)
	return e.on(ctx, r, run.ID)
}

// proposal is what the trials are to have of the ledger; nil: nothing.
func (e *Eval) proposal() (*eval.Change, error) {
	name := cmp.Or(e.With, e.Without)
	switch {
	case name == "":
		return nil, nil
	case e.With != "" && e.Without != "":
		return nil, words.Misuse{Err: errors.New("a run has --proposal or --without, not both")}
	}
	book, err := eval.LedgerIn(e.Table.StateDir).Book()
	if err != nil {
		return nil, err
	}
	id, err := book.Resolve(name)
	if err != nil {
		return nil, words.Misuse{Err: err}
	}
	p, err := book.Proposal(id)
	if err != nil {
		return nil, err
	}
	return &p.Change, nil
}

// settings are the settings that are evaluated, by a name, and the model in them.
func (e *Eval) settings() (name string, data []byte, err error) {
	path := e.Config
	if name = text.Visible(strings.TrimSuffix(filepath.Base(path), ".toml")); path == "" {
		path, name = e.Table.ConfigPath, "own"
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return name, nil, nil
		}
	}
	c, err := config.Load(path)
	if err != nil {
		return name, nil, config.Error{Err: err}
	}
	if e.Model == "" {
		e.Model = c.Model
	}
	if data, err = config.ReadFile(path); err != nil {
		return name, nil, words.Misuse{Err: fmt.Errorf("--config: %w", err)}
	}
	return name, data, nil
}

func (e *Eval) runner() *eval.Runner {
	r := &eval.Runner{
		Table: e.Table, Program: e.Program, Jobs: e.Jobs, Fresh: e.Fresh, Keep: e.Keep, Budget: e.Budget, Time: e.Time,
	}
	if !e.JSON {
		r.Told = e.told
	}
	return r
}

// told prints a line of progress.
func (e *Eval) told(p eval.Progress) {
	t := p.Trial
	line := fmt.Sprintf("%d/%d %s #%d", p.Done, p.All, t.Task, t.Try)
	switch {
	case p.Hidden:
		line += ": done, held out"
	case t.Reason != "":
		line += fmt.Sprintf(": %s, %s", t.Outcome, text.Visible(words.OneLine(t.Reason, 200)))
	default:
		line += ": " + string(t.Outcome)
	}
	if t.Cached {
		line += " (cached)"
	}
	fmt.Fprintf(e.Err, "%s  $%.2f in all\n", line, p.Cost)
}

// Resume goes on with a run.
func (e *Eval) Resume(ctx context.Context, id string) error {
	run, err := eval.FolderIn(e.Table.StateDir).Open(id)
	if err != nil {
		return err
	}
	return e.on(ctx, e.runner(), run.ID)
}

// on performs what is left of a run, and prints what has come of it.
func (e *Eval) on(ctx context.Context, r *eval.Runner, id string) error {
	run, err := r.Go(ctx, id)
	if run == nil {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%w; go on with: inspan eval resume %s", err, id)
	}
	return errors.Join(e.summary(run), err)
}

// Show prints the trials of a run. Those that are held out are only counted.
func (e *Eval) Show(id string) error {
	run, err := eval.FolderIn(e.Table.StateDir).Open(id)
	if err != nil {
		return err
	}
	if run.Split == eval.HeldOut || e.JSON {
		return e.summary(run)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tTRY\tOUTCOME\tSCORE\tTURNS\tCOST\tSESSION\tREASON")
	for _, t := range run.Trials {
		fmt.Fprintf(w, "%s\t%d\t%s\t%.2f\t%d\t$%.4f\t%s\t%s\n", t.Task, t.Try, t.Outcome, t.Score, t.Turns, t.Cost, t.Session,
			text.Visible(words.OneLine(t.Reason, 80)))
	}
	err = w.Flush()
	for _, t := range run.Trials {
		if t.Outcome == eval.Failed && t.Printed != "" {
			fmt.Fprintf(e.Out, "\nthe check of %s #%d printed:\n%s\n", t.Task, t.Try, lastLines(t.Printed))
		}
	}
	return errors.Join(err, e.summary(run))
}

// mostPrinted is how many lines of what a check printed are shown; --json has more.
const mostPrinted = 20

// lastLines are the last lines of a text, indented.
func lastLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	lines = lines[max(0, len(lines)-mostPrinted):]
	return "  " + strings.ReplaceAll(text.VisibleLines(strings.Join(lines, "\n")), "\n", "\n  ")
}

// summed is a run with its counts, for programs. Of held-out tasks only a counted look tells more than
// how many trials are done.
type summed struct {
	*eval.Run
	Done   int          `json:"done"`
	Passed *int         `json:"passed,omitempty"`
	Failed *int         `json:"failed,omitempty"`
	Broken int          `json:"broken"`
	Cost   float64      `json:"cost"` // US dollars of trials that were not cached
	Trials []eval.Trial `json:"trials,omitempty"`
}

func sumOf(run *eval.Run) summed {
	s := summed{Run: run, Done: len(run.Trials)}
	passed, failed := 0, 0
	for _, t := range run.Trials {
		switch t.Outcome {
		case eval.Passed:
			passed++
		case eval.Failed:
			failed++
		default:
			s.Broken++
		}
		if !t.Cached {
			s.Cost += t.Cost
		}
	}
	if run.Split != eval.HeldOut {
		s.Trials, s.Passed, s.Failed = run.Trials, &passed, &failed
	}
	return s
}

// counts are those of passed and failed trials, as a table has them.
func (s summed) counts() (passed, failed string) {
	if s.Passed == nil {
		return "-", "-"
	}
	return strconv.Itoa(*s.Passed), strconv.Itoa(*s.Failed)
}

// summary prints how a run stands.
func (e *Eval) summary(run *eval.Run) error {
	s := sumOf(run)
	if e.JSON {
		return Indented(e.Out, s)
	}
	if s.Passed != nil {
		_, err := fmt.Fprintf(e.Out, "%s: %d passed, %d failed, %d broken, $%.2f\n", run.ID, *s.Passed, *s.Failed, s.Broken, s.Cost)
		return err
	}
	n, err := eval.FolderIn(e.Table.StateDir).Looks(run.Suite)
	if err == nil {
		_, err = fmt.Fprintf(e.Out, "%s: %s of held-out tasks done, %d broken, $%.2f\nheld-out tasks of %s were tried %s\n",
			run.ID, text.Count(s.Done, "trial"), s.Broken, s.Cost, run.Suite, text.Count(n, "time"))
	}
	return err
}

// List prints the runs.
func (e *Eval) List() error {
	f := eval.FolderIn(e.Table.StateDir)
	ids, err := f.IDs()
	if err != nil {
		return err
	}
	list := []summed{}
	for _, id := range ids {
		run, err := f.Open(id)
		if err != nil {
			return err
		}
		s := sumOf(run)
		s.Trials = nil
		list = append(list, s)
	}
	if e.JSON {
		return Indented(e.Out, list)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSUITE\tCONFIG\tMODEL\tPASSED\tFAILED\tBROKEN\tCOST")
	for _, s := range list {
		passed, failed := s.counts()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t$%.2f\n", s.ID, s.Suite, s.Config, text.Visible(cmp.Or(s.Model, "default")),
			passed, failed, s.Broken, s.Cost)
	}
	return w.Flush()
}

// Label keeps what a person says of a trial.
func (e *Eval) Label(ctx context.Context, id, task, try, word string) error {
	f := eval.FolderIn(e.Table.StateDir)
	run, err := f.Open(id)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(try)
	if err != nil {
		return words.Misuse{Err: fmt.Errorf("%q is not the number of a try", try)}
	}
	if err := oneOf("the label", word, []string{"pass", "fail"}); err != nil {
		return err
	}
	return f.Label(ctx, run, eval.Label{Task: task, Try: n, Passed: word == "pass", By: os.Getenv("USER")})
}

// Calibrate prints how far the graders of a run agree with people. The label of a held-out trial would
// tell its outcome.
func (e *Eval) Calibrate(id string) error {
	f := eval.FolderIn(e.Table.StateDir)
	run, err := f.Open(id)
	if err != nil {
		return err
	}
	if run.Split == eval.HeldOut {
		return words.Misuse{Err: fmt.Errorf("run %s is of held-out tasks; calibrate graders with a run of others", run.ID)}
	}
	labels, err := f.Labels(run)
	if err != nil {
		return err
	}
	list := eval.Calibrate(run, labels)
	if len(list) == 0 {
		return words.Misuse{Err: fmt.Errorf("no trial of run %s has a label; add some with: inspan eval label %s TASK TRY pass|fail",
			run.ID, run.ID)}
	}
	if e.JSON {
		return Indented(e.Out, list)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GRADER\tLABELS\tAGREES\tKAPPA\tTOO LAX\tTOO STRICT")
	for _, a := range list {
		fmt.Fprintf(w, "%s\t%d\t%.0f %%\t%.2f\t%d\t%d\n", a.Grader, a.Both+a.None+a.Lax+a.Strict, 100*a.Share, a.Kappa, a.Lax, a.Strict)
	}
	return w.Flush()
}
