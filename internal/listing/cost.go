package listing

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/cost"
	"github.com/inspan/inspan/internal/text"
)

// Costs prints what was spent, by row.
func Costs(out io.Writer, by string, rows []cost.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(by)+"\tREPLIES\tINPUT\tCACHED\tOUTPUT\tUS $")
	for _, r := range rows {
		hint := ""
		if r.Unpriced > 0 {
			hint = fmt.Sprintf("%d without a price", r.Unpriced)
		}
		if r.Estimated > 0 {
			hint = strings.TrimPrefix(fmt.Sprintf("%s, %d estimated", hint, r.Estimated), ", ")
		}
		fmt.Fprintf(w, "%s\t%.4g\t%d\t%.0f%%\t%d\t%.4f\t%s\n",
			text.Line(r.Key), r.Replies, r.Usage.Prompt(), Share(r.Usage.CacheRead, r.Usage.Prompt()), r.Usage.Output, r.Dollars, hint)
	}
	return w.Flush()
}

// Outcomes prints what strategies would have cost.
func Outcomes(out io.Writer, outcomes []cost.Outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSTRATEGY\tUS $\tTURNS\tLOCAL")
	for _, o := range outcomes {
		kept := "-"
		if o.Rules != nil {
			kept = fmt.Sprintf("%.0f%%", Share(o.Local, o.Turns))
		}
		fmt.Fprintf(w, "%s\t%.4f\t%d\t%s\n", o.Strategy, o.Dollars, o.Turns, kept)
	}
	hybrid := outcomes[len(outcomes)-1]
	fmt.Fprintln(w, "\nRULE\tUS $\tTURNS\tTO THE CLOUD")
	for _, s := range hybrid.Rules {
		fmt.Fprintf(w, "%s\t%.4f\t%d\t%.0f%%\n", s.Rule, s.Dollars, s.Turns, Share(s.Cloud, s.Turns))
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

// Share is a of b in percent.
func Share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return 100 * float64(a) / float64(b)
}
