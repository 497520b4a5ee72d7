package console

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/llm/catalog"
)

// Prices prints a price book, which is from somewhere.
func Prices(out io.Writer, b *catalog.Book, from string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tINPUT\tCACHED\tWRITTEN\tOUTPUT\tFROM\tLONG PROMPTS\tTIERS\tCHECKED")
	figure := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for _, v := range b.Vendors {
		for _, m := range v.Models {
			long := ""
			if m.Long.Above > 0 {
				long = fmt.Sprintf("above %s: x%s, reply x%s", text.Thousands(m.Long.Above), figure(m.Long.Prompt), figure(m.Long.Reply))
			}
			var tiers []string
			for _, name := range slices.Sorted(maps.Keys(m.Tiers)) {
				if m.Tiers[name] != 1 {
					tiers = append(tiers, text.Line(name)+" x"+figure(m.Tiers[name]))
				}
			}
			for _, p := range m.Prices {
				fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", text.Line(v.Name), text.Line(m.ID), text.Thousands(m.Window),
					figure(p.Input), figure(p.CacheRead), figure(p.CacheWrite), figure(p.Output), p.From, long, strings.Join(tiers, ", "), v.Checked)
			}
		}
	}
	fmt.Fprintf(w, "\nUS dollars per million tokens; the book is %s\n", text.Line(from))
	return w.Flush()
}
