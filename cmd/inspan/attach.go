package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
)

func (c *command) logs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what has happened in a session so far, and with -f what happens",
		Long:  "Show what has happened in a session, as 'inspan sessions show' does. With -f what happens is shown until the run stops; the exit code is the run's.",
		Args:  exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.one(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !follow {
				return c.console.Show(a.Store().Events(cmd.Context(), id), false)
			}
			return c.watch(cmd.Context(), a, id, console.Attachment{Whole: true})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run stops")
	return cmd
}

func (c *command) attach() *cobra.Command {
	return &cobra.Command{
		Use:   "attach ID",
		Short: "Watch a session that runs elsewhere, steer it, and answer what it asks",
		Long: "Show the current run of a session that another process drives, as it goes on. What you type is told to the model, or answers the question that waits.\n" +
			"Ctrl-C leaves the session to itself; the run goes on. When the run stops, so does this, with its exit code. Several can be attached at once: the first answer counts.",
		Args: exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.one(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			h, err := a.Running.Driver(cmd.Context(), id)
			if err != nil {
				return err
			}
			if h == nil {
				return fmt.Errorf("nobody drives session %s; go on with it: inspan resume %s", id, id)
			}
			fmt.Fprintf(c.console.Err, "session %s, which process %d drives; type to steer it, Ctrl-C leaves it to itself\n", id, h.PID)
			return c.watch(cmd.Context(), a, id, console.Attachment{
				Person: console.NewPerson(c.console, c.in, c.console.Err), Leaves: isTerminal(c.in), Remember: a.Permission.Remember,
			})
		},
	}
}

// watch shows a session that another process drives.
func (c *command) watch(ctx context.Context, a *app.App, id string, how console.Attachment) error {
	s, err := a.Running.Watch(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	how.Driven = func(ctx context.Context) (bool, error) {
		h, err := a.Running.Driver(ctx, id)
		return h != nil, err
	}
	c.code, err = c.console.Attach(ctx, s, how)
	return err
}
