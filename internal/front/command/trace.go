package command

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) trace() *cobra.Command {
	return group("trace", "Show and export the timeline of sessions", c.traceShow(), c.traceExport())
}

func (c *command) traceShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Draw requests, calls and waits of a session on a time line",
		Long: "Every run has a time line of its own. Agents of a session are drawn where they worked for it.\n" +
			"The light part of a request to a model is the time to the first part of the reply. Dots are waits for a person or\n" +
			"before a retry.",
		Example: "  inspan trace show\n  inspan trace show --json last | jq '.spans[] | select(.kind == \"call\")'",
		Args:    exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			t, err := transcript.TraceOf(cmd.Context(), a.Store(), id, false)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), t)
			}
			return printWaterfall(cmd.OutOrStdout(), t, width(cmd.OutOrStdout()), time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) traceExport() *cobra.Command {
	var to, semconv string
	var content bool
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Export the trace of a session to a receiver of OpenTelemetry",
		Long: "The spans of the session and of its agents have the names of the semantic conventions for generative AI, and\n" +
			"have no content unless you add --content.\n" +
			"Without --to inspan prints them, a request (OTLP in JSON) on each line. A session that is exported again has the same\n" +
			"ids. Requests have the headers of OTEL_EXPORTER_OTLP_HEADERS, and the attributes of OTEL_RESOURCE_ATTRIBUTES.",
		Example: "  inspan trace export last --to http://127.0.0.1:4318\n" +
			"  inspan trace export --to $OTEL_EXPORTER_OTLP_ENDPOINT --otel-semconv 1.36.0",
		Args: exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			t, err := transcript.TraceOf(cmd.Context(), a.Store(), id, content)
			if err != nil {
				return err
			}
			form := transcript.OTLP{Semconv: semconv, Release: inspan.Version, Attributes: running.ResourceOf(os.Getenv), Content: content}
			send := running.Receiver{Headers: os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")}
			return exportTrace(cmd.Context(), cmd.OutOrStdout(), t, form, to, send)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`URL` of the receiver; inspan adds /v1/traces to one without a path")
	cmd.Flags().BoolVar(&content, "content", false, "include messages, and arguments and results of calls, without secrets as the log is")
	cmd.Flags().StringVar(&semconv, "otel-semconv", "",
		"`version` of the conventions: "+strings.Join(transcript.Semconvs(), ", ")+" (default: the last)")
	return cmd
}

// printWaterfall prints a trace as bars, each run on its own scale. Width is that of a line; 0 means the usual one.
// Unfinished spans last until now.
func printWaterfall(out io.Writer, t transcript.Trace, width int, now time.Time) error {
	if width == 0 {
		width = usualWidth
	}
	w := &waterfall{now: now, bar: max(10, width-nameWidth-factWidth)}
	w.take(t)
	for i, run := range w.below[rootOf(t.Session)] {
		if i > 0 {
			w.text.WriteByte('\n')
		}
		w.begin, w.length = run.Start, w.end(run).Sub(run.Start)
		fmt.Fprintf(&w.text, "%s  %s  %s  %s\n", run.Start.Local().Format("2006-01-02 15:04:05"), run.Kind, took(w.length), outcome(run))
		w.rows(run.of, run.ID, 0)
	}
	if len(t.Spans) == 0 {
		w.text.WriteString("Nothing has run in this session yet.\n")
	}
	_, err := io.WriteString(out, w.text.String())
	return err
}

const (
	usualWidth = 100
	nameWidth  = 34 // of a name with its indentation
	factWidth  = 34 // of a duration and an outcome
	mostDeep   = 10 // levels that are indented
)

// traced is a span of a session.
type traced struct {
	transcript.Span

	of string
}

type waterfall struct {
	text   strings.Builder
	below  map[string][]traced // by session and span
	now    time.Time
	begin  time.Time // of the printed run
	length time.Duration
	bar    int // cells
}

func rootOf(session string) string { return session + "/" }

func (w *waterfall) take(t transcript.Trace) {
	if w.below == nil {
		w.below = map[string][]traced{}
	}
	for _, span := range t.Spans {
		at := rootOf(t.Session) + span.Parent
		w.below[at] = append(w.below[at], traced{span, t.Session})
	}
	for _, child := range t.Agents {
		w.take(child)
	}
}

// end returns the end of a span, now if it is not finished.
func (w *waterfall) end(s traced) time.Time {
	if s.End.IsZero() {
		return w.now
	}
	return s.End
}

// rows prints the parts of a span, and the work in the session of a subagent.
func (w *waterfall) rows(session, span string, depth int) {
	for _, s := range w.below[rootOf(session)+span] {
		name := strings.Repeat("  ", min(depth, mostDeep)) + strings.TrimSpace(string(s.Kind)+" "+words.OneLine(s.Name, 60))
		fmt.Fprintf(&w.text, "%s▕%s▏ %7s  %s\n", fit(name, nameWidth), w.drawn(s), took(w.end(s).Sub(s.Start)), facts(s))
		w.rows(session, s.ID, depth+1)
		if s.Session != "" && s.Session != session {
			for _, run := range w.below[rootOf(s.Session)] {
				w.rows(s.Session, run.ID, depth+1)
			}
		}
	}
}

// fit makes a text exactly so many cells wide, if all its runes are one cell wide.
func fit(s string, cells int) string {
	r := []rune(s)
	if len(r) >= cells {
		return string(r[:cells-2]) + "… "
	}
	return s + strings.Repeat(" ", cells-len(r))
}

// drawn returns the bar of a span: light until the first of a reply, dotted where it waits.
func (w *waterfall) drawn(s traced) string {
	cell := func(at time.Time) int {
		return min(w.bar, max(0, int(at.Sub(w.begin)*time.Duration(w.bar)/max(w.length, 1))))
	}
	from := min(cell(s.Start), w.bar-1)
	to := max(cell(w.end(s)), from+1)
	first := from
	if s.First > 0 {
		first = min(to, cell(s.Start.Add(time.Duration(s.First)*time.Millisecond)))
	}
	solid := "█"
	if s.Kind == transcript.SpanWait || s.Kind == transcript.SpanPause {
		solid = "·"
	}
	return strings.Repeat(" ", from) + strings.Repeat("░", first-from) + strings.Repeat(solid, to-first) + strings.Repeat(" ", w.bar-to)
}

// facts returns the outcome of a span.
func facts(s traced) string {
	list := []string{outcome(s)}
	if s.First > 0 {
		list = append(list, "first after "+took(time.Duration(s.First)*time.Millisecond))
	}
	if u := s.Usage; u != nil {
		list = append(list, fmt.Sprintf("%s in, %s out", text.Thousands(u.Prompt()), text.Thousands(u.Output)))
	}
	if s.Cost > 0 {
		list = append(list, words.Dollars(s.Cost))
	}
	return strings.Join(list, " · ")
}

func outcome(s traced) string {
	if s.End.IsZero() {
		return "running"
	}
	return strings.ReplaceAll(s.Outcome, "_", " ")
}

// took formats a duration, with three digits.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// exportTrace sends a trace to the receiver at a URL, to which the usual path is added if it has none. Without a URL
// it prints the trace, one request a line. An invalid receiver is a [words.Misuse].
func exportTrace(ctx context.Context, out io.Writer, t transcript.Trace, form transcript.OTLP, to string, send running.Receiver) error {
	requests, err := form.Traces(t)
	if err != nil {
		return misused("--otel-semconv: %w", err)
	}
	if to == "" {
		for _, raw := range requests {
			if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
				return err
			}
		}
		return nil
	}
	at, err := url.Parse(to)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return misused("--to: %q is not an address of a receiver; use http://HOST:4318", to)
	}
	if strings.Trim(at.Path, "/") == "" {
		at.Path = "/v1/traces"
	}
	for _, raw := range requests {
		if err := send.Send(ctx, at.String(), raw); err != nil {
			return fmt.Errorf("export the trace: %w", err)
		}
	}
	return nil
}
