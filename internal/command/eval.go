package command

import "github.com/spf13/cobra"

func newEvalCommand(c *command) *cobra.Command {
	return group("eval", "Measure configurations of inspan on tasks with checkers", evalComparisons(c)...)
}
