package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/doctor"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) doctor() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check settings, providers, sandbox, servers, tools, memory and programs",
		Long: "inspan asks each ready provider for one word, which costs a few tokens, and starts the MCP servers.\n" +
			"--offline skips both. 'inspan doctor sandbox' tests the sandbox.",
		Args: exactly(0, 0, "no arguments, or sandbox"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tell(cmd.OutOrStdout(), doctor.Run(cmd.Context(), c.self, !offline))
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "contact no provider and start no server")
	cmd.AddCommand(&cobra.Command{
		Use:   "sandbox",
		Short: "Test the sandbox by trying to escape from it",
		Long: "Inside each box, inspan tries to write, to use the network, to read secrets, to signal other processes and more.\n" +
			"It makes each attempt without a box too, where it must succeed. Otherwise the test would prove nothing.\n" +
			"All of this happens in a folder made for the test.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tell(cmd.OutOrStdout(), doctor.Sandbox(cmd.Context(), c.self))
		},
	})
	return cmd
}

// tell prints findings. Problems are an error.
func tell(out io.Writer, findings []doctor.Finding) error {
	bad, width := 0, 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	for _, f := range findings {
		if f.State == doctor.Bad {
			bad++
		}
		line := fmt.Sprintf("%-8s %-*s %s", f.State, width, f.Check, words.OneLine(f.Found, 2000))
		if f.Elapsed > 0 {
			line += fmt.Sprintf(" (%v)", f.Elapsed.Round(time.Millisecond))
		}
		fmt.Fprintln(out, line)
		if f.Remedy != "" {
			fmt.Fprintf(out, "%-*s → %s\n", width+9, "", words.OneLine(f.Remedy, 300))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d problems found", bad)
	}
	return nil
}
