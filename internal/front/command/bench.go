package command

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) bench() *cobra.Command {
	var b console.Bench
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure inspan from outside, beside other agents that are installed",
		Long: "inspan starts itself, and claude, codex, gemini, opencode and pi where they are in PATH, against a scripted model\n" +
			"on this machine. It measures start, turns, memory, kill -9 and resume, and long sessions. All take turns, so that\n" +
			"other load meets all alike. inspan says what it runs.\n" +
			"No agent asks before it runs a command, and only inspan-auto, which is inspan in mode auto, uses a sandbox.\n" +
			"The commands of the model only write into new folders. Nothing of yours is read or changed, and no real model is asked.\n" +
			"docs/BENCHMARKS.md explains the figures.",
		Example: "  inspan bench\n  inspan bench --runs 20 --only inspan --only codex --json",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signals(cmd.Context())
			defer stop()
			b.Program = c.program()
			return b.Print(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	const mostRuns = 1000
	countFlag(cmd.Flags(), &b.Runs, "runs", 5, mostRuns, "`number` of runs of each agent that count")
	cmd.Flags().StringArrayVar(&b.Only, "only", nil, "`name` of an agent to measure; repeatable (default: all)")
	cmd.Flags().BoolVar(&b.JSON, "json", false, "print JSON")
	return cmd
}
