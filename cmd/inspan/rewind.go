package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/rewind"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) rewind() *cobra.Command {
	var to string
	var files, conversation, redo, yes, force bool
	cmd := &cobra.Command{
		Use:   "rewind [ID]",
		Short: "Take files, the conversation or both back to before you said something",
		Long: "Without --to the places are listed that a session can be taken back to. With it the files that the agent has changed since, also by commands, are put back,\n" +
			"and the conversation goes on from there. What would change is shown first. What you, or another program, changed between the agent's calls stays as it is.\n" +
			"Nothing is lost: --redo takes the last rewind back. What calls did outside of the workspace stays done; 'inspan effects' lists it.",
		Example: "  inspan rewind\n  inspan rewind --to last\n  inspan rewind 20261122 --to 57 --files\n  inspan rewind --redo",
		Args:    exactly(0, 1, "[ID]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			id, err := sessionOf(cmd, a, args)
			if err != nil {
				return err
			}
			if to == "" && !redo {
				return listPoints(cmd, a, id)
			}
			s, err := a.Rewind.Parked(cmd.Context(), id)
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := a.Rewind.To(cmd.Context(), s.Status(), to, files || !conversation, conversation || !files)
			if errors.Is(err, rewind.ErrNoPoint) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, line := range r.Lines(force) {
				fmt.Fprintln(out, "  "+line)
			}
			if !yes && isTerminal(c.in) {
				if yes, err = console.NewPerson(c.console, c.in, out).Agrees(cmd.Context(), "Do this?"); err != nil {
					return err
				}
			}
			if !yes {
				fmt.Fprintln(cmd.ErrOrStderr(), "Nothing was changed. --yes does what is shown.")
				return nil
			}
			err = s.Rewind(cmd.Context(), r.To, func(ctx context.Context) (*event.Restored, error) { return r.Restore(ctx, force) })
			if err != nil {
				return err
			}
			fmt.Fprintln(out, "Done. 'inspan rewind --redo' takes it back; 'inspan resume' goes on from here.")
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`number` of what you said, as listed, or of any event since, or last")
	cmd.Flags().BoolVar(&files, "files", false, "only the files")
	cmd.Flags().BoolVar(&conversation, "conversation", false, "only the conversation")
	cmd.Flags().BoolVar(&redo, "redo", false, "take the last rewind back")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "put back also what somebody else has changed since")
	cmd.MarkFlagsMutuallyExclusive("to", "redo")
	cmd.MarkFlagsMutuallyExclusive("files", "conversation")
	return cmd
}

// sessionOf is the session named, or the one used last here.
func sessionOf(cmd *cobra.Command, a *app.App, args []string) (string, error) {
	if len(args) > 0 {
		return a.Store().Resolve(cmd.Context(), args[0])
	}
	return a.Running.LastHere(cmd.Context())
}

func listPoints(cmd *cobra.Command, a *app.App, id string) error {
	points, err := a.Rewind.Points(cmd.Context(), id)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, p := range points {
		fmt.Fprintf(w, "%d\t%s\t%s\n", p.Seq, p.Time.Local().Format("2006-01-02 15:04"), words.OneLine(p.Text, 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "inspan rewind %s --to NUMBER goes back to before that; --to last to before the last.\n", id)
	return nil
}

func (c *command) effects() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "effects [ID]",
		Short: "List what a session's calls did outside of the workspace or to sensitive places, which no rewind takes back",
		Args:  exactly(0, 1, "[ID]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			id, err := sessionOf(cmd, a, args)
			if err != nil {
				return err
			}
			list, err := a.Rewind.Lasting(cmd.Context(), id)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return printJSON(out, list)
			}
			if len(list) == 0 {
				fmt.Fprintln(out, "Nothing of this session reached beyond the workspace.")
			}
			for _, l := range list {
				outcome := l.Outcome
				if outcome == "" {
					outcome = "not known"
				}
				fmt.Fprintf(out, "%d  %s  %s (%s)\n", l.Seq, l.Time.Local().Format("2006-01-02 15:04"), l.Tool, outcome)
				for _, e := range l.Effects {
					fmt.Fprintln(out, "    "+words.OneLine(e, 300))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the key of each call")
	return cmd
}
