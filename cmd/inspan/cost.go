package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/cost"
	"github.com/inspan/inspan/internal/listing"
	"github.com/inspan/inspan/tool"
)

func (c *command) cost() *cobra.Command {
	var by, since, session, local, cloud string
	var suppose, asJSON bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show the cost of sessions, or their cost with other models",
		Long: "Costs are grouped by session, day (UTC), model, tool or agent. A turn counts towards the tools whose results it read.\n\n" +
			"--counterfactual routes recorded sessions again: with the router of your settings, or with a hybrid that uses a\n" +
			"local model first and a cloud model for hard tasks (--local, --cloud). Each strategy gets the recorded tokens at the\n" +
			"prices of that day. A prompt counts as cached if the same model would have answered within the last five minutes.",
		Example: "  inspan cost --by tool --since 2026-11-01\n  inspan cost --counterfactual --local ollama/qwen3-coder --cloud anthropic/claude-sonnet-5-5",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			spending, err := spendingOf(since, session)
			if err != nil {
				return err
			}
			if !suppose && local+cloud != "" {
				return usageError{errors.New("--local and --cloud go with --counterfactual")}
			}
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			warn := func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "inspan: "+text) }
			if suppose {
				return c.counterfactual(cmd, a, spending, local, cloud, asJSON, warn)
			}
			entries, err := cost.Spent(cmd.Context(), a.Store(), spending, warn)
			if err != nil {
				return err
			}
			rows, err := cost.Group(entries, by)
			if err != nil {
				return usageError{fmt.Errorf("--by: %w%s", err, didYouMean("", tool.Nearest(by, cost.Groupings())))}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), append(rows, cost.Sum(entries)))
			}
			return listing.Costs(cmd.OutOrStdout(), by, append(rows, cost.Sum(entries)))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&by, "by", "session", "group by `kind`: "+strings.Join(cost.Groupings(), ", "))
	fl.StringVar(&since, "since", "", "only costs since this `day`, such as 2026-11-21")
	fl.StringVar(&session, "session", "", "only the session with this `id`, or last")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	fl.BoolVar(&suppose, "counterfactual", false, "compare with cloud only, local only and a hybrid")
	fl.StringVar(&local, "local", "", "local `model` of the hybrid, as provider/model")
	fl.StringVar(&cloud, "cloud", "", "cloud `model` of the hybrid, as provider/model")
	return cmd
}

func spendingOf(since, session string) (cost.Spending, error) {
	s := cost.Spending{Session: session}
	if since == "" {
		return s, nil
	}
	day, err := time.Parse(time.DateOnly, since)
	if err != nil {
		return s, usageError{fmt.Errorf("--since: %q is not a day such as 2026-11-21", since)}
	}
	s.Since = day
	return s, nil
}

func (c *command) counterfactual(cmd *cobra.Command, a *app.App, s cost.Spending, local, cloud string, asJSON bool, warn func(string)) error {
	m, err := a.Providers.Hybrid(cmd.Context(), local, cloud)
	if err != nil {
		return err
	}
	outcomes, err := cost.SupposeAll(cmd.Context(), a.Store(), s, m, warn)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), outcomes)
	}
	for _, r := range m.Routes {
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.Name, r.Model.Info().Route())
	}
	return listing.Outcomes(cmd.OutOrStdout(), outcomes)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
