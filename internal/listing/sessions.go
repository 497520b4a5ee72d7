package listing

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/running"
	"github.com/inspan/inspan/internal/session"
	"github.com/inspan/inspan/internal/words"
)

// Sessions prints sessions, one a line.
func Sessions(out io.Writer, list []session.Info) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSED\tEVENTS\tENDED\tWHAT")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", s.ID, s.Modified.Local().Format("2006-01-02 15:04"), s.Events, ended(s), words.OneLine(what(s), 60))
	}
	return w.Flush()
}

// Leads are the sessions of a list that work for no other.
func Leads(list []session.Info) []session.Info {
	return slices.DeleteFunc(list, func(s session.Info) bool { return s.Parent != "" })
}

func what(s session.Info) string {
	if s.Title != "" {
		return s.Title
	}
	return s.Preview
}

func ended(s session.Info) string {
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
		fmt.Fprintf(w, "  blob %s does not hold what its name says\n", b)
	}
	if len(r.Damage) > 0 {
		fmt.Fprintf(w, "  what is before can be used: inspan sessions fork --at %d %s\n", r.Events, r.ID)
	}
}

// Running prints the sessions that somebody drives.
func Running(out io.Writer, list []running.Driven) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tPID\tSINCE\tSTATE\tCOST\tWHAT")
	for _, d := range list {
		depth := strings.Count(d.ID, ".")
		fmt.Fprintf(w, "%s%s\t%d\t%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), d.ID, d.PID, d.Since.Local().Format("2006-01-02 15:04:05"),
			d.State, words.Cost(d.Cost, d.Unpriced), words.OneLine(d.What, 60))
	}
	return w.Flush()
}
