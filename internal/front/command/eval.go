package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func newEvalCommand(c *command) *cobra.Command {
	tries := []*cobra.Command{
		c.evalValidate(), c.evalRun(), c.evalResume(), c.evalList(), c.evalShow(), c.evalLabel(), c.evalCalibrate(),
	}
	return group("eval", "Measure configurations of inspan on tasks with checkers", append(tries, evalComparisons(c)...)...)
}

// evaluated is a command of eval, once the settings are read.
func (c *command) evaluated(e *console.Eval, do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := app.Load(c.self)
		if err != nil {
			return err
		}
		e.Table, e.Program, e.Version, e.Out, e.Err = a.Running, c.program(), inspan.Version, cmd.OutOrStdout(), cmd.ErrOrStderr()
		return do(cmd, args)
	}
}

func (c *command) evalValidate() *cobra.Command {
	var e console.Eval
	cmd := &cobra.Command{
		Use:   "validate SUITE",
		Short: "Check a suite, and print its digest",
		Long: "A SUITE is a folder of tasks, one task, a folder of .txt files, or a .jsonl file. docs/EVALUATION.md describes the formats.\n" +
			"With --pin inspan writes the digest into suite.toml. A suite that changes afterwards is refused.",
		Args: exactly(1, 1, "a SUITE"),
		RunE: c.evaluated(&e, func(_ *cobra.Command, args []string) error { return e.Validate(args[0]) }),
	}
	cmd.Flags().BoolVar(&e.Pin, "pin", false, "write the digest into suite.toml")
	cmd.Flags().StringVar(&e.Repos, "repos", "", "`folder` with clones of the repositories that rows of SWE-bench name")
	return cmd
}

func (c *command) evalRun() *cobra.Command {
	var e console.Eval
	cmd := &cobra.Command{
		Use:   "run SUITE",
		Short: "Try the tasks of a suite with one configuration",
		Long: "Each trial is a session of its own, in its own process and workspace. Its labels name the run, the task and the try.\n" +
			"The checker runs after the process has exited.\n" +
			"A run that was interrupted or killed continues with 'inspan eval resume'.\n" +
			"Trials have a home of their own: your instructions, skills and memory are not in it, only what --proposal lends them.\n" +
			"Failures of the infrastructure do not count as failures of the agent: inspan tries the task again, up to three times.",
		Example: "  inspan eval run suites/mine --config strong.toml --mode auto --jobs 4 --budget 20\n" +
			"  inspan eval run suites/mine --split held-out --tries 5\n" +
			"  inspan eval run suites/mine --proposal 0123456789ab",
		Args: exactly(1, 1, "a SUITE"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			if err := (app.Options{Mode: e.Mode}).Check(); err != nil {
				return err
			}
			if e.Jobs < 1 || e.Tries < 1 {
				return misused("--jobs and --tries must be 1 or more")
			}
			ctx, stop := signals(cmd.Context())
			defer stop()
			return e.Run(ctx, args[0])
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&e.Config, "config", "", "settings `file` of the trials (default: your own settings)")
	fl.StringVar(&e.With, "proposal", "", "`proposal` of 'inspan eval learn' whose change all trials have: in a file of their workspaces, or in their settings")
	fl.StringVar(&e.Without, "without", "", "`proposal` whose file or settings all trials have as they are without the change, to compare")
	fl.StringVar(&e.Model, "model", "", "model as `provider/model` (default: as the settings have it)")
	fl.StringVar((*string)(&e.Mode), "mode", "", "permission `mode` of the trials (default: as the settings have it)")
	fl.StringVar(&e.Split, "split", "", "`split` to try: train, dev or held-out (default: all that is not held out)")
	fl.StringArrayVar(&e.Only, "task", nil, "`glob` over the ids of tasks to try; repeatable")
	fl.IntVar(&e.Tries, "tries", 1, "`number` of trials of each task")
	fl.BoolVar(&e.Visible, "visible", false, "allow a run in which the agent can see the checkers")
	fl.BoolVar(&e.Outside, "open-checks", false, "allow checkers that run without the sandbox (open = true)")
	fl.StringVar(&e.Repos, "repos", "", "`folder` with clones of the repositories that rows of SWE-bench name")
	addEvalBounds(cmd, &e)
	return cmd
}

// addEvalBounds declares the flags of what performs a run.
func addEvalBounds(cmd *cobra.Command, e *console.Eval) {
	fl := cmd.Flags()
	fl.IntVar(&e.Jobs, "jobs", 1, "`number` of trials at the same time")
	fl.Var((*dollars)(&e.Budget), "budget", "maximum cost of the run in US `dollars`; 0 means no limit")
	fl.DurationVar(&e.Time, "time", 0, "maximum `time` of the run, such as 2h; 0 means no limit")
	fl.BoolVar(&e.Fresh, "fresh", false, "try every task, also what was tried before with the same content")
	fl.BoolVar(&e.Keep, "keep", false, "leave the workspaces of the trials in the folder for temporary files")
	fl.BoolVar(&e.JSON, "json", false, "print JSON")
}

func (c *command) evalResume() *cobra.Command {
	var e console.Eval
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was interrupted or killed",
		Long: "The run keeps its --budget, --time and --fresh, unless you give another budget or time. The time counts anew.\n" +
			"A run that has used up its budget continues only with a larger one.",
		Args: exactly(1, 1, "a RUN"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			ctx, stop := signals(cmd.Context())
			defer stop()
			if cmd.Flags().Changed("time") {
				e.Time = cmp.Or(e.Time, -1)
			}
			return e.Resume(ctx, args[0])
		}),
	}
	addEvalBounds(cmd, &e)
	return cmd
}

func (c *command) evalList() *cobra.Command {
	var e console.Eval
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs",
		Args:  exactly(0, 0, "no arguments"),
		RunE:  c.evaluated(&e, func(*cobra.Command, []string) error { return e.List() }),
	}
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalShow() *cobra.Command {
	var e console.Eval
	var watch bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show the trials of a run; those of held-out tasks are only counted",
		Args:  exactly(1, 1, "a RUN"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			if !watch {
				return e.Show(args[0])
			}
			ctx, stop := signals(cmd.Context())
			defer stop()
			return e.Watch(ctx, args[0], drawable(e.Out))
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show how all trials stand, until the run has ended")
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}

func (c *command) evalLabel() *cobra.Command {
	var e console.Eval
	return &cobra.Command{
		Use:   "label RUN TASK TRY pass|fail",
		Short: "Say yourself whether a trial passed, to calibrate graders",
		Args:  exactly(4, 4, "a RUN, a TASK, a TRY, and pass or fail"),
		RunE: c.evaluated(&e, func(cmd *cobra.Command, args []string) error {
			return e.Label(cmd.Context(), args[0], args[1], args[2], args[3])
		}),
	}
}

func (c *command) evalCalibrate() *cobra.Command {
	var e console.Eval
	cmd := &cobra.Command{
		Use:   "calibrate RUN",
		Short: "Show how far graders agree with the labels of people",
		Args:  exactly(1, 1, "a RUN"),
		RunE:  c.evaluated(&e, func(_ *cobra.Command, args []string) error { return e.Calibrate(args[0]) }),
	}
	cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	return cmd
}
