package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Sessions prints sessions, one a line.
func Sessions(out io.Writer, list []store.Info) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSED\tEVENTS\tENDED\tWHAT")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", s.ID, s.Modified.Local().Format("2006-01-02 15:04"),
			s.Events, ended(s), words.OneLine(what(s), 60))
	}
	return w.Flush()
}

// Pruning prints the sessions that are no longer kept, how large those that stay are, and what no
// session needs. TheyGo: all of that is deleted next.
func Pruning(out io.Writer, p app.Pruning, theyGo bool) error {
	if len(p.Stale) == 0 {
		fmt.Fprintf(out, "All sessions are kept. They take %s.\n", megabytes(p.Left))
	} else if err := stale(out, p); err != nil {
		return err
	}
	if err := unused(out, p); err != nil {
		return err
	}
	n := len(p.Stale) + len(p.Leftovers) + len(p.Unused)
	if n > 0 && !theyGo {
		fmt.Fprintf(out, "Nothing was deleted. To delete %s, add --yes.\n", text.Plural(n, "it", "them"))
	}
	return nil
}

func stale(out io.Writer, p app.Pruning) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSED\tSESSIONS\tSIZE\tWHY\tWHAT")
	size := int64(0)
	for _, s := range p.Stale {
		size += s.Size
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", s.ID, s.Modified.Local().Format("2006-01-02 15:04"), s.Family, megabytes(s.Size), s.Why,
			words.OneLine(what(s.Info), 60))
	}
	err := w.Flush()
	fmt.Fprintf(out, "%s, %s. The others take %s.\n", text.Count(len(p.Stale), "session"), megabytes(size), megabytes(p.Left))
	return err
}

// unused prints what is kept and no session needs.
func unused(out io.Writer, p app.Pruning) error {
	if len(p.Leftovers)+len(p.Unused) == 0 {
		return nil
	}
	var specs, broken int64
	for _, l := range p.Leftovers {
		if l.Spec {
			specs += l.Size
		} else {
			broken += l.Size
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SIZE\tNO SESSION NEEDS\tPATH")
	if len(p.Leftovers) > 0 {
		fmt.Fprintf(w, "%s\tspecs of tools\t\n%s\tfiles that crashes left half written\t\n", megabytes(specs), megabytes(broken))
	}
	for _, u := range p.Unused {
		fmt.Fprintf(w, "%s\t%s\t%s\n", megabytes(u.Size), u.What, text.Line(u.Path))
	}
	return w.Flush()
}

// megabytes writes a number of bytes for people.
func megabytes(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d kB", (n+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Points prints where a session can be rewound to.
func Points(out io.Writer, points []running.Point) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range points {
		fmt.Fprintf(w, "%d\t%s\t%s\n", p.Seq, p.Time.Local().Format("2006-01-02 15:04"), words.OneLine(p.Text, 80))
	}
	return w.Flush()
}

// Effects prints what a session did that a rewind can't undo.
func Effects(out io.Writer, list []running.Lasting) {
	if len(list) == 0 {
		fmt.Fprintln(out, "This session had no effects outside the workspace.")
	}
	for _, l := range list {
		by := ""
		if l.Agent != "" {
			by = "  agent " + l.Agent
		}
		fmt.Fprintf(out, "%d  %s  %s (%s)%s\n", l.Seq, l.Time.Local().Format("2006-01-02 15:04"), l.Tool, cmp.Or(l.Outcome, "not known"), by)
		for _, e := range l.Effects {
			fmt.Fprintln(out, "    "+words.OneLine(e, 300))
		}
	}
}

// Hit prints where a search found something.
func Hit(out io.Writer, hit store.Hit) {
	fmt.Fprintf(out, "%s %d %s: %s\n", hit.Session, hit.Seq, hit.Kind, words.OneLine(hit.Text, 200))
}

// Formats are what [Export] can write.
func Formats() []string { return []string{"markdown", "json", "atif"} }

// Export writes a session in a format; json is what the console shows. Another than those of [Formats] is a
// [words.Misuse].
func Export(ctx context.Context, out io.Writer, sessions *session.Store, id, format string) error {
	events := sessions.Events(ctx, id)
	switch format {
	case "markdown", "md":
		return transcript.Markdown(out, events)
	case "atif":
		return transcript.ATIF(out, events, func(digest string) string { return filepath.Join(sessions.Dir, id, "blobs", digest) })
	}
	return words.Misuse{Err: fmt.Errorf("--format: unknown format %q; use %s%s", format,
		strings.Join(Formats(), ", "), words.DidYouMean(format, Formats()))}
}

// Leads are the sessions of a list that work for no other.
func Leads(list []store.Info) []store.Info {
	return slices.DeleteFunc(list, func(s store.Info) bool { return s.Parent != "" })
}

// Labelled are the sessions of a list that have all of these labels.
func Labelled(list []store.Info, labels map[string]string) []store.Info {
	return slices.DeleteFunc(list, func(s store.Info) bool { return !s.Labelled(labels) })
}

func what(s store.Info) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Preview
}

func ended(s store.Info) string {
	switch {
	case s.Damage != nil:
		return "DAMAGED"
	case s.Empty:
		return "empty"
	case s.Stop == "":
		return "open"
	}
	return string(s.Stop)
}

// Report prints how a log is.
func Report(w io.Writer, r session.Report) {
	state := "ok"
	if !r.OK() {
		state = "DAMAGED"
	}
	if r.Repaired {
		state = "repaired"
	}
	fmt.Fprintf(w, "%s: %s, %d events, %d bytes, index %s\n", r.ID, state, r.Events, r.Size, r.Index)
	if r.Torn > 0 {
		fmt.Fprintf(w, "  the last %d bytes are half written\n", r.Torn)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "  %v\n", d)
	}
	for _, b := range r.Missing {
		fmt.Fprintf(w, "  blob %s is missing\n", b)
	}
	for _, b := range r.Bad {
		fmt.Fprintf(w, "  blob %s does not match its name\n", b)
	}
	if len(r.Damage) > 0 {
		fmt.Fprintf(w, "  the events before it are usable: inspan sessions fork --at %d %s\n", r.Events, r.ID)
	}
}

// Running prints the sessions that somebody drives.
func Running(out io.Writer, list []running.Driven) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	here := slices.ContainsFunc(list, func(d running.Driven) bool { return d.PID != 0 }) // those of a server have none
	pid := func(of any) string {
		if here {
			return fmt.Sprint(of, "\t")
		}
		return ""
	}
	fmt.Fprintln(w, "ID\t"+pid("PID")+"SINCE\tSTATE\tCOST\tWHAT")
	for _, d := range list {
		depth := strings.Count(d.ID, ".")
		fmt.Fprintf(w, "%s%s\t%s%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), d.ID, pid(d.PID), d.Since.Local().Format("2006-01-02 15:04:05"),
			d.State, words.Cost(d.Cost, d.Unpriced), words.OneLine(d.What, 60))
	}
	return w.Flush()
}
