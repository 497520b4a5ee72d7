package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) evalLearn() *cobra.Command {
	return group("learn", "Improve by small changes that earn their place on held-out tasks",
		c.learnFailures(), c.learnPropose(), c.learnList(), c.learnShow(), c.learnTry(), c.learnPromote(), c.learnCanary(),
		c.learnArm(), c.learnWatch(),
		c.learnKeep(), c.learnWithdraw())
}

// learned is what such a command does.
type learned = func(ctx context.Context, ask *console.Comparisons, args []string) error

// learning is a command about one proposal, which may be shortened, or "last".
func (c *command) learning(use, short, long string, args int, do learned) *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: exactly(args, args, "a PROPOSAL, as '"+use+"' shows")}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) (err error) {
		if args[0], err = ask.Named(args[0]); err != nil {
			return err
		}
		return do(cmd.Context(), &ask, args)
	})
	return cmd
}

func (c *command) learnFailures() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{
		Use:     "failures RUN",
		Short:   "Print what failed trials did, for you or a model to draw a proposal from",
		Long:    "Each line has the session and the number of the event, which a proposal names with --from. inspan refuses held-out runs.",
		Example: "  inspan eval learn failures baseline | inspan -p \"Propose one small change of AGENTS.md against these\"",
		Args:    exactly(1, 1, "a RUN"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) error { return ask.Failures(cmd.Context(), args[0]) })
	return cmd
}

func (c *command) learnPropose() *cobra.Command {
	var ask console.Comparisons
	var p console.Proposing
	cmd := &cobra.Command{
		Use:   "propose FILE",
		Short: "Propose a small change of a file, with the sessions it was drawn from",
		Long: "FILE is an instruction, a skill, a memory or a setting of this workspace; --to has its new content. Nothing changes yet:\n" +
			"try the proposal on dev tasks, promote it on held-out ones, give it to a share of the sessions, then keep it.",
		Example: "  inspan eval learn propose AGENTS.md --to new.md --from 20261127-abc:14,20 \\\n" +
			"    --why \"says it is done without testing\"",
		Args: exactly(1, 1, "a FILE"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, args []string) (err error) {
		if p.To == "" || p.Why == "" {
			return misused("propose needs --to and --why")
		}
		if p.Root, err = workspace("."); err != nil {
			return err
		}
		p.File = args[0]
		return ask.Propose(cmd.Context(), p)
	})
	fl := cmd.Flags()
	fl.StringVar(&p.To, "to", "", "`file` with the new content")
	fl.StringVar(&p.Why, "why", "", "`reason`: the failure that it is to prevent")
	fl.StringVar(&p.By, "by", "", "`name` of the person or the model that wrote it (default: you); hand: your own idea, drawn from no session")
	fl.StringArrayVar(&p.From, "from", nil, "`SESSION:EVENT,...` that it was drawn from; repeatable")
	return cmd
}

func (c *command) learnList() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{Use: "list", Short: "List proposals and how far each has come", Args: exactly(0, 0, "no arguments")}
	cmd.RunE = c.comparing(&ask, func(*cobra.Command, []string) error { return ask.Learned() })
	cmd.Flags().BoolVar(&ask.JSON, "json", false, "print the ledger as JSON")
	return cmd
}

func (c *command) learnShow() *cobra.Command {
	return c.learning("show PROPOSAL", "Show a proposal, where it is from and what became of it", "", 1,
		func(_ context.Context, ask *console.Comparisons, args []string) error { return ask.Told(args[0]) })
}

// untied is a command about two runs, which may also not show that they differ in the proposal alone.
func (c *command) untied(use, short, long string, do learned) *cobra.Command {
	unchecked := false
	cmd := c.learning(use, short, long, 3, func(ctx context.Context, ask *console.Comparisons, args []string) error {
		ask.Unchecked = unchecked
		return do(ctx, ask, args)
	})
	cmd.Flags().BoolVar(&unchecked, "unchecked", false, "take runs that don't show that they differ in this change alone; the ledger says so")
	return cmd
}

func (c *command) learnTry() *cobra.Command {
	return c.untied("try PROPOSAL BASE CANDIDATE", "Compare a proposal on dev tasks",
		"BASE and CANDIDATE are runs of dev tasks: 'inspan eval run SUITE --without PROPOSAL' and '--proposal PROPOSAL'.",
		func(ctx context.Context, ask *console.Comparisons, args []string) error {
			return ask.Try(ctx, args[0], args[1], args[2])
		})
}

func (c *command) learnPromote() *cobra.Command {
	return c.untied("promote PROPOSAL BASE CANDIDATE", "Look at held-out tasks once, and promote the proposal if it is better",
		"BASE and CANDIDATE are runs of held-out tasks, as for 'try'. The look counts, whatever comes of it: all looks at a suite share an error\n"+
			"rate of 5 %, and each gets less than the one before. inspan shows only the verdict.",
		func(ctx context.Context, ask *console.Comparisons, args []string) error {
			return ask.Promote(ctx, args[0], args[1], args[2])
		})
}

func (c *command) learnCanary() *cobra.Command {
	var share float64
	cmd := c.learning("canary PROPOSAL", "Give a promoted change to a share of new sessions", "", 1,
		func(ctx context.Context, ask *console.Comparisons, args []string) error {
			return ask.Canary(ctx, args[0], share)
		})
	rateFlag(cmd.Flags(), &share, "share", 0.2, "`share` of the sessions that get it")
	return cmd
}

func (c *command) learnArm() *cobra.Command {
	var into string
	cmd := c.learning("arm PROPOSAL KEY", "Say whether a new session gets a change",
		"KEY names the session or its task. The same key has the same answer: with, or without. Label the session with it, so that\n"+
			"'inspan eval learn watch' can compare the two.", 2,
		func(_ context.Context, ask *console.Comparisons, args []string) error {
			return ask.Arm(args[0], args[1], into)
		})
	cmd.Flags().StringVar(&into, "into", "", "make the change in this `folder`, the session's own copy of the workspace, if it gets it")
	return cmd
}

func (c *command) learnWatch() *cobra.Command {
	var ask console.Comparisons
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Compare sessions with and without each change, and roll back the changes that do harm",
		Long: "A session speaks against a change if its work was undone, a call was denied, somebody interrupted it, it failed, or\n" +
			"the same task was run again. You may watch as often as you like, for example with 'inspan schedule'.",
		Args: exactly(0, 0, "no arguments"),
	}
	cmd.RunE = c.comparing(&ask, func(cmd *cobra.Command, _ []string) error { return ask.Watch(cmd.Context()) })
	return cmd
}

func (c *command) learnKeep() *cobra.Command {
	return c.learning("keep PROPOSAL", "Make a change in its workspace, for all sessions", "", 1,
		func(ctx context.Context, ask *console.Comparisons, args []string) error {
			return ask.Keep(ctx, args[0])
		})
}

func (c *command) learnWithdraw() *cobra.Command {
	var why string
	cmd := c.learning("withdraw PROPOSAL", "Take a proposal back, and its change out of the workspace", "", 1,
		func(ctx context.Context, ask *console.Comparisons, args []string) error {
			return ask.Withdraw(ctx, args[0], why)
		})
	cmd.Flags().StringVar(&why, "why", "", "`reason`")
	return cmd
}
