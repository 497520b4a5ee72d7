package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/hook"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// Context prints what the next prompt of a session is made of; an empty id means a new one.
func Context(out io.Writer, id string, c inspan.Context) error {
	what := "a new session"
	if id != "" {
		what = "session " + id
	}
	window := "the model's window is not known"
	if c.Window > 0 {
		window = fmt.Sprintf("%.1f%% of a window of %s, %s reserved for the reply",
			Share(c.Tokens, c.Window), text.Thousands(c.Window), text.Thousands(c.Reserve))
	}
	fmt.Fprintf(out, "%s: about %s tokens, %s\n", what, text.Thousands(c.Tokens), window)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range c.Sources {
		part := Share(s.Tokens, c.Window)
		if c.Window == 0 {
			part = Share(s.Tokens, c.Tokens)
		}
		fmt.Fprintf(w, "%9s\t%5.1f%%\t%s\t%s\n", text.Thousands(s.Tokens), part, words.OneLine(s.Name, 60), s.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.Again > 0 {
		fmt.Fprintf(out, "%d of %d calls repeated an earlier result, which the prompt holds only once.\n", c.Again, c.Calls)
	}
	if c.Compactions > 0 {
		fmt.Fprintf(out, "inspan compacted the conversation %s; the history tool finds the removed text.\n", text.Count(c.Compactions, "time"))
	}
	if c.Untrusted && c.Private {
		fmt.Fprintln(out, "The conversation holds outside text and private data, so every call that could send data out asks.")
	}
	return nil
}

// Tools prints tools in one line each.
func Tools(out io.Writer, list []tool.Tool) {
	for _, t := range list {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Doc), "\n")
		fmt.Fprintf(out, "%-14s %s\n", words.OneLine(t.Name, 80), words.OneLine(first, 400))
	}
}

// Hooks prints the hooks of the settings in one line each.
func Hooks(out io.Writer, list []hook.Config) {
	for _, h := range list {
		runs := strings.TrimSpace(h.Command + " " + h.URL)
		fmt.Fprintf(out, "%-14s %-20s %s\n", h.On, words.OneLine(h.Match, 20), words.OneLine(runs, 200))
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "No hooks are set. Hooks of this folder run once you trust it, see 'inspan trust'.")
	}
}
