package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (c *command) team() *cobra.Command {
	var assign string
	cmd := &cobra.Command{
		Use:   "team [ID]",
		Short: "Show the team of a session: its members with their work, cost and open questions, and its tasks",
		Long: "Without an ID, inspan shows the last session of this folder.\n" +
			"Speak to a member with 'inspan send' and its session, pause it with --cancel there.",
		Example: "  inspan agents team last\n  inspan agents team --assign 3=scout last",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.installation()
			if err != nil {
				return err
			}
			id, err := sessionOf(cmd, a, args)
			if err != nil {
				return err
			}
			if task, name, given := strings.Cut(assign, "="); assign != "" {
				if !given {
					return misused("--assign: write it as TASK=NAME or TASK=all")
				}
				if err := a.Assign(cmd.Context(), id, task, name); err != nil {
					return fmt.Errorf("--assign: %w", err)
				}
			}
			board, err := a.Team(cmd.Context(), id)
			if err != nil {
				return err
			}
			return board.Write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&assign, "assign", "", "give a task to a member, or to all: `TASK=NAME`, TASK=all")
	return cmd
}
