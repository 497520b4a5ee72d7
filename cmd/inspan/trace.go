package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/listing"
)

func (c *command) trace() *cobra.Command {
	return group("trace", "Show what sessions did when, from their logs alone", c.traceShow())
}

func (c *command) traceShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Draw requests, calls and waits of a session on a time line",
		Long: "Every run has a time line of its own. Agents of a session are drawn where they worked for it.\n" +
			"Of a request to a model the light part is the time to the first of its reply. Dots are waits: for a person, or before\n" +
			"a request is sent again.",
		Example: "  inspan trace show\n  inspan trace show --json last | jq '.spans[] | select(.kind == \"call\")'",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			t, err := listing.TraceOf(cmd.Context(), a.Store(), id)
			switch {
			case err != nil:
				return err
			case asJSON:
				return listing.JSON(cmd.OutOrStdout(), t)
			}
			return listing.Waterfall(cmd.OutOrStdout(), t, width(cmd.OutOrStdout()), time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
