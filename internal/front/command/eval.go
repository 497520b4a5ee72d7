package command

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
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

func newEvalCommand(c *command) *cobra.Command {
	tries := []*cobra.Command{
		c.evalValidate(), c.evalRun(), c.evalMatrix(), c.evalResume(), c.evalList(), c.evalShow(), c.evalLabel(), c.evalCalibrate(),
	}
	return group("eval", "Measure configurations of inspan on tasks with checkers", append(tries, evalComparisons(c)...)...)
}

// evaluated returns a command of eval that first reads the settings.
func (c *command) evaluated(e *evaluation, do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
		e.Table, e.Program, e.Version, e.Out, e.Err = a.Running, c.program(), inspan.Version, cmd.OutOrStdout(), cmd.ErrOrStderr()
		return do(cmd, args)
	})
}

func (c *command) evalValidate() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "validate SUITE",
		Short: "Check a suite, and print its digest",
		Long: "A SUITE is a folder of tasks, one task, a folder of .txt files, or a .jsonl file. docs/EVALUATION.md describes the formats.\n" +
			"With --pin, inspan writes the digest into suite.toml, and refuses the suite if it changes afterwards.",
		Args: exactly(1, 1, "a SUITE"),
		RunE: c.evaluated(&e, func(_ *cobra.Command, args []string) error {
			if e.Pin {
				digest, err := eval.Pin(args[0])
				if err == nil {
					_, err = fmt.Fprintf(e.Out, "pinned %s\n", digest)
				}
				return err
			}
			s, err := eval.OpenSuite(args[0], e.Repos)
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
		}),
	}
	cmd.Flags().BoolVar(&e.Pin, "pin", false, "write the digest into suite.toml")
	cmd.Flags().StringVar(&e.Repos, "repos", "", "`folder` with clones of the repositories that rows of SWE-bench name")
	return cmd
}

func (c *command) evalRun() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "run SUITE",
		Short: "Try the tasks of a suite with one configuration",
		Long: "Each trial is a session of its own, in its own process and workspace. Its labels name the run, the task and the try.\n" +
			"The checker runs after the process has exited.\n" +
			"A run that was interrupted or killed continues with 'inspan eval resume'.\n" +
			"Trials have their own home without your instructions, skills and memory, except for the change of --proposal.\n" +
			"Failures of the infrastructure do not count as failures of the agent: inspan tries the task again, up to three times.",
		Example: "  inspan eval run suites/mine --config strong.toml --mode auto --jobs 4 --budget 20\n" +
			"  inspan eval run suites/mine --split held-out --tries 5\n" +
			"  inspan eval run suites/mine --proposal 0123456789ab",
		Args: exactly(1, 1, "a SUITE"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			if err := e.check(); err != nil {
				return err
			}
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			p, err := e.plan(args[0])
			if err != nil {
				return err
			}
			r := e.runner()
			run, err := r.Begin(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Err, "run %s of %s\n", run.ID, run.Suite)
			return e.on(ctx, r, run.ID)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&e.Config, "config", "", "settings `file` of the trials, or a folder with it, AGENTS.md, skills and more (default: your own settings file)")
	fl.StringVar(&e.With, "proposal", "", "`proposal` of 'inspan eval learn' whose change all trials have: in a file of their workspaces, or in their settings")
	fl.StringVar(&e.Without, "without", "", "run all trials without the change of this `proposal`, as the base of a comparison")
	fl.StringVar(&e.Model, "model", "", "model as `provider/model` (default: as the settings have it)")
	fl.StringVar(&e.Split, "split", "", "`split` to try: train, dev or held-out (default: all that is not held out)")
	addEvalTrials(cmd, &e)
	addEvalBounds(cmd, &e)
	return cmd
}

func (c *command) evalMatrix() *cobra.Command {
	var e evaluation
	var configs, models []string
	cmd := &cobra.Command{
		Use:   "matrix SUITE",
		Short: "Try the tasks of a suite with each model and each configuration, and print a table",
		Long: "Each pair of a --config and a --model is a run of its own, which 'inspan eval show' and 'inspan eval compare' take.\n" +
			"--budget and --time are for all of them. If it was interrupted, give the command again: trials that have ended are not repeated.",
		Example: "  inspan eval matrix suites/mine --model anthropic/claude-sonnet-5-5 --model ollama/qwen3-coder --tries 3\n" +
			"  inspan eval matrix suites/mine --config a.toml --config b.toml",
		Args: exactly(1, 1, "a SUITE"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			if len(configs)+len(models) < 2 {
				return misused("a matrix needs two or more of --model and --config")
			}
			if err := e.check(); err != nil {
				return err
			}
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			return e.matrix(ctx, args[0], configs, models)
		}),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&configs, "config", nil, "settings `file` or folder of trials; repeatable (default: your own settings file)")
	fl.StringArrayVar(&models, "model", nil, "model as `provider/model`; repeatable (default: as the settings have it)")
	fl.StringVar(&e.Split, "split", "", "`split` to try: train or dev (default: both)")
	addEvalTrials(cmd, &e)
	addEvalBounds(cmd, &e)
	return cmd
}

