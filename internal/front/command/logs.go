package command

import (
	"iter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
)

func (c *command) logs() *cobra.Command {
	var follow bool
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the transcript of a session; -f follows it",
		Long: "Without -f this prints the same as 'inspan sessions show' and the open questions, all of it to standard output. With -f it follows the run " +
			"until it stops, and exits with the run's code.",
		Args: exactly(1, 1, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.url != "" {
				a, r, id, err := c.found(cmd.Context(), &f, args[0])
				if err != nil {
					return err
				}
				if !follow {
					return c.printLog(cmd, a, id, r.Events(cmd.Context(), id))
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
				return c.printLog(cmd, a, id, a.Store().Events(cmd.Context(), id))
			}
			return c.watch(cmd.Context(), a, id, console.Attachment{Whole: true, Reads: true})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow until the run stops")
	f.add(cmd)
	return cmd
}

// printLog prints a transcript, and the open questions of its session after it.
func (c *command) printLog(cmd *cobra.Command, a *app.App, id string, events iter.Seq2[event.Event, error]) error {
	if err := c.console.Show(events, false); err != nil {
		return err
	}
	st, err := a.Running.Status(cmd.Context(), id)
	if err != nil {
		return nil //nolint:nilerr // this version can show the session and not continue it, so nothing can be answered
	}
	return printQuestions(cmd.OutOrStdout(), a.Running.Server, id, running.Questions(st))
}
