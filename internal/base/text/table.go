package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows with aligned cells, two blanks apart and none at the end of a line. Pass untrusted text through
// [Line] first.
type Table struct {
	w    *tabwriter.Writer
	rows *bytes.Buffer // finished rows
	out  io.Writer
}

// NewTable begins a table, with its titles if any.
func NewTable(out io.Writer, titles ...string) Table {
	rows := &bytes.Buffer{}
	t := Table{tabwriter.NewWriter(rows, 0, 0, 2, ' ', 0), rows, out}
	if len(titles) > 0 {
		fmt.Fprintln(t.w, strings.Join(titles, "\t"))
	}
	return t
}

// Row adds a row. A row with one cell or none restarts the columns.
func (t Table) Row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, cell)
	}
	fmt.Fprintln(t.w)
}

// Flush writes the rows. The error is that of the writer.
func (t Table) Flush() error {
	err := t.w.Flush()
	for line := range strings.Lines(t.rows.String()) {
		if _, failed := io.WriteString(t.out, strings.TrimRight(line, " \n")+"\n"); err == nil {
			err = failed
		}
	}
	t.rows.Reset()
	return err
}
