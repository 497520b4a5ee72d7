package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/doctor"
)

func (c *command) doctor() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check settings, keys, providers, disk and programs",
		Long:  "Check whether inspan can work here. Each provider that is ready is asked for one word, which costs a few tokens; --offline leaves that out.",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bad := 0
			for _, f := range doctor.Run(cmd.Context(), c.self, !offline) {
				if f.State == doctor.Bad {
					bad++
				}
				line := fmt.Sprintf("%-8s %-20s %s", f.State, f.Check, console.OneLine(f.Found, 300))
				if f.Elapsed > 0 {
					line += fmt.Sprintf(" (%v)", f.Elapsed.Round(time.Millisecond))
				}
				fmt.Fprintln(cmd.OutOrStdout(), line)
				if f.Remedy != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "%-29s → %s\n", "", console.OneLine(f.Remedy, 300))
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d problems found", bad)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "ask no provider")
	return cmd
}
