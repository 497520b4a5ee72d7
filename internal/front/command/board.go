package command

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) board() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "board",
		Short: "Show all sessions, and answer their questions",
		Long: "The board lists all sessions of this machine, waiting ones first, and follows them while it is open.\n" +
			"y or n shows the question of a session, and answers it once you have seen it. Enter opens a session in the front end; " +
			"leaving it comes back to the board. ? lists the keys.\n" +
			"Without a terminal this prints the same as 'inspan ps'.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, r, err := c.load(&f)
			if err != nil {
				return err
			}
			if !c.watched() {
				return printDriven(cmd, a, r != nil, false)
			}
			return c.showBoard(cmd, &f, a, r != nil)
		},
	}
	f.add(cmd)
	return cmd
}

// showBoard shows the board, and the sessions that the person opens from it, until the person leaves the board.
func (c *command) showBoard(cmd *cobra.Command, f *remoteFlags, a *app.App, away bool) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	flags := func() *screenFlags { return &screenFlags{runFlags: runFlags{remote: *f, output: console.Text}} }
	board := &tui.Board{TUI: c.frontEnd(cmd, a, ".", flags())}
	for {
		id, root, err := board.Run(ctx)
		if err != nil || id == "" {
			return err
		}
		opened := flags()
		if away {
			err = c.screenAway(cmd, opened, id)
		} else {
			opened.resume, opened.cwd = id, root
			err = c.screen(cmd, opened)
		}
		if err != nil {
			board.Say = "the session can't be opened: " + err.Error()
		}
		if c.code = 0; ctx.Err() != nil { // a signal also ends the board
			return nil
		}
	}
}
