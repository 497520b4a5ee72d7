package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

func (c *command) stats() *cobra.Command {
	var ask statistics
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how long requests and calls took, and how many failed",
		Long: "inspan reads the logs of all sessions, old ones and those of agents too. A percentile is the time that so many in a hundred\n" +
			"did not exceed. FIRST is the median time to the first part of a reply. --by error has a row for each kind of failure,\n" +
			"--by day (UTC) one for requests and one for calls.",
		Example: "  inspan stats\n  inspan stats --by error --since 2026-11-01",
		Args:    exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			if ask.Session != "" {
				var err error
				if ask.Session, err = a.Running.Seen(cmd.Context(), ask.Session); err != nil {
					return err
				}
			}
			return ask.report(cmd.Context(), cmd.OutOrStdout(), a.Store(), time.Now(), c.warn)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&ask.By, "by", "", "group by `kind`: "+strings.Join(statGroupings(), ", ")+" (default: model, and tool)")
	fl.StringVar(&ask.Since, "since", "", "only since this `day` (default: 30 days ago; all of one session)")
	fl.StringVar(&ask.Session, "session", "", "only the session with this `id` and its agents, or last")
	fl.BoolVar(&ask.JSON, "json", false, "print JSON")
	return cmd
}

// statistics is a person's question about how requests and calls went.
type statistics struct {
	By      string // one of statGroupings; empty means models and tools
	Since   string // a day, such as 2026-11-21; empty means the last 30 days
	Session string // its id; empty means all
	JSON    bool
}

const usualDays = 30

// statGroupings lists the groupings of statistics.
func statGroupings() []string {
	return []string{"model", "provider", "tool", "error", "day"}
}

// stat is how requests or calls of one kind went. Times are in milliseconds.
type stat struct {
	Key    string `json:"key"`
	N      int    `json:"n"`
	Failed int    `json:"failed"`
	P50    int64  `json:"p50_millis"`
	P95    int64  `json:"p95_millis"`
	P99    int64  `json:"p99_millis"`
	First  int64  `json:"first_p50_millis,omitempty"` // until the first of a reply, if there was one
}

// report prints percentiles and failures of spans that ended since a day. A session that can't be read to its
// end counts as far as it can be read, and warn names it.
func (s statistics) report(ctx context.Context, out io.Writer, sessions store.Store, now time.Time, warn func(string)) error {
	kinds := []string{"model", "tool"}
	if s.By != "" {
		if err := wordOf("--by", s.By, statGroupings()); err != nil {
			return err
		}
		kinds = []string{s.By}
	}
	since, err := dayOf("--since", s.Since)
	if err != nil {
		return err
	}
	if s.Since == "" && s.Session == "" {
		since = now.AddDate(0, 0, -usualDays)
	}
	counts := make([]counting, len(kinds))
	err = eachSpan(ctx, sessions, s.Session, since, warn, func(span transcript.Span) {
		for i, kind := range kinds {
			if key := statKey(kind, span); key != "" {
				counts[i].add(key, span)
			}
		}
	})
	if err != nil {
		return err
	}
	tables := map[string][]stat{}
	for i, kind := range kinds {
		tables[kind] = counts[i].stats(kind)
	}
	if s.JSON {
		return printJSON(out, tables)
	}
	if !slices.ContainsFunc(kinds, func(kind string) bool { return len(tables[kind]) > 0 }) {
		ever := ""
		if !since.IsZero() {
			ever = " since " + since.Format(time.DateOnly)
		}
		fmt.Fprintf(out, "No request or call has ended%s.\n", ever)
		return nil
	}
	for i, kind := range kinds {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printStats(out, kind, tables[kind]); err != nil {
			return err
		}
	}
	return nil
}

// eachSpan passes on the spans of sessions that ended since a time, including subagents: those of one session,
// or of all if it is empty.
func eachSpan(ctx context.Context, sessions store.Store, session string, since time.Time, warn func(string), do func(transcript.Span)) error {
	list, err := sessions.List(ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		if info.Modified.Before(since) || session != "" && info.ID != session && !strings.HasPrefix(info.ID, session+".") {
			continue
		}
		var spans transcript.Spans
		if err := spans.Read(store.Events(ctx, sessions, info.ID)); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			warn(err.Error())
		}
		for _, span := range spans.List() {
			if !span.End.IsZero() && !span.Start.Before(since) {
				do(span)
			}
		}
	}
	return nil
}

// statKey returns the row of a table for a span; empty means none.
func statKey(by string, s transcript.Span) string {
	if s.Kind != transcript.SpanModel && s.Kind != transcript.SpanCall {
		return ""
	}
	model := s.Kind == transcript.SpanModel
	switch by {
	case "model":
		if model {
			return s.Name
		}
	case "provider":
		if model {
			name, _, _ := strings.Cut(s.Name, "/")
			return name
		}
	case "tool":
		if !model {
			return s.Name
		}
	case "error":
		if s.Failed() {
			return statKinds()[s.Kind] + ": " + strings.ReplaceAll(cmp.Or(s.Class, s.Outcome), "_", " ")
		}
	case "day":
		return s.Start.UTC().Format(time.DateOnly) + " " + statKinds()[s.Kind] + "s"
	}
	return ""
}

func statKinds() map[transcript.SpanKind]string {
	return map[transcript.SpanKind]string{transcript.SpanModel: "request", transcript.SpanCall: "call"}
}

// counting has the times of ended spans, by row. The zero value is ready.
type counting map[string]*counted

type counted struct {
	failed      int
	took, first []int64
}

func (c *counting) add(key string, s transcript.Span) {
	if *c == nil {
		*c = counting{}
	}
	row := (*c)[key]
	if row == nil {
		row = &counted{}
		(*c)[key] = row
	}
	row.took = append(row.took, s.End.Sub(s.Start).Milliseconds())
	if s.Failed() {
		row.failed++
	}
	if s.First > 0 {
		row.first = append(row.first, s.First)
	}
}

// stats returns the rows: days in order, else the most frequent first.
func (c counting) stats(by string) []stat {
	out := []stat{}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		row := c[key]
		slices.Sort(row.took)
		slices.Sort(row.first)
		out = append(out, stat{
			Key: key, N: len(row.took), Failed: row.failed,
			P50: percentile(row.took, 50), P95: percentile(row.took, 95), P99: percentile(row.took, 99), First: percentile(row.first, 50),
		})
	}
	if by != "day" {
		slices.SortStableFunc(out, func(a, b stat) int { return cmp.Compare(b.N, a.N) })
	}
	return out
}

// percentile returns the nearest-rank percentile p of sorted values.
func percentile(sorted []int64, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func printStats(out io.Writer, by string, rows []stat) error {
	w := text.NewTable(out, strings.ToUpper(by), "N", "FAILED", "P50", "P95", "P99", "FIRST")
	for _, r := range rows {
		first := ""
		if r.First > 0 {
			first = took(time.Duration(r.First) * time.Millisecond)
		}
		millis := func(n int64) string { return took(time.Duration(n) * time.Millisecond) }
		w.Row(text.Line(r.Key), r.N, fmt.Sprintf("%.1f%%", text.Share(r.Failed, r.N)), millis(r.P50), millis(r.P95), millis(r.P99), first)
	}
	return w.Flush()
}
