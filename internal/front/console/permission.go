package console

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Explained prints what would become of a command line.
func Explained(out io.Writer, e permission.Explained) error {
	fmt.Fprintf(out, "%s\n", e.Plan.Class)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range e.Plan.Segments {
		fmt.Fprintf(w, "  %s%s\t%s\t%s\n", strings.Repeat("  ", s.Depth), s.Class, words.OneLine(s.Text, 100), words.OneLine(s.Why, 200))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range e.Plan.Effects {
		fmt.Fprintf(out, "%s %s\n", e.Kind, words.OneLine(e.Path+e.Text, 200))
	}
	if e.Plan.Git {
		fmt.Fprintln(out, "This holds if the repository's configuration names no program and hooks are off.")
	}
	fmt.Fprintf(out, "In mode %s: %s, by %s\n", e.Mode, e.Verdict.Action, e.Verdict.By)
	for _, f := range e.Findings {
		if f.Verdict.Action != tool.Allow {
			fmt.Fprintf(out, "  %s: %s\n", f.Verdict.Action, words.OneLine(f.Verdict.Reason, 300))
		}
	}
	for i, t := range e.Tried {
		if i == 0 {
			fmt.Fprintln(out, "Rules tried:")
		}
		matches := "no match"
		if t.Matches {
			matches = "matches"
		}
		fmt.Fprintf(out, "  %s %s (%s): %s\n", t.Rule.Action, words.OneLine(t.Rule.Text, 200), t.Rule.Scope, matches)
	}
	switch {
	case e.Verdict.Action == tool.Deny:
	case len(e.Rules) > 0:
		fmt.Fprintf(out, "Narrowest rules that would allow it: allow = [%s]\n", words.OneLine(quoteAll(e.Rules), 300))
	case e.Verdict.Action == tool.Ask:
		fmt.Fprintln(out, "No rule is safe for it; you can only approve it once.")
	}
	return nil
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return strings.Join(quoted, ", ")
}

// Rules prints rules with where they come from.
func Rules(out io.Writer, rules []app.RuleNote) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rules {
		var notes []string
		if r.Written != "" {
			notes = append(notes, "written as "+words.OneLine(r.Written, 200))
		}
		switch {
		case r.Unmatched != nil:
			notes = append(notes, "matches nothing here: "+words.OneLine(r.Unmatched.Error(), 300))
		case r.By != nil:
			notes = append(notes, fmt.Sprintf("changes nothing beside %s %s (%s)", r.By.Action, words.OneLine(r.By.Text, 200), r.By.Scope))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Action, words.OneLine(r.Text, 200), r.Scope, strings.Join(notes, "; "))
	}
	return w.Flush()
}

// Content prints items with what each would run.
func Content(out io.Writer, title string, items []consent.Item) {
	for _, it := range items {
		fmt.Fprintf(out, "%s: %s %s\n", title, it.Kind, it.Path)
		for _, line := range it.Runs {
			fmt.Fprintln(out, "    "+text.Visible(line))
		}
	}
}
