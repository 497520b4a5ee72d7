package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/store"
)

func (c *command) cost() *cobra.Command {
	var ask spending
	var local, cloud string
	var suppose bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show the cost of sessions, or their cost with other models",
		Long: "Costs are grouped by session, day (UTC), model, tool or agent. By tool, the tokens of a tool's description and of its\n" +
			"results count towards it, as in 'inspan spend', which explains costs further.\n\n" +
			"--counterfactual routes recorded sessions again: with the router of your settings, or with a hybrid that uses a\n" +
			"local model first and a cloud model for hard tasks (--local, --cloud). Each strategy gets the recorded tokens at the\n" +
			"prices of that day. A prompt counts as cached if the same model would have answered within the last five minutes.",
		Example: "  inspan cost --by tool --since 2026-11-01\n  inspan cost --counterfactual --local ollama/qwen3-coder --cloud " +
			"anthropic/claude-sonnet-5-5",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !suppose && local+cloud != "" {
				return misused("--local and --cloud need --counterfactual")
			}
			a, err := c.installation()
			if err != nil {
				return err
			}
			if ask.Session != "" {
				if ask.Session, err = a.Running.Seen(cmd.Context(), ask.Session); err != nil {
					return err
				}
			}
			if !suppose {
				ask.Index = filepath.Join(a.StateDir, "cost.index")
				return ask.report(cmd.Context(), cmd.OutOrStdout(), a.Store(), c.warn)
			}
			m, err := a.Providers.Hybrid(cmd.Context(), local, cloud)
			if err != nil {
				return err
			}
			return ask.compare(cmd.Context(), cmd.OutOrStdout(), a.Store(), m, c.warn)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "session", "group by `kind`: "+strings.Join(cost.Groupings(), ", "))
	fl.StringVar(&ask.Since, "since", "", "only costs since this `day`, such as 2026-11-21")
	fl.StringVar(&ask.Session, "session", "", "only the session with this `id`, or last")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	fl.BoolVar(&suppose, "counterfactual", false, "compare with cloud only, local only and a hybrid")
	fl.StringVar(&local, "local", "", "local `model` of the hybrid, as provider/model")
	fl.StringVar(&cloud, "cloud", "", "cloud `model` of the hybrid, as provider/model")
	return cmd
}

// spending is a person's question about costs.
type spending struct {
	By      string // one of [cost.Groupings]
	Since   string // a day, such as 2026-11-21; empty means ever
	Session string // its id; empty means all
	JSON    bool
	Index   string // a file that saves reading sessions again; empty means none
}

// of returns the query for the sessions. An invalid one is a [words.Misuse].
func (s spending) of() (cost.Spending, error) {
	of := cost.Spending{Session: s.Session, Index: s.Index, Totals: s.By != "tool"}
	var err error
	of.Since, err = dayOf("--since", s.Since)
	return of, err
}

// report prints the spending that the sessions record.
func (s spending) report(ctx context.Context, out io.Writer, sessions store.Store, warn func(string)) error {
	of, err := s.of()
	if err != nil {
		return err
	}
	tallies, err := cost.Spent(ctx, sessions, of, warn)
	if err != nil {
		return err
	}
	rows, err := cost.Group(tallies, s.By)
	if err != nil {
		return misused("--by: %w%s", err, words.DidYouMean(s.By, cost.Groupings()))
	}
	rows = append(rows, cost.Sum(tallies))
	if s.JSON {
		return printJSON(out, rows)
	}
	return cost.Print(out, s.By, rows)
}

// compare prints what the sessions would have cost with the routes of a router.
func (s spending) compare(ctx context.Context, out io.Writer, sessions store.Store, m *router.Model, warn func(string)) error {
	of, err := s.of()
	if err != nil {
		return err
	}
	outcomes, err := cost.SupposeAll(ctx, sessions, of, m, warn)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(out, outcomes)
	}
	for _, r := range m.Routes {
		fmt.Fprintf(out, "%s: %s\n", r.Name, r.Model.Info().Route())
	}
	return printOutcomes(out, outcomes)
}

// printOutcomes prints the costs with other strategies.
func printOutcomes(out io.Writer, outcomes []cost.Outcome) error {
	w := text.NewTable(out)
	w.Row()
	w.Row("STRATEGY", "US $", "TURNS", "LOCAL")
	for _, o := range outcomes {
		kept := "-"
		if o.Rules != nil {
			kept = fmt.Sprintf("%.0f%%", text.Share(o.Local, o.Turns))
		}
		w.Row(o.Strategy, fmt.Sprintf("%.4f", o.Dollars), o.Turns, kept)
	}
	hybrid := outcomes[len(outcomes)-1]
	w.Row()
	w.Row("RULE", "US $", "TURNS", "TO THE CLOUD")
	for _, s := range hybrid.Rules {
		w.Row(s.Rule, fmt.Sprintf("%.4f", s.Dollars), s.Turns, fmt.Sprintf("%.0f%%", text.Share(s.Cloud, s.Turns)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, o := range outcomes[1:] {
		for _, warning := range o.Warnings() {
			if o.Strategy != "cloud only" || !strings.Contains(warning, "to the cloud") {
				fmt.Fprintf(out, "\n%s: %s\n", o.Strategy, warning)
			}
		}
	}
	return nil
}
