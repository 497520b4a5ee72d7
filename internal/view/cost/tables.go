package cost

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Print writes rows of costs as a table. By is what the rows are grouped by.
func Print(out io.Writer, by string, rows []Row) error {
	w := text.NewTable(out, strings.ToUpper(by), "REPLIES", "INPUT", "CACHED", "OUTPUT", "US $")
	for _, r := range rows {
		w.Row(text.Line(r.Key), r.Replies, r.Usage.Prompt(), fmt.Sprintf("%.0f%%", text.Share(r.Usage.CacheRead, r.Usage.Prompt())),
			r.Usage.Output, fmt.Sprintf("%.4f", r.Dollars.Dollars()), r.Lacking())
	}
	return w.Flush()
}

// Lacking names the gaps in the figures of a row; empty if they are complete.
func (r Row) Lacking() string {
	var lacks []string
	if r.Unpriced > 0 {
		lacks = append(lacks, fmt.Sprintf("%d without a price", r.Unpriced))
	}
	if r.Estimated > 0 {
		lacks = append(lacks, fmt.Sprintf("%d estimated", r.Estimated))
	}
	return strings.Join(lacks, ", ")
}

// PrintContext writes the size of the next prompt, and its parts as a table.
func PrintContext(out io.Writer, c inspan.Context) error {
	window := words.Window(c.Window, c.Assumed)
	if c.Window > 0 {
		window = fmt.Sprintf("%.1f%% of %s, %s reserved for the reply", text.Share(c.Tokens, c.Window), window, text.Thousands(c.Reserve))
	}
	fmt.Fprintf(out, "about %s tokens, %s\n", text.Thousands(c.Tokens), window)
	w := text.NewTable(out)
	for _, s := range c.Sources {
		part := text.Share(s.Tokens, cmp.Or(c.Window, c.Tokens))
		w.Row(fmt.Sprintf("%9s", text.Thousands(s.Tokens)), fmt.Sprintf("%5.1f%%", part), words.OneLine(s.Name, 60), s.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.NotRepeated > 0 {
		fmt.Fprintf(out, "%d of %d calls repeated an earlier result, which the prompt holds only once.\n", c.NotRepeated, c.Calls)
	}
	if c.Compactions > 0 {
		fmt.Fprintf(out, "inspan compacted the conversation %s; the history tool finds the removed text.\n", text.Count(c.Compactions, "time"))
	}
	if c.Untrusted && c.Private {
		fmt.Fprintln(out, "The conversation holds outside text and private data, so every call that could send data out asks.")
	}
	return nil
}
