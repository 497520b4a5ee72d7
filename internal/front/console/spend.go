package console

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Causes is what a person asks about the causes of costs.
type Causes struct {
	By         string // one of Explanations
	Day, Since string // days, such as 2026-11-21; empty: any
	Session    string // its id; empty: all
	JSON       bool
}

// Explanations are what costs can be explained by.
func (c Causes) Explanations() []string { return cost.Explanations() }

// Print prints where every token of the bills went.
func (c Causes) Print(ctx context.Context, out io.Writer, sessions store.Store, warn func(string)) error {
	q := cost.Question{Session: c.Session, By: c.By}
	var err error
	if q.Since, err = day("--since", c.Since); err != nil {
		return err
	}
	if q.Day, err = day("--day", c.Day); err != nil {
		return err
	}
	if err := oneOf("--by", c.By, cost.Explanations()); err != nil {
		return err
	}
	report, err := cost.Explain(ctx, sessions, q, warn)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return Indented(out, report)
	}
	return Spent(out, report)
}

// oneOf is the misuse of a flag that takes one of some words.
func oneOf(flag, word string, list []string) error {
	if slices.Contains(list, word) {
		return nil
	}
	return words.Misuse{Err: fmt.Errorf("%s: %q is none of %s%s", flag, word, strings.Join(list, ", "), words.DidYouMean(word, list))}
}

// Spent prints where every token of the bills went.
func Spent(out io.Writer, r cost.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(r.By)+"\tFRESH\tCACHED\tWRITTEN\tOUTPUT\tUS $\tSHARE\t")
	for _, row := range append(r.Rows, r.Total) {
		u := row.Usage
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.4f\t%s\t\n", text.Line(row.Key), u.Input, u.CacheRead, u.CacheWrite, u.Output,
			row.Dollars.Dollars(), part(row, r.Total))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Costliest) > 0 {
		fmt.Fprintln(out, "\nThe ten costliest, and what would have avoided them:")
	}
	for _, c := range r.Costliest {
		fmt.Fprintln(out, c.Line())
	}
	if h := hint(r.Total); h != "" {
		fmt.Fprintf(out, "\nOf %s %s.\n", text.Count(r.Total.Replies, "request"), h)
	}
	return nil
}

// part is the share of a row: of the dollars, or of the tokens where none have a price.
func part(row, total cost.Row) string {
	n, of := float64(row.Dollars), float64(total.Dollars)
	if total.Dollars == 0 {
		n, of = float64(row.Usage.Prompt()+row.Usage.Output), float64(total.Usage.Prompt()+total.Usage.Output)
	}
	if of == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.1f%%", 100*n/of)
}
