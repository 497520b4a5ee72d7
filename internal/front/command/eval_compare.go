package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/store"
)

// evalComparisons are the subcommands of eval about finished runs, and about learning from them.
func evalComparisons(c *command) []*cobra.Command {
	return []*cobra.Command{c.evalCompare(), c.evalReport(), c.evalDiff(), c.evalGate(), c.evalPower(), c.evalExport(), c.evalLearn()}
}

// comparing returns a command about runs that first reads the settings.
func (c *command) comparing(ask *comparisons, do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
		ask.State, ask.Sessions, ask.Out, ask.Now, ask.By = a.Running.StateDir, a.Store(), cmd.OutOrStdout(), time.Now(), "a person"
		if who, err := user.Current(); err == nil {
			ask.By = who.Username
		}
		return do(cmd, args)
	})
}

// rates declares the flags that all comparisons have.
func rates(cmd *cobra.Command, ask *comparisons) {
	fl := cmd.Flags()
	rateFlag(fl, &ask.How.Alpha, "alpha", 0.05, "`rate` at which equal configurations may be called different")
	rateFlag(fl, &ask.How.Power, "power", 0.8, "`rate` at which a promised difference is found")
}

// looksFlag declares the flag for looks, with a limit beyond which more looks would find no more.
func looksFlag(cmd *cobra.Command, looks *int) {
	const mostLooks = 100
	countFlag(cmd.Flags(), looks, "looks", 1, mostLooks, "look this `number` of times while the candidate runs; 1: at the end")
}

func partialFlag(cmd *cobra.Command, ask *comparisons) {
	cmd.Flags().BoolVar(&ask.How.Partial, "partial", false, "judge by the finished trials, if some are missing")
}

func (c *command) evalCompare() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:   "compare BASE CANDIDATE [CANDIDATE ...]",
		Short: "Compare runs: which one is better, and how sure that is",
		Long: "BASE and CANDIDATE are runs of the same suite: ids or folders. Only tasks that both have count. inspan sets trials\n" +
			"aside whose infrastructure failed. The verdict is an exact test over whole tasks. With several candidates, inspan\n" +
			"corrects the error rate for their number.\n\n" +
			"A run that has not ended has no verdict. With --looks you may compare while the candidate still runs, and stop early:\n" +
			"always give the same number. --partial judges by the finished trials.\n" +
			"Of held-out tasks inspan shows only the verdict, and counts the look in the ledger of 'inspan eval learn'.\n" +
			"docs/EVALUATION.md explains the numbers.",
		Example: "  inspan eval compare baseline candidate\n  inspan eval compare baseline candidate --looks 5",
		Args:    exactly(2, 100, "a BASE and one or more CANDIDATEs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error { return ask.compare(cmd.Context(), args) })
	rates(cmd, &ask)
	looksFlag(cmd, &ask.How.Looks)
	partialFlag(cmd, &ask)
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalReport() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:     "report BASE CANDIDATE [CANDIDATE ...]",
		Short:   "Write a comparison as a page of HTML, as Markdown or as JSON",
		Long:    "The report has everything that 'inspan eval compare' knows. The page of HTML is one file that loads nothing.",
		Example: "  inspan eval report baseline candidate --format html --out report.html",
		Args:    exactly(2, 100, "a BASE and one or more CANDIDATEs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) (err error) {
		if err := wordOf("--format", ask.Format, eval.Formats()); err != nil {
			return err
		}
		if u, err := url.Parse(ask.Pages); err != nil || ask.Pages != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return misused("--web: %q is not the address of a web page", ask.Pages)
		}
		cs, err := ask.compared(cmd.Context(), args)
		if err != nil {
			return err
		}
		if ask.File == "" {
			return eval.Report(ask.Out, ask.Format, cs, ask.Pages)
		}
		f, err := os.Create(ask.File)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return eval.Report(f, ask.Format, cs, ask.Pages)
	})
	rates(cmd, &ask)
	looksFlag(cmd, &ask.How.Looks)
	cmd.Flags().StringVar(&ask.Format, "format", "md", "`format` of the report: md, html or json")
	cmd.Flags().StringVar(&ask.Pages, "web", "", "link events to this `address` of inspan web, such as http://127.0.0.1:8080")
	cmd.Flags().StringVar(&ask.File, "out", "", "`file` to write (default: print it)")
	return cmd
}

