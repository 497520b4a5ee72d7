package main

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/setup"
)

func (c *command) doctor() *cobra.Command {
	var offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check settings, providers, sandbox, servers, tools, memory and programs",
		Long: "inspan asks each ready provider for one word, which costs a few tokens, and starts the MCP servers.\n" +
			"--offline skips both. 'inspan doctor sandbox' tests the sandbox.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.Print(cmd.OutOrStdout(), setup.Doctor(cmd.Context(), c.self, "", !offline))
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
			return setup.Print(cmd.OutOrStdout(), setup.Sandbox(cmd.Context(), c.self))
		},
	})
	return cmd
}
