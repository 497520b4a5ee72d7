package markdown

import (
	escaper "html"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Table has rows of text below a head. Rows may differ in length.
type Table struct {
	Head []string
	Rows [][]string
}

// columns returns the largest number of cells in a row.
func (t Table) columns() int {
	n := len(t.Head)
	for _, r := range t.Rows {
		n = max(n, len(r))
	}
	return n
}

// Markdown writes the table in markdown. Markdown in a cell stays markdown; bars and line ends in it do not end
// the cell.
func (t Table) Markdown() string {
	n := t.columns()
	if n == 0 {
		return ""
	}
	var b strings.Builder
	row := func(cells []string) {
		for i := range n {
			b.WriteString("| " + markdownCell(at(cells, i)) + " ")
		}
		b.WriteString("|\n")
	}
	row(t.Head)
	b.WriteString(strings.Repeat("| --- ", n) + "|\n")
	for _, r := range t.Rows {
		row(r)
	}
	return b.String()
}

func at(cells []string, i int) string {
	if i < len(cells) {
		return cells[i]
	}
	return ""
}

// markdownCell escapes bars. Backslashes before one are doubled, so that they are kept.
func markdownCell(text string) string {
	text = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	var b strings.Builder
	slashes := 0
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\':
			slashes++
			b.WriteByte(c)
			continue
		case '|':
			b.WriteString(strings.Repeat(`\`, slashes+1) + "|")
		case '\n':
			b.WriteString("<br>")
		default:
			b.WriteByte(c)
		}
		slashes = 0
	}
	return b.String()
}

// HTML writes the table for a page. Cells are text, whatever their content.
func (t Table) HTML() string {
	n := t.columns()
	if n == 0 {
		return ""
	}
	var b strings.Builder
	row := func(tag string, cells []string) {
		b.WriteString("<tr>")
		for i := range n {
			text := escaper.EscapeString(text.VisibleLines(strings.ReplaceAll(at(cells, i), "\r\n", "\n")))
			b.WriteString("<" + tag + ">" + strings.ReplaceAll(text, "\n", "<br>") + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<table>\n")
	if len(t.Head) > 0 {
		row("th", t.Head)
	}
	for _, r := range t.Rows {
		row("td", r)
	}
	b.WriteString("</table>\n")
	return b.String()
}