// addEvalTrials declares the flags about the trials of new runs.
func addEvalTrials(cmd *cobra.Command, e *evaluation) {
	fl := cmd.Flags()
	fl.StringVar((*string)(&e.Mode), "mode", "", "permission `mode` of the trials (default: as the settings have it)")
	fl.StringArrayVar(&e.Only, "task", nil, "`glob` over the ids of tasks to try; repeatable")
	fl.IntVar(&e.Tries, "tries", 1, "`number` of trials of each task")
	fl.BoolVar(&e.Visible, "visible", false, "allow a run in which the agent can see the checkers")
	fl.BoolVar(&e.Outside, "open-checks", false, "allow checkers that run without the sandbox (open = true)")
	fl.StringVar(&e.Repos, "repos", "", "`folder` with clones of the repositories that rows of SWE-bench name")
}

// check returns an error if the options of new runs are invalid.
func (e *evaluation) check() error {
	if err := (app.Options{Mode: e.Mode}).Check(); err != nil {
		return err
	}
	if e.Jobs < 1 || e.Tries < 1 {
		return misused("--jobs and --tries must be 1 or more")
	}
	return wordOf("--split", cmp.Or(e.Split, "dev"), []string{"train", "dev", "held-out"})
}

// addEvalBounds declares the flags for starting or resuming a run.
func addEvalBounds(cmd *cobra.Command, e *evaluation) {
	fl := cmd.Flags()
	fl.IntVar(&e.Jobs, "jobs", 1, "`number` of trials at the same time")
	fl.Var((*dollars)(&e.Budget), "budget", "maximum cost of the run in US `dollars`; 0 means no limit")
	fl.DurationVar(&e.Time, "time", 0, "maximum `time` of the run, such as 2h; 0 means no limit")
	fl.BoolVar(&e.Fresh, "fresh", false, "run every task, also those with results from earlier runs")
	fl.BoolVar(&e.Keep, "keep", false, "leave the workspaces of the trials in the folder for temporary files")
	fl.BoolVar(&e.JSON, "json", false, "print JSON")
}

func (c *command) evalResume() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was interrupted or killed",
		Long: "The run keeps its --budget, --time and --fresh, unless you give another budget or time. The time starts again.\n" +
			"A run that has used up its budget continues only with a larger one.",
		Args: exactly(1, 1, "a RUN"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			if cmd.Flags().Changed("time") {
				e.Time = cmp.Or(e.Time, -1)
			}
			run, err := eval.FolderIn(e.Table.StateDir).Open(args[0])
			if err != nil {
				return err
			}
			return e.on(ctx, e.runner(), run.ID)
		}),
	}
	addEvalBounds(cmd, &e)
	return cmd
}

func (c *command) evalList() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.evaluated(&e, func(*cobra.Command, []string) error {
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
				return printJSON(e.Out, list)
			}
			w := text.NewTable(e.Out, "RUN", "SUITE", "CONFIG", "MODEL", "PASSED", "FAILED", "BROKEN", "COST")
			for _, s := range list {
				passed, failed := s.counts()
				w.Row(s.ID, s.Suite, s.Config, text.Visible(cmp.Or(s.Model, "default")), passed, failed, s.Broken, fmt.Sprintf("$%.2f", s.Cost))
			}
			return w.Flush()
		}),
	}
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalShow() *cobra.Command {
	var e evaluation
	var watch bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show the trials of a run; those of held-out tasks are only counted",
		Args:  exactly(1, 1, "a RUN"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			if !watch {
				return e.show(args[0])
			}
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			return e.watch(ctx, args[0], drawable(e.Out))
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show the state of all trials, until the run has ended")
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalLabel() *cobra.Command {
	var e evaluation
	return &cobra.Command{
		Use:   "label RUN TASK TRY pass|fail",
		Short: "Record your own verdict on a trial, to calibrate graders",
		Args:  exactly(4, 4, "a RUN, a TASK, a TRY, and pass or fail"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			f := eval.FolderIn(e.Table.StateDir)
			run, err := f.Open(args[0])
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(args[2])
			if err != nil {
				return misused("%q is not the number of a try", args[2])
			}
			if err := wordOf("the label", args[3], []string{"pass", "fail"}); err != nil {
				return err
			}
			return f.Label(cmd.Context(), run, eval.Label{Task: args[1], Try: n, Passed: args[3] == "pass", By: os.Getenv("USER")})
		}),
	}
}

func (c *command) evalCalibrate() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "calibrate RUN",
		Short: "Show how far graders agree with the labels of people",
		Args:  exactly(1, 1, "a RUN"),
		RunE: c.evaluated(&e, func(_ *cobra.Command, args []string) error {
			f := eval.FolderIn(e.Table.StateDir)
			run, err := f.Open(args[0])
			if err != nil {
				return err
			}
			if run.Split == eval.HeldOut { // a label would reveal the outcome
				return misused("run %s has held-out tasks; calibrate graders with a run of other tasks", run.ID)
			}
			labels, err := f.Labels(run)
			if err != nil {
				return err
			}
			list := eval.Calibrate(run, labels)
			if len(list) == 0 {
				return misused("no trial of run %s has a label; add some with: inspan eval label %s TASK TRY pass|fail",
					run.ID, run.ID)
			}
			if e.JSON {
				return printJSON(e.Out, list)
			}
			w := text.NewTable(e.Out, "GRADER", "LABELS", "AGREES", "KAPPA", "TOO LAX", "TOO STRICT")
			for _, a := range list {
				w.Row(a.Grader, a.Both+a.None+a.Lax+a.Strict, fmt.Sprintf("%.0f %%", 100*a.Share), fmt.Sprintf("%.2f", a.Kappa), a.Lax, a.Strict)
			}
			return w.Flush()
		}),
	}
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}

