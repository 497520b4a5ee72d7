package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) ps() *cobra.Command {
	var asJSON bool
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List running sessions and kept commands",
		Long: "inspan lists each session that a process drives now, with its subagents below it, and those that are open in a terminal. " +
			"A session works, asks, waits for its model, or is idle until it gets a message.\n" +
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

// printDriven prints the running sessions, here or on a server.
func printDriven(cmd *cobra.Command, a *app.App, away, asJSON bool) error {
	list, err := a.Running.List(cmd.Context())
	if err == nil && !away {
		list, err = a.Running.WithServices(a.Running.WithOpen(cmd.Context(), list))
	}
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(cmd.OutOrStdout(), list)
	case len(list) == 0:
		fmt.Fprintln(cmd.ErrOrStderr(), "no session is running; start one with: "+words.Command(a.Running.Server, "run", "--detach", `"..."`))
		return nil
	}
	if err := printRunning(cmd.OutOrStdout(), list); err != nil {
		return err
	}
	for _, d := range list {
		if err := printQuestions(cmd.OutOrStdout(), a.Running.Server, d.ID, d.Open); err != nil {
			return err
		}
	}
	return nil
}

// printQuestions prints the open questions of a session with their ids, and how to answer the first.
func printQuestions(out io.Writer, server, session string, open []running.Open) error {
	var err error
	for i, q := range open {
		_, failed := fmt.Fprintf(out, "? %s asks in session %s: %s\n", words.OneLine(q.ID, 60), session, words.OneLine(q.Asks, 200))
		if i == 0 {
			_, hint := fmt.Fprintln(out, "  answer it with: "+words.Command(server, "attach", session)+", or "+
				words.Command(server, "send", "--allow", words.OneLine(q.ID, 60), session))
			failed = errors.Join(failed, hint)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// printRunning prints running sessions.
func printRunning(out io.Writer, list []running.Driven) error {
	here := slices.ContainsFunc(list, func(d running.Driven) bool { return d.PID != 0 }) // sessions of a server have none
	titles := []string{"ID", "PID", "SINCE", "STATE", "COST", "WHAT"}
	if !here {
		titles = slices.Delete(titles, 1, 2)
	}
	w := text.NewTable(out, titles...)
	for _, d := range list {
		cells := []any{
			strings.Repeat("  ", strings.Count(d.ID, ".")) + d.ID, d.PID, d.Since.Local().Format("2006-01-02 15:04:05"), d.State,
			words.Cost(d.Cost, d.Unpriced), words.OneLine(d.What, 60),
		}
		if !here {
			cells = slices.Delete(cells, 1, 2)
		}
		w.Row(cells...)
	}
	return w.Flush()
}
