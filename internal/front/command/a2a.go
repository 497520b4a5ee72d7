package command

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/a2a"
	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) a2a() *cobra.Command {
	var f serveFlags
	var here bool
	cmd := &cobra.Command{
		Use:   "a2a",
		Short: "Take tasks from other agents over the Agent2Agent protocol",
		Long: "inspan speaks protocol version 1.0. Each task is a session, so tasks outlast the server.\n" +
			"A call that asks waits for an answer from the other agent, or for 'inspan send --allow'.\n\n" + console.ModesHelp(),
		Example: "  inspan a2a --mode auto --listen 127.0.0.1:8766",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.served(cmd.Context(), &f)
			if err != nil {
				return err
			}
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			s := &a2a.Server{Host: a.Host(f.Options, c.warn), Root: f.cwd, DecideHere: here}
			return f.Serve(ctx, a2a.Gate(), s.Handler(), s.Close)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&here, "decide-here", false, "other agents can't approve calls; only 'inspan send --allow' can")
	cmd.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:0", "`address` to listen on")
	return cmd
}
