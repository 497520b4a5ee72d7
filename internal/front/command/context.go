package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/cost"
)

func (c *command) context() *cobra.Command {
	var asJSON, fresh bool
	cmd := &cobra.Command{
		Use:   "context [ID]",
		Short: "Show the next prompt: its sources, their tokens and shares of the window",
		Long: "Without an ID, inspan uses the last session of this folder, or a new one if there is none.\n" +
			"Text that was sent before has the vendor's token count. New text has an estimate, corrected by the vendor's counts.",
		Args: exactly(0, 1, "at most one ID"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			id, err := "", error(nil)
			switch {
			case fresh:
			case len(args) == 1:
				id, err = a.Running.Seen(cmd.Context(), args[0])
			default:
				id, _ = a.Running.LastHere(cmd.Context()) // none: a new one
			}
			if err != nil {
				return err
			}
			shown, err := a.Context(cmd.Context(), root, id, c.warn)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), shown)
			}
			what := "a new session"
			if id != "" {
				what = "session " + id
			}
			fmt.Fprint(cmd.OutOrStdout(), what, ": ")
			return cost.PrintContext(cmd.OutOrStdout(), shown)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&fresh, "new", false, "show the first prompt of a new session in this folder")
	return cmd
}