func (c *command) evalDiff() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:   "diff SESSION SESSION",
		Short: "Show the first event where two sessions part",
		Long: "inspan compares calls with their arguments, how they ended, answers and messages. Times and ids do not count. Models put\n" +
			"the same thing differently, so their words count only if everything else is the same.",
		Args: exactly(2, 2, "two SESSIONs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error {
		var ids [2]string
		for i, name := range args {
			id, err := store.Resolve(cmd.Context(), ask.Sessions, name)
			if err != nil {
				return err
			}
			ids[i] = id
		}
		d, err := eval.Diff(cmd.Context(), ask.Sessions, ids[0], ids[1])
		switch {
		case err != nil:
			return err
		case ask.JSON:
			return printJSON(ask.Out, d)
		case d.Parting == nil:
			fmt.Fprintf(ask.Out, "Both do the same: %s, in the same words.\n", text.Count(d.Same, "deed"))
			return nil
		}
		fmt.Fprintf(ask.Out, "The first %s the same. Then they part:\n", text.Counted(d.Same, "deed is", "deeds are"))
		for i, deed := range []eval.Deed{d.Parting.Base, d.Parting.Candidate} {
			fmt.Fprintf(ask.Out, "  %s:%d  %s\n", ids[i], deed.Seq, strings.TrimSpace(deed.Kind+"  "+deed.Text))
		}
		return nil
	})
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalGate() *cobra.Command {
	var ask comparisons
	cmd := &cobra.Command{
		Use:   "gate BASE CANDIDATE",
		Short: "Fail if a candidate is really worse, for CI",
		Long: "The exit code is 1 if the candidate passes fewer tasks and chance does not explain that at the error rate. It is 2 if\n" +
			"these runs could not have shown a drop: too few tasks, trials that have not ended, or far more trials of one side set\n" +
			"aside. inspan also says which drop this gate would have stopped: a gate with few tasks stops only large ones.",
		Example: "  inspan eval gate main this-branch --alpha 0.01",
		Args:    exactly(2, 2, "a BASE and a CANDIDATE"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error {
		from, to, err := ask.two(args[0], args[1])
		if err != nil {
			return err
		}
		if err := ask.count(cmd.Context(), from, to); err != nil {
			return err
		}
		g, err := eval.Gate(from, to, ask.How)
		if err != nil {
			return err
		}
		if ask.JSON {
			err = printJSON(ask.Out, g)
		} else {
			for _, line := range g.Says {
				fmt.Fprintln(ask.Out, text.Line(line))
			}
		}
		if err == nil {
			c.code = map[eval.GateResult]int{eval.GateStopped: console.ExitError, eval.GateUndecided: console.ExitUsage}[g.Result]
		}
		return err
	})
	rates(cmd, &ask)
	partialFlag(cmd, &ask)
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalPower() *cobra.Command {
	var ask comparisons
	d, power, pilot := &ask.Design, &ask.How.Power, ""
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Show which difference a comparison would find, before you pay for it",
		Long: "Differences are shares of the tasks: 0.08 is 8 points. --disagree is how often one trial of each configuration ends\n" +
			"differently on a task. The difference may be in all tasks alike, in half or in a fifth of them: inspan states the worst.\nWith --pilot, inspan takes --disagree from a run that has tried each task several times.",
		Example: "  inspan eval power --tasks 89\n  inspan eval power --tasks 89 --tries 5 --effect 0.08\n" +
			"  inspan eval power --tries 3 --pilot baseline",
		Args: exactly(0, 0, "no arguments"),
	}
	cmd.RunE = c.comparing(&ask, func(*cobra.Command, []string) error {
		if d.Spread > 0 && d.Tries == 1 {
			return misused("--spread needs --tries of at least 2: one try can't tell it from chance")
		}
		return ask.power(pilot)
	})
	fl := cmd.Flags()
	countFlag(fl, &d.Tasks, "tasks", 100, 100_000, "`number` of tasks")
	countFlag(fl, &d.Tries, "tries", 1, 1000, "`number` of tries of each task, under each configuration")
	rateFlag(fl, &d.Disagree, "disagree", 0.2, "`share` of the tasks on which one trial of each ends differently")
	numberFlag(fl, &d.Spread, "spread", 0, 0, 1, "standard `deviation` of the difference between tasks")
	rateFlag(fl, &d.Alpha, "alpha", 0.05, "`rate` at which equal configurations may be called different")
	rateFlag(fl, power, "power", 0.8, "`share` of comparisons that should find the difference")
	numberFlag(fl, &ask.Effect, "effect", 0, -1, 1, "`difference` to find; inspan says how often and with how many tasks")
	looksFlag(cmd, &d.Looks)
	fl.StringVar(&pilot, "pilot", "", "`run` to take --disagree from")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalExport() *cobra.Command {
	var ask comparisons
	shape := ""
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write the trials of a run for leaderboards and other tools",
		Long: "harbor: the folder of a job, with result.json, trajectory.json and reward.txt of each trial.\n" +
			"jsonl: a line for each trial, with its run.\n" +
			"swe-bench: predictions, one for each task: the patch of its first try that did not break.\n\n" +
			"Exporting held-out tasks counts as a look at them, in the ledger of 'inspan eval learn'.",
		Example: "  inspan eval export last --as swe-bench --out predictions.jsonl\n  inspan eval export last --as harbor --out jobs/mine",
		Args:    exactly(1, 1, "a RUN"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error {
		return ask.export(cmd.Context(), args[0], shape, cmd.ErrOrStderr())
	})
	cmd.Flags().StringVar(&shape, "as", "jsonl", "`shape`: harbor, jsonl or swe-bench")
	cmd.Flags().StringVar(&ask.File, "out", "", "new `file` or, for harbor, folder to write (default: print it)")
	return cmd
}

// comparisons has the options of a person's comparison of runs.
type comparisons struct {
	State    string // folder
	Sessions store.Store
	Out      io.Writer
	Now      time.Time
	By       string // the person who asks

	How    eval.Comparing
	Design stats.Design // for Power, with the power in How
	Effect float64      // for Power; 0 means not given
	Format string       // of a report; empty means text
	File   string       // file for a report; empty means Out
	Pages  string       // address of the web page for links to events; empty means no links
	JSON   bool

	Unchecked bool // runs are not checked to differ only in a proposal's change
}

// run finds a run by its id or by its folder.
func (c *comparisons) run(name string) (eval.Run, error) {
	dir := name
	if _, err := os.Stat(filepath.Join(name, "run.json")); err != nil {
		if !filepath.IsLocal(name) {
			return eval.Run{}, misused("no run in %s", name)
		}
		f := eval.FolderIn(c.State)
		run, err := f.Open(name)
		if err != nil {
			return eval.Run{}, err
		}
		dir = filepath.Join(f.Dir, run.ID)
	}
	run, tasks, err := eval.ReadRun(dir)
	c.How.Planned = max(c.How.Planned, tasks)
	return run, err
}

func (c *comparisons) ledger() eval.Ledger {
	return eval.LedgerIn(c.State)
}

// compared compares runs. For held-out tasks it returns only the verdict, and the look counts.
func (c *comparisons) compared(ctx context.Context, names []string) ([]eval.Comparison, error) {
	runs := make([]eval.Run, len(names))
	for i, name := range names {
		var err error
		if runs[i], err = c.run(name); err != nil {
			return nil, err
		}
	}
	for _, candidate := range runs[1:] {
		if err := c.count(ctx, runs[0], candidate); err != nil {
			return nil, err
		}
	}
	cs, err := eval.Compare(runs[0], runs[1:], c.How)
	for i := range cs {
		if cs[i] = cs[i].Blind(); err == nil {
			err = cs[i].Part(ctx, c.Sessions)
		}
	}
	return cs, err
}

// count records a look at held-out tasks in the ledger.
func (c *comparisons) count(ctx context.Context, base, candidate eval.Run) error {
	if base.Split != eval.HeldOut && candidate.Split != eval.HeldOut {
		return nil
	}
	_, _, err := c.ledger().Add(ctx, c.Now, c.By, c.look("", base, candidate))
	return err
}

// look makes the entry for a look at held-out tasks.
func (c *comparisons) look(id string, base, candidate eval.Run) func(*eval.Book) (eval.Entry, error) {
	return func(b *eval.Book) (eval.Entry, error) {
		tried, err := eval.FolderIn(c.State).Tried(base.Suite)
		if err != nil {
			return eval.Entry{}, err
		}
		return b.Look(id, base, candidate, tried)
	}
}

// compare prints the comparison of candidates with a base.
func (c *comparisons) compare(ctx context.Context, names []string) error {
	cs, err := c.compared(ctx, names)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(c.Out, cs)
	}
	for i := range cs {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		c.printComparison(&cs[i])
	}
	return nil
}

// mostFlips is the number of flips shown on a terminal.
const mostFlips = 20

func (c *comparisons) printComparison(one *eval.Comparison) {
	fmt.Fprintf(c.Out, "%s against %s: %s\n", text.Line(one.Candidate.Config), text.Line(one.Base.Config), one.Verdict)
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(c.Out, "\n%s\n", title)
		}
		for _, line := range lines {
			fmt.Fprintf(c.Out, "  - %s\n", text.Line(line))
		}
	}
	list("Known:", one.Says.Known)
	list("Not known:", one.Says.Unknown)
	if len(one.Flips) == 0 {
		return
	}
	fmt.Fprintf(c.Out, "\nTasks that differ:\n")
	w := text.NewTable(c.Out, "  TASK", "BASE", "CANDIDATE", "SESSIONS PART AT")
	for i, f := range one.Flips {
		if i == mostFlips {
			w.Row(fmt.Sprintf("  and %d more; 'inspan eval report' lists all", len(one.Flips)-i))
			break
		}
		at := text.Line(f.Why)
		if f.Parting != nil {
			at = fmt.Sprintf("%s:%d %s:%d", f.Base.Session, f.Parting.Base.Seq, f.Candidate.Session, f.Parting.Candidate.Seq)
		}
		w.Row("  "+text.Line(f.Task), fmt.Sprintf("%d of %d", f.Base.Passed, f.Base.Tries),
			fmt.Sprintf("%d of %d", f.Candidate.Passed, f.Candidate.Tries), at)
	}
	_ = w.Flush() // to where the lines above went
}