// evaluation has the options of an evaluation.
type evaluation struct {
	Table    *running.Table
	Program  string // runs the trials
	Version  string
	Out, Err io.Writer

	Repos   string // folder with clones for rows of SWE-bench
	Pin     bool
	Config  string // settings file, or the folder of one; empty means the person's file
	Model   string
	Mode    tool.Mode
	Flags   []string // of 'inspan run'
	With    string   // proposal that the trials include
	Without string   // proposal that the trials exclude: they have its file without the change; at most one of the two is set
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

// matrix starts a run of a suite for each configuration with each model, one after the other, and prints a table.
func (e *evaluation) matrix(ctx context.Context, path string, configs, models []string) error {
	if eval.Split(e.Split) == eval.HeldOut {
		return misused("a matrix shows results, and those of held-out tasks stay hidden; use dev tasks")
	}
	if len(configs) == 0 {
		configs = []string{""}
	}
	if len(models) == 0 {
		models = []string{""}
	}
	var runs []summed
	spent, until := 0.0, time.Now().Add(e.Time)
	for _, config := range configs {
		for _, model := range models {
			one := *e
			one.Config, one.Model = config, model
			p, err := one.plan(path)
			if err != nil {
				return err
			}
			r := one.runner()
			if e.Budget > 0 {
				r.Budget = max(e.Budget-spent, 1e-9) // 0 would be no limit
			}
			if e.Time > 0 {
				r.Time = max(time.Until(until), time.Nanosecond)
			}
			run, err := r.Begin(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Err, "run %s: %s, %s\n", run.ID, run.Config, text.Visible(cmp.Or(run.Model, "default model")))
			if run, err = r.Go(ctx, run.ID); run == nil {
				return err
			}
			runs = append(runs, sumOf(run))
			if spent += runs[len(runs)-1].Cost; err != nil {
				return errors.Join(e.printMatrix(runs), fmt.Errorf("%w; run the command again to continue", err))
			}
		}
	}
	return e.printMatrix(runs)
}

// printMatrix prints the runs of a matrix.
func (e *evaluation) printMatrix(runs []summed) error {
	if e.JSON {
		return printJSON(e.Out, runs)
	}
	w := text.NewTable(e.Out, "CONFIG", "MODEL", "PASSED", "FAILED", "BROKEN", "COST", "COST A SUCCESS", "RUN")
	for _, s := range runs {
		each, total := "-", 0.0
		for _, t := range s.Trials {
			total += t.Cost // also of cached ones, which were paid once
		}
		if *s.Passed > 0 {
			each = fmt.Sprintf("$%.4f", total/float64(*s.Passed))
		}
		w.Row(s.Config, text.Visible(cmp.Or(s.Model, "default")), *s.Passed, *s.Failed, s.Broken, fmt.Sprintf("$%.2f", s.Cost), each, s.ID)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Out, "To see which differences may be chance: inspan eval compare RUN RUN ...")
	return err
}

// plan returns the run of a suite that the options describe.
func (e *evaluation) plan(path string) (eval.Plan, error) {
	s, err := eval.OpenSuite(path, e.Repos)
	if err != nil {
		return eval.Plan{}, err
	}
	p := eval.Plan{
		Suite: s, Repos: e.Repos, Mode: e.Mode, Flags: e.Flags, Version: e.Version, Split: eval.Split(e.Split), Only: e.Only,
		Tries: e.Tries, Visible: e.Visible, Outside: e.Outside, Without: e.Without != "",
	}
	if p.Config, p.Settings, p.Beside, err = e.settings(); err != nil {
		return p, err
	}
	p.Model = e.Model
	p.Proposal, err = e.proposal()
	return p, err
}

// proposal returns the ledger's change for the trials; nil means none.
func (e *evaluation) proposal() (*eval.Change, error) {
	name := cmp.Or(e.With, e.Without)
	switch {
	case name == "":
		return nil, nil
	case e.With != "" && e.Without != "":
		return nil, misused("a run has --proposal or --without, not both")
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

// settings returns the evaluated settings, their name, the files next to them, and the model in them.
func (e *evaluation) settings() (name string, data []byte, beside []eval.File, err error) {
	path := e.Config
	name = text.Visible(strings.TrimSuffix(filepath.Base(path), ".toml"))
	optional := path == ""
	if optional {
		path, name = e.Table.ConfigPath, "own"
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		if beside, err = eval.Beside(path); err != nil {
			return name, nil, nil, misused("--config: %w", err)
		}
		path, optional = filepath.Join(path, "config.toml"), true
	}
	if _, err := os.Stat(path); optional && errors.Is(err, os.ErrNotExist) {
		return name, nil, beside, nil
	}
	c, err := config.Load(path)
	if err != nil {
		return name, nil, nil, config.Error{Err: err}
	}
	if e.Model == "" {
		e.Model = c.Model
	}
	if data, err = config.ReadFile(path); err != nil {
		return name, nil, nil, misused("--config: %w", err)
	}
	return name, data, beside, nil
}

func (e *evaluation) runner() *eval.Runner {
	r := &eval.Runner{
		Table: e.Table, Program: e.Program, Jobs: e.Jobs, Fresh: e.Fresh, Keep: e.Keep, Budget: e.Budget, Time: e.Time,
	}
	if !e.JSON {
		r.OnTrial = e.told
	}
	return r
}

// told prints a line of progress.
func (e *evaluation) told(p eval.Progress) {
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

// on performs the rest of a run, and prints its results.
func (e *evaluation) on(ctx context.Context, r *eval.Runner, id string) error {
	run, err := r.Go(ctx, id)
	if run == nil {
		return err
	}
	if err != nil {
		err = fmt.Errorf("%w; continue with: inspan eval resume %s", err, id)
	}
	return errors.Join(e.summary(run), err)
}

// show prints the trials of a run. Held-out ones are only counted.
func (e *evaluation) show(id string) error {
	run, err := eval.FolderIn(e.Table.StateDir).Open(id)
	if err != nil {
		return err
	}
	if run.Split == eval.HeldOut || e.JSON {
		return e.summary(run)
	}
	w := text.NewTable(e.Out, "TASK", "TRY", "OUTCOME", "SCORE", "TURNS", "COST", "SESSION", "REASON")
	for _, t := range run.Trials {
		w.Row(t.Task, t.Try, t.Outcome, fmt.Sprintf("%.2f", t.Score), t.Turns, fmt.Sprintf("$%.4f", t.Cost),
			t.Session, text.Visible(words.OneLine(t.Reason, 80)))
	}
	err = w.Flush()
	for _, t := range run.Trials {
		if t.Outcome == eval.Failed && t.Printed != "" {
			fmt.Fprintf(e.Out, "\nthe check of %s #%d printed:\n%s\n", t.Task, t.Try, lastLines(t.Printed))
		}
	}
	return errors.Join(err, e.summary(run))
}

// mostPrinted is how many lines of a check's output are shown; --json has more.
const mostPrinted = 20

// lastLines returns the last lines of a text, indented.
func lastLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	lines = lines[max(0, len(lines)-mostPrinted):]
	return "  " + strings.ReplaceAll(text.VisibleLines(strings.Join(lines, "\n")), "\n", "\n  ")
}

// summed is a run with its counts, for programs. For held-out tasks, only a counted look reveals more than how
// many trials are done.
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

// counts returns the numbers of passed and failed trials in the form for a table.
func (s summed) counts() (passed, failed string) {
	if s.Passed == nil {
		return "-", "-"
	}
	return strconv.Itoa(*s.Passed), strconv.Itoa(*s.Failed)
}

// summary prints the state of a run.
func (e *evaluation) summary(run *eval.Run) error {
	s := sumOf(run)
	if e.JSON {
		return printJSON(e.Out, s)
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
