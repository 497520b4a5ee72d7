package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/acp"
)

func (c *command) acp() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Work in an editor, over the Agent Client Protocol",
		Long: "Speak the Agent Client Protocol over standard input and output, for editors that start agents: Zed, JetBrains, Neovim, Emacs.\n" +
			"A session that begins in the editor goes on in a terminal with 'inspan resume ID', and the other way round.",
		Example: "  inspan acp                    # what the editor is told to run\n  inspan acp --mode plan",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			a, root, err := c.at(f.cwd)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			s := &acp.Server{App: a, Options: f.Options, Root: root, Log: c.console.Err}
			return s.Serve(ctx, c.in, c.console.Out)
		},
	}
	f.add(cmd)
	f.addNew(cmd)
	return cmd
}
