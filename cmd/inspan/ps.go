package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/listing"
)

func (c *command) ps() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the sessions that run now, in whatever terminal or in none, and what goes on of others",
		Long: "List the sessions that a process drives now, and below each those that work for it. A session works, asks, or waits for its model.\n" +
			"One that stopped or whose process died is not there; 'inspan sessions list' has all. A run in another terminal is not there while it asks: it is answered there.\n" +
			"A command that goes on after its session has ended is \"kept\"; 'inspan stop' with the id of the session ends it.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			list, err := a.Running.List(cmd.Context())
			if err == nil {
				list, err = a.Running.WithServices(list)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), list)
			case len(list) == 0:
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing runs; start something with: inspan run --detach \"...\"")
				return nil
			}
			return listing.Running(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) stop() *cobra.Command {
	var now bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop the run of a session, wherever it goes on, and what goes on after it",
		Long: "Interrupt the run of a session, as Ctrl-C would, and wait until it has stopped. What else it was told to do waits for 'inspan resume'. If it does not in time, or with --now, the process that drives it is told to end,\n" +
			"and killed 2 seconds later. No call that finished is lost: 'inspan resume' goes on. Of a session that works for another only the run is interrupted.\n" +
			"Commands of the session that go on after it has ended are ended too, with all that they have started.",
		Args: exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.one(cmd.Context(), args[0])
			if err != nil {
				return err
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
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long the run may take to stop, as `10s`")
	return cmd
}

// one loads the settings and finds the session that the text means.
func (c *command) one(ctx context.Context, text string) (*app.App, string, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, "", err
	}
	id, err := a.Store().Resolve(ctx, text)
	return a, id, err
}
