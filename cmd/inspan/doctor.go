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
		Long: "Check whether inspan can work in this folder. Each provider that is ready is asked for one word, which costs a few tokens, and MCP servers\n" +
			"are started; --offline leaves that out.\n\n" +
			"'inspan doctor sandbox' tries every wall around commands.",
		Args: exactly(0, 0, "no arguments, or sandbox"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tell(cmd.OutOrStdout(), doctor.Run(cmd.Context(), c.self, !offline))
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "ask no provider, start no server")
	cmd.AddCommand(&cobra.Command{
		Use:   "sandbox",
		Short: "Prove the walls around commands by trying to get through them",
		Long: "Try to write, to reach a network, to read secrets, to signal others and more from inside each box, in a folder made for it. Each\n" +
			"attempt is also made without walls, where it must succeed: a wall is only proven where there is something behind it.",
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
