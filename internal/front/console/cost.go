package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/cost"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/store"
)

// Spending is what a person asks about costs.
type Spending struct {
	By      string // one of Groupings
	Since   string // a day, such as 2026-11-21; empty: ever
	Session string // its id; empty: all
	JSON    bool
	Index   string // a file that saves reading sessions again; empty: none
}

// Groupings are what costs can be grouped by.
func (s Spending) Groupings() []string { return cost.Groupings() }

// of is what to read from the sessions. What can't be asked for is a [words.Misuse].
func (s Spending) of() (cost.Spending, error) {
	of := cost.Spending{Session: s.Session, Index: s.Index}
	var err error
	of.Since, err = day("--since", s.Since)
	return of, err
}

// day is the day that a flag names; zero if it names none.
func day(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return at, words.Misuse{Err: fmt.Errorf("%s: %q is not a day such as 2026-11-21", flag, text)}
	}
	return at, nil
}

// Print prints what the sessions say was spent.
func (s Spending) Print(ctx context.Context, out io.Writer, sessions store.Store, warn func(string)) error {
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
		return words.Misuse{Err: fmt.Errorf("--by: %w%s", err, words.DidYouMean(s.By, cost.Groupings()))}
	}
	rows = append(rows, cost.Sum(tallies))
	if s.JSON {
		return Indented(out, rows)
	}
	return Costs(out, s.By, rows)
}

// Compare prints what the sessions would have cost with the routes of a router.
func (s Spending) Compare(ctx context.Context, out io.Writer, sessions store.Store, m *router.Model, warn func(string)) error {
	of, err := s.of()
	if err != nil {
		return err
	}
	outcomes, err := cost.SupposeAll(ctx, sessions, of, m, warn)
	if err != nil {
		return err
	}
	if s.JSON {
		return Indented(out, outcomes)
	}
	for _, r := range m.Routes {
		fmt.Fprintf(out, "%s: %s\n", r.Name, r.Model.Info().Route())
	}
	return Outcomes(out, outcomes)
}

// Indented prints a value as JSON that people can read.
func Indented(out io.Writer, v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Costs prints what was spent, by row.
func Costs(out io.Writer, by string, rows []cost.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(by)+"\tREPLIES\tINPUT\tCACHED\tOUTPUT\tUS $")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f%%\t%d\t%.4f\t%s\n",
			text.Line(r.Key), r.Replies, r.Usage.Prompt(), Share(r.Usage.CacheRead, r.Usage.Prompt()), r.Usage.Output, r.Dollars.Dollars(), hint(r))
	}
	return w.Flush()
}

// hint says what the figures of a row lack; empty if they are whole.
func hint(r cost.Row) string {
	var lacks []string
	if r.Unpriced > 0 {
		lacks = append(lacks, fmt.Sprintf("%d without a price", r.Unpriced))
	}
	if r.Estimated > 0 {
		lacks = append(lacks, fmt.Sprintf("%d estimated", r.Estimated))
	}
	return strings.Join(lacks, ", ")
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