// power prints what a comparison would find, before it costs anything. From a pilot run it takes how often
// trials of one task end differently.
func (c *comparisons) power(pilot string) error {
	d, power, effect := c.Design, c.How.Power, c.Effect
	d.Worst = true // it is unknown where the difference will be
	if pilot != "" {
		run, err := c.run(pilot)
		if err != nil {
			return err
		}
		if d.Disagree, err = eval.Disagreement(run); err != nil {
			return err
		}
	}
	smallest := d.Detectable(power)
	if c.JSON {
		return printJSON(c.Out, struct {
			stats.Design
			Power      float64 `json:"power"`
			Detectable float64 `json:"detectable,omitempty"`
			Effect     float64 `json:"effect,omitempty"`
			Found      float64 `json:"found,omitempty"`
			Needed     int     `json:"tasks_needed,omitempty"`
			Shape      string  `json:"worst_shape"`
		}{d, power, smallest, effect, d.Power(effect), d.TasksFor(effect, power), d.WorstShape(cmp.Or(effect, smallest)).Name})
	}
	finds := fmt.Sprintf("a difference of %.1f points", 100*smallest)
	if smallest == 0 {
		finds = "no difference, however large,"
	}
	fmt.Fprintf(c.Out, "%s with %s each, %.0f trials: finds %s in %.0f %% of comparisons.\n",
		text.Count(d.Tasks, "task"), text.Counted(d.Tries, "try", "tries"), float64(2*d.Tasks*d.Tries), finds, 100*power)
	if n := d.Fewest(); d.Tasks < n {
		fmt.Fprintf(c.Out, "It takes at least %s to find any.\n", text.Count(n, "task"))
	}
	if effect != 0 {
		fmt.Fprintf(c.Out, "A difference of %.1f points is found in %.0f %%.\n", 100*effect, 100*d.Power(effect))
		if n := d.TasksFor(effect, power); n > 0 {
			fmt.Fprintf(c.Out, "To find it in %.0f %% takes %s.\n", 100*power, text.Count(n, "task"))
		}
	}
	if look := cmp.Or(effect, smallest); look != 0 {
		alike := d
		alike.Worst = false
		fmt.Fprintf(c.Out, "That is the worst of three shapes, a difference %s. In all tasks alike, %.1f points would be found.\n",
			d.WorstShape(look).Name, 100*alike.Detectable(power))
	}
	fmt.Fprintf(c.Out, "Equal configurations are called different in at most %g %%. "+
		"One trial of each ends differently on %.0f %% of the tasks.\n", 100*d.Alpha, 100*d.Disagree)
	if d.Tasks < stats.FewTasks && d.Tries > 1 {
		fmt.Fprintf(c.Out, "With fewer than %d tasks this promises too much.\n", stats.FewTasks)
	}
	return nil
}
