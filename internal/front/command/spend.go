package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/store"
)

func (c *command) spend() *cobra.Command {
	var ask causes
	cmd := &cobra.Command{
		Use:   "spend [ID]",
		Short: "Show the cause of each token and dollar of the bills",
		Long: "Every token has a cause: a part of the prompt, a result that was sent again, a lost cache, a reply.\n" +
			"The rows add up to the bills. Vendors count whole prompts; the shares of their parts are estimates.\n\n" +
			"With an ID, each subagent is one cause with its whole cost. Without one, every session is explained separately.\n" +
			"FRESH tokens were not read from a cache or written to one. Days are in UTC.",
		Example: "  inspan spend last\n  inspan spend --since 2026-11-01 --by tool",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			if len(args) == 1 {
				var err error
				if ask.Session, err = a.Running.Seen(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			return ask.report(cmd.Context(), cmd.OutOrStdout(), a.Store(), c.warn)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "cause", "group by `kind`: "+strings.Join(cost.Explanations(), ", "))
	fl.StringVar(&ask.Day, "day", "", "only this `day`, such as 2026-11-21")
	fl.StringVar(&ask.Since, "since", "", "only from this `day` on")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

// causes is a person's question about the causes of costs.
type causes struct {
	By         string // one of [cost.Explanations]
	Day, Since string // days, such as 2026-11-21; empty means any
	Session    string // its id; empty means all
	JSON       bool
}

// report prints which parts of the prompts and replies the tokens of the bills were for.
func (c causes) report(ctx context.Context, out io.Writer, sessions store.Store, warn func(string)) error {
	q := cost.Question{Session: c.Session, By: c.By}
	var err error
	if q.Since, err = dayOf("--since", c.Since); err != nil {
		return err
	}
	if q.Day, err = dayOf("--day", c.Day); err != nil {
		return err
	}
	if err := wordOf("--by", c.By, cost.Explanations()); err != nil {
		return err
	}
	report, err := cost.Explain(ctx, sessions, q, warn)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return printJSON(out, report)
	}
	return printSpent(out, report)
}

// printSpent prints which parts of the prompts and replies the tokens of the bills were for.
func printSpent(out io.Writer, r cost.Report) error {
	w := text.NewTable(out, strings.ToUpper(r.By), "FRESH", "CACHED", "WRITTEN", "OUTPUT", "US $", "SHARE")
	for _, row := range append(r.Rows, r.Total) {
		u := row.Usage
		w.Row(text.Line(row.Key), u.Input, u.CacheRead, u.CacheWrite, u.Output, fmt.Sprintf("%.4f", row.Dollars.Dollars()), partOf(row, r.Total))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Costliest) > 0 {
		fmt.Fprintln(out, "\nThe ten costliest, and how to avoid them:")
	}
	for _, c := range r.Costliest {
		fmt.Fprintln(out, c.Line())
	}
	if h := r.Total.Lacking(); h != "" {
		fmt.Fprintf(out, "\nOf %s %s.\n", text.Count(r.Total.Replies, "request"), h)
	}
	return nil
}

// partOf returns the share of a row: of the dollars, or of the tokens if none have a price.
func partOf(row, total cost.Row) string {
	n, of := float64(row.Dollars), float64(total.Dollars)
	if total.Dollars == 0 {
		n, of = float64(row.Usage.Prompt()+row.Usage.Output), float64(total.Usage.Prompt()+total.Usage.Output)
	}
	if of == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*n/of)
}
