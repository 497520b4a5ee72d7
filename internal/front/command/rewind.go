package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) rewind() *cobra.Command {
	var to string
	var files, conversation, redo, yes, force bool
	cmd := &cobra.Command{
		Use:   "rewind [ID]",
		Short: "Restore files, the conversation or both to an earlier message",
		Long: "Without --to, inspan lists the messages that you can rewind to. With --to, it restores the files that the agent has changed " +
			"since,\n" +
			"including changes by commands, and the conversation continues from there. It shows the changes first.\n" +
			"Files that you or other programs changed between the agent's calls stay as they are. --redo undoes the last rewind.\n" +
			"A rewind can't undo effects outside the workspace. 'inspan effects' lists them.",
		Example: "  inspan rewind\n  inspan rewind --to last\n  inspan rewind 20261122 --to 57 --files\n  inspan rewind --redo",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
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
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, line := range r.Lines(force) {
				fmt.Fprintln(out, "  "+line)
			}
			if yes, err = c.agreed(cmd, yes); err != nil || !yes {
				return err
			}
			err = s.Rewind(cmd.Context(), r.To, r.Restore(force))
			if err != nil {
				return err
			}
			fmt.Fprintln(out, "Done. 'inspan rewind --redo' undoes it; 'inspan resume' continues from here.")
			return nil
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "`number` of a listed message or of any later event, or last")
	cmd.Flags().BoolVar(&files, "files", false, "restore only the files")
	cmd.Flags().BoolVar(&conversation, "conversation", false, "rewind only the conversation")
	cmd.Flags().BoolVar(&redo, "redo", false, "undo the last rewind")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&force, "force", false, "also restore files that others have changed since")
	oneOf(cmd, "to", "redo")
	oneOf(cmd, "files", "conversation")
	return cmd
}

// agreed asks the person to approve the shown changes; --yes approves beforehand.
func (c *command) agreed(cmd *cobra.Command, yes bool) (bool, error) {
	var err error
	if !yes && isTerminal(c.in) {
		yes, err = console.NewPerson(c.console, c.in, cmd.OutOrStdout()).Agrees(cmd.Context(), "Rewind?")
	}
	if err == nil && !yes {
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing changed. --yes applies these changes.")
	}
	return yes, err
}

func listPoints(cmd *cobra.Command, a *app.App, id string) error {
	points, err := a.Rewind.Points(cmd.Context(), id)
	if err != nil {
		return err
	}
	w := text.NewTable(cmd.OutOrStdout())
	for _, p := range points {
		w.Row(p.Seq, p.Time.Local().Format("2006-01-02 15:04"), words.OneLine(p.Text, 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "'inspan rewind %s --to NUMBER' returns to before that message, '--to last' to before the last one.\n", id)
	return nil
}
