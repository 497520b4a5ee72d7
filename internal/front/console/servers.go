package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/view/words"
)

// Servers prints how servers are.
func Servers(out io.Writer, list []mcp.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tSTATE\tKIND\tFROM\tTOOLS\tTOKENS\tANSWERS IN\tSPEAKS\t")
	for _, s := range list {
		took := "-"
		if t := cmp.Or(s.Typical, s.Latency); t > 0 {
			took = t.Round(100 * time.Microsecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t\n", s.Name, s.State, s.Kind,
			words.OneLine(s.Source, 40), s.Tools, s.Tokens, took, cmp.Or(s.Revision, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if s.Why != "" {
			fmt.Fprintf(out, "%s: %s\n", s.Name, s.Why)
		}
		if s.State == mcp.Changed {
			fmt.Fprintf(out, "'inspan mcp agree %s' shows the changes, and asks\n", s.Name)
		}
	}
	return nil
}

// Server prints how the server of that name is.
func Server(out io.Writer, list []mcp.Status, name string) error {
	return Servers(out, slices.DeleteFunc(list, func(s mcp.Status) bool { return s.Name != name }))
}

// Foreign prints servers of other programs, with what each runs.
func Foreign(out io.Writer, list []connect.Foreign) {
	for _, b := range list {
		does := cmp.Or(text.Address(b.Server.URL), strings.Join(b.Server.Command, " "))
		fmt.Fprintf(out, "%s: %s\n    from %s\n", b.Name, text.Visible(words.OneLine(does, 1000)), b.Path)
	}
}

// Definitions prints tools of a server as the model sees them.
func Definitions(out io.Writer, list []mcp.Definition) error {
	for _, d := range list {
		if _, err := fmt.Fprintf(out, "%s\n    %s\n    %s\n", d.Tool, below(d.Doc), d.Schema); err != nil {
			return err
		}
	}
	return nil
}

// Differences shows what definitions have become, tool by tool.
func Differences(before, now []mcp.Definition) string {
	was := map[string]mcp.Definition{}
	for _, d := range before {
		was[d.Name] = d
	}
	var b strings.Builder
	for _, d := range now {
		old, known := was[d.Name]
		delete(was, d.Name)
		switch {
		case !known:
			fmt.Fprintf(&b, "+ %s: %s\n    %s\n    %s\n", d.Name, below(d.Doc), d.Says, d.Schema)
		case old.Doc != d.Doc || string(old.Schema) != string(d.Schema) || old.Says != d.Says:
			fmt.Fprintf(&b, "~ %s\n  - %s\n    %s\n    %s\n  + %s\n    %s\n    %s\n",
				d.Name, below(old.Doc), old.Says, old.Schema, below(d.Doc), d.Says, d.Schema)
		}
	}
	for _, d := range before {
		if _, gone := was[d.Name]; gone {
			fmt.Fprintf(&b, "- %s\n", d.Name)
		}
	}
	return b.String()
}

// below is text of others whose lines can't be taken for ours.
func below(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
