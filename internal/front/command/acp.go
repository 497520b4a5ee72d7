package command

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/acp"
)

func (c *command) acp() *cobra.Command {
	var f runFlags
	var setUp bool
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve an editor over the Agent Client Protocol",
		Long: "The editor (Zed, JetBrains, Neovim, Emacs) starts this command and talks to it over standard input and output.\n" +
			"You can continue a session of the editor in a terminal with 'inspan resume ID', and the other way round.",
		Example: "  inspan acp                    # the command to set in the editor\n  inspan acp --mode plan",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if setUp {
				return c.setUpForEditor(cmd)
			}
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
	setUpFlag(cmd, &setUp)
	_ = cmd.Flags().MarkHidden("output") // the editor gets the protocol
	return cmd
}
