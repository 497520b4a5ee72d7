package console

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
)

// Copies prints the copies in which agents work.
func Copies(out io.Writer, list []running.Copy) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AGENT\tNOT MERGED\tOF\tTASK")
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Agent, text.Count(len(c.Changed), "file"), text.Line(c.Of), words.OneLine(c.Task, 60))
	}
	return w.Flush()
}
