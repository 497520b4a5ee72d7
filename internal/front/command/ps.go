package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) ps() *cobra.Command {
	var asJSON bool
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List running sessions and kept commands",
		Long: "inspan lists each session that a process drives now, with its subagents below it, and those that are open in a terminal. " +
			"A session works, asks, waits for its model, or is idle until somebody sends it a message.\n" +
			"Stopped sessions are in 'inspan sessions list'. A session that asks is listed wherever it runs; 'inspan attach' or 'inspan send' " +
			"answers it.\n" +
			"A command that still runs after its session ended is \"kept\". 'inspan stop' with the session's id ends it.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, r, err := c.load(&f)
			if err != nil {
				return err
			}
			return printDriven(cmd, a, r != nil, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	f.add(cmd)
	return cmd
}

// printDriven prints the sessions that run, here or away on a server.
func printDriven(cmd *cobra.Command, a *app.App, away, asJSON bool) error {
	list, err := a.Running.List(cmd.Context())
	if err == nil && !away {
		list, err = a.Running.WithServices(a.Running.WithOpen(cmd.Context(), list))
	}
	switch {
	case err != nil:
		return err
	case asJSON:
		return console.Indented(cmd.OutOrStdout(), list)
	case len(list) == 0:
		fmt.Fprintln(cmd.ErrOrStderr(), "no session is running; start one with: "+words.Command(a.Running.Server, "run", "--detach", `"..."`))
		return nil
	}
	return console.Running(cmd.OutOrStdout(), list)
}

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

// one loads the settings and finds the session that the text means, to change it.
func (c *command) one(ctx context.Context, text string) (*app.App, string, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, "", err
	}
	id, err := a.Running.Here(ctx, text)
	return a, id, err
}

// seen is one for what only looks at the session.
func (c *command) seen(ctx context.Context, text string) (*app.App, string, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, "", err
	}
	id, err := a.Running.Seen(ctx, text)
	return a, id, err
}
