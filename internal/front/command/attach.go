package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) attach() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "attach ID",
		Short: "Watch a running session, steer it and answer its questions",
		Long: "inspan follows the run that another process drives. A line that you type answers the open question, or else steers the model.\n" +
			"/help lists what else you can type.\n" +
			"Ctrl-C detaches, and the run continues. When the run stops, attach exits with the run's code.\n" +
			"Several terminals can attach at once. The first answer counts.",
		Args: exactly(1, 1, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, r, id, err := c.found(cmd.Context(), &f, args[0])
			if err != nil {
				return err
			}
			if r != nil {
				return c.attachAway(cmd, &f, a, r, id)
			}
			h, err := a.Running.Driver(cmd.Context(), id)
			if err != nil {
				return err
			}
			if h == nil {
				return fmt.Errorf("session %s is not running; continue it with: inspan resume %s", id, id)
			}
			return c.watch(cmd.Context(), a, id, console.Attachment{
				Greeting: fmt.Sprintf("attached to session %s in process %d; type to steer it; Ctrl-C detaches and the run continues", id, h.PID),
				Person:   console.NewPerson(c.console, c.in, c.console.Err), Leaves: isTerminal(c.in), Remember: a.Permission.Remember,
			})
		},
	}
	f.add(cmd)
	f.addPlain(cmd)
	return cmd
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
	return c.attached(ctx, s, how)
}

// attached shows a session. Attach handles signals, as long as its output does not block.
func (c *command) attached(ctx context.Context, s *inspan.Watch, how console.Attachment) (err error) {
	_, stop := c.signals(ctx)
	defer stop()
	c.code, err = c.console.Attach(ctx, s, how)
	return err
}
