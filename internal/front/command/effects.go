package command

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) effects() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "effects [ID]",
		Short: "List effects that a rewind can't undo: outside the workspace, in sensitive places, or by agents in the background",
		Args:  exactly(0, 1, "at most one ID"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			id, err := a.Running.Seen(cmd.Context(), named(args))
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
			printEffects(out, list)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the key of each call")
	return cmd
}

// printEffects prints the effects of a session that a rewind can't undo.
func printEffects(out io.Writer, list []running.LastingEffect) {
	if len(list) == 0 {
		fmt.Fprintln(out, "This session had no effects outside the workspace.")
	}
	for _, l := range list {
		by := ""
		if l.Agent != "" {
			by = "  agent " + l.Agent
		}
		fmt.Fprintf(out, "%d  %s  %s (%s)%s\n", l.Seq, l.Time.Local().Format("2006-01-02 15:04"), l.Tool, cmp.Or(l.Outcome, "not known"), by)
		for _, e := range l.Effects {
			fmt.Fprintln(out, "    "+words.OneLine(e, 300))
		}
	}
}
