package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) spend() *cobra.Command {
	var ask console.Causes
	cmd := &cobra.Command{
		Use:   "spend [ID]",
		Short: "Show what caused each token and dollar of the bills",
		Long: "Every token falls to a cause: a part of the prompt, a result that was sent again, a lost cache, a reply.\n" +
			"The rows add up to the bills. Vendors count whole prompts; the shares of their parts are estimates.\n\n" +
			"With an ID, subagents are causes with all that they cost. Without one, every session is explained by itself.\n" +
			"FRESH tokens were neither read from a cache nor written to one. Days are those of UTC.",
		Example: "  inspan spend last\n  inspan spend --since 2026-11-01 --by tool",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if ask.Session, err = a.Running.Seen(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			return ask.Print(cmd.Context(), cmd.OutOrStdout(), a.Store(), c.warn)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "cause", "group by `kind`: "+strings.Join(ask.Explanations(), ", "))
	fl.StringVar(&ask.Day, "day", "", "only this `day`, such as 2026-11-21")
	fl.StringVar(&ask.Since, "since", "", "only from this `day` on")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}
