package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) cost() *cobra.Command {
	var ask console.Spending
	var local, cloud string
	var suppose bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show the cost of sessions, or their cost with other models",
		Long: "Costs are grouped by session, day (UTC), model, tool or agent. By tool, what carried the description or a result of a\n" +
			"tool counts towards it, as in 'inspan spend', which explains costs further.\n\n" +
			"--counterfactual routes recorded sessions again: with the router of your settings, or with a hybrid that uses a\n" +
			"local model first and a cloud model for hard tasks (--local, --cloud). Each strategy gets the recorded tokens at the\n" +
			"prices of that day. A prompt counts as cached if the same model would have answered within the last five minutes.",
		Example: "  inspan cost --by tool --since 2026-11-01\n  inspan cost --counterfactual --local ollama/qwen3-coder --cloud " +
			"anthropic/claude-sonnet-5-5",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !suppose && local+cloud != "" {
				return misused("--local and --cloud go with --counterfactual")
			}
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			if !suppose {
				ask.Index = filepath.Join(a.StateDir, "cost.index")
				return ask.Print(cmd.Context(), cmd.OutOrStdout(), a.Store(), c.warn)
			}
			m, err := a.Providers.Hybrid(cmd.Context(), local, cloud)
			if err != nil {
				return err
			}
			return ask.Compare(cmd.Context(), cmd.OutOrStdout(), a.Store(), m, c.warn)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "session", "group by `kind`: "+strings.Join(ask.Groupings(), ", "))
	fl.StringVar(&ask.Since, "since", "", "only costs since this `day`, such as 2026-11-21")
	fl.StringVar(&ask.Session, "session", "", "only the session with this `id`, or last")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	fl.BoolVar(&suppose, "counterfactual", false, "compare with cloud only, local only and a hybrid")
	fl.StringVar(&local, "local", "", "local `model` of the hybrid, as provider/model")
	fl.StringVar(&cloud, "cloud", "", "cloud `model` of the hybrid, as provider/model")
	return cmd
}
