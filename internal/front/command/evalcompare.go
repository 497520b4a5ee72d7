package command

import (
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

// evalComparisons are the subcommands of eval about runs that have ended, and what is learned of them.
func evalComparisons(c *command) []*cobra.Command {
	return []*cobra.Command{c.evalCompare(), c.evalReport(), c.evalDiff(), c.evalGate(), c.evalPower(), c.evalExport(), c.evalLearn()}
}

// performed is what a command does.
type performed = func(cmd *cobra.Command, args []string) error

// comparing is a command about runs, once the settings are read.
func (c *command) comparing(ask *console.Comparisons, do performed) performed {
	return func(cmd *cobra.Command, args []string) error {
		a, err := app.Load(c.self)
		if err != nil {
			return err
		}
		ask.State, ask.Sessions, ask.Out, ask.Now, ask.By = a.Running.StateDir, a.Store(), cmd.OutOrStdout(), time.Now(), "a person"
		if who, err := user.Current(); err == nil {
			ask.By = who.Username
		}
		return do(cmd, args)
	}
}

// rates are the flags that all comparisons have.
func rates(cmd *cobra.Command, ask *console.Comparisons) {
	fl := cmd.Flags()
	rateFlag(fl, &ask.How.Alpha, "alpha", 0.05, "`rate` at which equal configurations may be called different")
	rateFlag(fl, &ask.How.Power, "power", 0.8, "`rate` at which a promised difference is found")
}

// looksFlag adds the flag for looks. More than the most of them would find no more.
func looksFlag(cmd *cobra.Command, looks *int) {
	const mostLooks = 100
	countFlag(cmd.Flags(), looks, "looks", 1, mostLooks, "look this `number` of times while the candidate runs; 1: at the end")
}

func partialFlag(cmd *cobra.Command, ask *console.Comparisons) {
	cmd.Flags().BoolVar(&ask.How.Partial, "partial", false, "judge by what has ended, if trials of a run are missing")
}

func (c *command) evalCompare() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{
		Use:   "compare BASE CANDIDATE [CANDIDATE ...]",
		Short: "Say which of two runs is better, and how sure that is",
		Long: "BASE and CANDIDATE are runs of the same suite: ids or folders. Only tasks that both have count. inspan sets trials\n" +
			"aside whose infrastructure failed. The verdict is an exact test over whole tasks. With several candidates, inspan\n" +
			"corrects the error rate for their number.\n\n" +
			"A run that has not ended has no verdict. With --looks you may compare while the candidate still runs, and stop early:\n" +
			"always give the same number. --partial judges by what has ended.\n" +
			"Of held-out tasks inspan shows only the verdict, and counts the look in the ledger of 'inspan eval learn'.\n" +
			"docs/EVALUATION.md explains the numbers.",
		Example: "  inspan eval compare baseline candidate\n  inspan eval compare baseline candidate --looks 5",
		Args:    exactly(2, 100, "a BASE and one or more CANDIDATEs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error { return ask.Compare(cmd.Context(), args) })
	rates(cmd, &ask)
	looksFlag(cmd, &ask.How.Looks)
	partialFlag(cmd, &ask)
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalReport() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{
		Use:     "report BASE CANDIDATE [CANDIDATE ...]",
		Short:   "Write a comparison as a page of HTML, as Markdown or as JSON",
		Long:    "The report has everything that 'inspan eval compare' knows. The page of HTML is one file that loads nothing.",
		Example: "  inspan eval report baseline candidate --format html --out report.html",
		Args:    exactly(2, 100, "a BASE and one or more CANDIDATEs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error { return ask.Report(cmd.Context(), args) })
	rates(cmd, &ask)
	looksFlag(cmd, &ask.How.Looks)
	cmd.Flags().StringVar(&ask.Format, "format", "md", "`format` of the report: md, html or json")
	cmd.Flags().StringVar(&ask.Pages, "web", "", "link events to this `address` of inspan web, such as http://127.0.0.1:8080")
	cmd.Flags().StringVar(&ask.File, "out", "", "`file` to write (default: print it)")
	return cmd
}

func (c *command) evalDiff() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{
		Use:   "diff SESSION SESSION",
		Short: "Show the first event where two sessions part",
		Long: "inspan compares calls with their arguments, how they ended, answers and messages. Times and ids do not count. Models put\n" +
			"the same thing differently, so their words count only if everything else is the same.",
		Args: exactly(2, 2, "two SESSIONs"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error { return ask.Diff(cmd.Context(), args[0], args[1]) })
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalGate() *cobra.Command {
	var ask console.Comparisons
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
		code, err := ask.Gate(cmd.Context(), args[0], args[1])
		if err == nil {
			c.code = code
		}
		return err
	})
	rates(cmd, &ask)
	partialFlag(cmd, &ask)
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalPower() *cobra.Command {
	var ask console.Comparisons
	d, power, pilot := &ask.Design, &ask.How.Power, ""
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Say which difference a comparison would find, before you pay for it",
		Long: "Differences are shares of the tasks: 0.08 is 8 points. --disagree is how often one trial of each configuration ends\n" +
			"differently on a task. With --pilot inspan takes it from a run that has tried each task several times.",
		Example: "  inspan eval power --tasks 89\n  inspan eval power --tasks 89 --tries 5 --effect 0.08\n" +
			"  inspan eval power --tries 3 --pilot baseline",
		Args: exactly(0, 0, "no arguments"),
	}
	cmd.RunE = c.comparing(&ask, func(*cobra.Command, []string) error {
		if d.Spread > 0 && d.Tries == 1 {
			return misused("--spread needs --tries of at least 2: with one try it can't be told from chance")
		}
		return ask.Power(pilot)
	})
	fl := cmd.Flags()
	countFlag(fl, &d.Tasks, "tasks", 100, 100_000, "`number` of tasks")
	countFlag(fl, &d.Tries, "tries", 1, 1000, "`number` of tries of each task, under each configuration")
	rateFlag(fl, &d.Disagree, "disagree", 0.2, "`share` of the tasks on which one trial of each ends differently")
	numberFlag(fl, &d.Spread, "spread", 0, 0, 1, "standard `deviation` of the difference between tasks")
	rateFlag(fl, &d.Alpha, "alpha", 0.05, "`rate` at which equal configurations may be called different")
	rateFlag(fl, power, "power", 0.8, "`rate` at which the difference is to be found")
	numberFlag(fl, &ask.Effect, "effect", 0, -1, 1, "`difference` to find; inspan says how often and with how many tasks")
	looksFlag(cmd, &d.Looks)
	fl.StringVar(&pilot, "pilot", "", "`run` to take --disagree from")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalExport() *cobra.Command {
	var ask console.Comparisons
	shape := ""
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write the trials of a run as leaderboards and other tools take them",
		Long: "harbor: the folder of a job, with result.json, trajectory.json and reward.txt of each trial.\n" +
			"jsonl: a line for each trial, with what the run is.\n" +
			"swe-bench: predictions, one for each task: the patch of its first try that did not break.\n\n" +
			"To export held-out tasks is a look at them, which counts in the ledger of 'inspan eval learn'.",
		Example: "  inspan eval export last --as swe-bench --out predictions.jsonl\n  inspan eval export last --as harbor --out jobs/mine",
		Args:    exactly(1, 1, "a RUN"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error {
		return ask.Export(cmd.Context(), args[0], shape, cmd.ErrOrStderr())
	})
	cmd.Flags().StringVar(&shape, "as", "jsonl", "`shape`: harbor, jsonl or swe-bench")
	cmd.Flags().StringVar(&ask.File, "out", "", "new `file` or, for harbor, folder to write (default: print it)")
	return cmd
}
