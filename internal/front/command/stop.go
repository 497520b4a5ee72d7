package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (c *command) stop() *cobra.Command {
	var now bool
	var f remoteFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop the run of a session, and its kept commands",
		Long: "inspan interrupts the run, as Ctrl-C does, and waits until it has stopped. Queued messages wait for 'inspan resume'.\n" +
			"If the run does not stop in time, or with --now, inspan ends its process and kills it 2 seconds later.\n" +
			"Finished calls are never lost. For a subagent, only its run is interrupted.\n" +
			"inspan also ends the session's kept commands with all their processes.\n" +
			"With --remote an open task stays open when its run stops; if it is idle, stop closes it.",
		Args: exactly(1, 1, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, r, id, err := c.found(cmd.Context(), &f, args[0])
			if err != nil {
				return err
			}
			if r != nil && now {
				return misused("--now ends a process of this machine; with --remote the server decides that")
			}
			if r != nil {
				return c.stopAway(cmd, a, r, id, wait)
			}
			what, err := a.Running.Stop(cmd.Context(), id, now, wait)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", id, what)
			return nil
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "end the process at once")
	f.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait for the run to stop, such as `10s`")
	return cmd
}
