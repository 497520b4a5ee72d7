package command

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) logs() *cobra.Command {
	var follow bool
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the transcript of a session; -f follows it",
		Long: "Without -f this prints the same as 'inspan sessions show', all of it to standard output. With -f it follows the run " +
			"until it stops, and exits with the run's code.",
		Args: exactly(1, 1, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.url != "" {
				a, r, id, err := c.found(cmd.Context(), &f, args[0])
				if err != nil {
					return err
				}
				if !follow {
					return c.console.Show(r.Events(cmd.Context(), id), false)
				}
				t, err := r.Task(cmd.Context(), id)
				if err != nil {
					return err
				}
				return c.watchAway(cmd.Context(), a, r, t, id, console.Attachment{Whole: true, Reads: true})
			}
			a, id, err := c.seen(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !follow {
				return c.console.Show(a.Store().Events(cmd.Context(), id), false)
			}
			return c.watch(cmd.Context(), a, id, console.Attachment{Whole: true, Reads: true})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow until the run stops")
	f.add(cmd)
	return cmd
}
