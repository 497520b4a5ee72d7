package command

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) stats() *cobra.Command {
	var ask console.Stats
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how long requests and calls took, and how many failed",
		Long: "inspan reads the logs of all sessions, old ones and those of agents too. A percentile is the time that so many in a hundred\n" +
			"did not exceed. FIRST is the median time to the first of a reply. By error, each kind of failure is a row, by day (UTC)\n" +
			"requests and calls are.",
		Example: "  inspan stats\n  inspan stats --by error --since 2026-11-01",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			return ask.Print(cmd.Context(), cmd.OutOrStdout(), a.Store(), time.Now(), c.warn)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "", "group by `kind`: "+strings.Join(ask.Groupings(), ", ")+" (default: model, and tool)")
	fl.StringVar(&ask.Since, "since", "", "only what began since this `day` (default: 30 days ago)")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}
