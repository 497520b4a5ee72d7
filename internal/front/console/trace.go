package console

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Trace reads from the logs what a session did when, and its agents did. One whose log is gone is left out.
// With content the spans have what was said and done.
func Trace(ctx context.Context, sessions store.Store, id string, content bool) (transcript.Trace, error) {
	return traceOf(ctx, sessions, id, content, map[string]bool{})
}

func traceOf(ctx context.Context, sessions store.Store, id string, content bool, seen map[string]bool) (transcript.Trace, error) {
	seen[id] = true
	spans := transcript.NewSpans(content)
	if err := spans.Read(store.Events(ctx, sessions, id)); err != nil {
		return transcript.Trace{}, err
	}
	t := spans.Of(id)
	for _, span := range t.Spans {
		if span.Session == "" || seen[span.Session] {
			continue
		}
		if agent, err := traceOf(ctx, sessions, span.Session, content, seen); err == nil {
			t.Agents = append(t.Agents, agent)
		} else if ctx.Err() != nil {
			return t, err
		}
	}
	return t, nil
}

// Waterfall prints a trace as bars, each run on a scale of its own. Width is that of a line; 0: of a usual
// one. What goes on lasts until now.
func Waterfall(out io.Writer, t transcript.Trace, width int, now time.Time) error {
	if width == 0 {
		width = usualWidth
	}
	w := &waterfall{now: now, bar: max(10, width-nameWidth-factWidth)}
	w.take(t)
	for i, run := range w.below[root(t.Session)] {
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
	nameWidth  = 34 // of a name with what it is a part of
	factWidth  = 34 // of how long it took, and what came of it
	mostDeep   = 10 // levels that are indented
)

// traced is a span of some session.
type traced struct {
	transcript.Span

	of string
}

type waterfall struct {
	text   strings.Builder
	below  map[string][]traced // by session and span
	now    time.Time
	begin  time.Time // of the run that is printed
	length time.Duration
	bar    int // cells
}

func root(session string) string { return session + "/" }

func (w *waterfall) take(t transcript.Trace) {
	if w.below == nil {
		w.below = map[string][]traced{}
	}
	for _, span := range t.Spans {
		at := root(t.Session) + span.Parent
		w.below[at] = append(w.below[at], traced{span, t.Session})
	}
	for _, child := range t.Agents {
		w.take(child)
	}
}

// end is where a span ends, now if it goes on.
func (w *waterfall) end(s traced) time.Time {
	if s.End.IsZero() {
		return w.now
	}
	return s.End
}

// rows prints what is a part of a span, and what was done in the session of a child.
func (w *waterfall) rows(session, span string, depth int) {
	for _, s := range w.below[root(session)+span] {
		name := strings.Repeat("  ", min(depth, mostDeep)) + strings.TrimSpace(string(s.Kind)+" "+words.OneLine(s.Name, 60))
		fmt.Fprintf(&w.text, "%s▕%s▏ %7s  %s\n", fit(name, nameWidth), w.drawn(s), took(w.end(s).Sub(s.Start)), facts(s))
		w.rows(session, s.ID, depth+1)
		if s.Session != "" && s.Session != session {
			for _, run := range w.below[root(s.Session)] {
				w.rows(s.Session, run.ID, depth+1)
			}
		}
	}
}

// fit makes a text exactly so many cells wide, as far as its runes are one wide each.
func fit(s string, cells int) string {
	r := []rune(s)
	if len(r) >= cells {
		return string(r[:cells-2]) + "… "
	}
	return s + strings.Repeat(" ", cells-len(r))
}

// drawn is the bar of a span: light until the first of a reply, dotted where it waits.
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

// facts are what came of a span.
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
		return "goes on"
	}
	return strings.ReplaceAll(s.Outcome, "_", " ")
}

// took writes how long something took, to three digits.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
