package markdown

import (
	"cmp"
	"strings"
)

// Tables passes markdown on as it is written, except parts that are unreadable in that form: tables are laid
// out, images with their data in them are named. Set Width and Style before the first Write; a Tables is used
// by one goroutine.
//
// Text is passed on at once. Only possible lines of a table, or of an image, wait until it is certain. A table
// whose head begins without a bar stays as it is, since waiting would delay every line. Blocks of code stay as
// they are.
type Tables struct {
	// Width is that of the terminal, for tables in boxes. Zero means it is not a terminal, so tables stay markdown,
	// with their columns aligned.
	Width int
	Style Style

	line   string // the current line so far
	passed int    // bytes of it already passed on
	rows   []string
	table  bool // the held rows include a line of rules
	fence  fence
	data   dataless
}

// Write handles the next piece and returns the text that can be shown so far.
func (t *Tables) Write(text string) string {
	var b strings.Builder
	for text != "" {
		part, rest, whole := strings.Cut(text, "\n")
		t.line, text = t.line+part, rest
		if whole {
			t.whole(&b)
			continue
		}
		if t.passed > 0 || !t.waits() {
			t.settle(&b)
			t.pass(&b)
		}
	}
	return b.String()
}

// Close returns the held text, and resets the Tables.
func (t *Tables) Close() string {
	var b strings.Builder
	if t.line != "" && t.passed == 0 {
		t.whole(&b)
		t.settle(&b)
		*t = Tables{Width: t.Width, Style: t.Style}
		return strings.TrimSuffix(b.String(), "\n")
	}
	t.settle(&b)
	b.WriteString(t.data.rest())
	*t = Tables{Width: t.Width, Style: t.Style}
	return b.String()
}

// waits reports whether an incomplete line may become one that is not passed on.
func (t *Tables) waits() bool {
	in := indent(t.line)
	if t.fence.mark != 0 || in > 3 {
		return false
	}
	begins := t.line[in:]
	switch {
	case begins == "" || begins == "!" || strings.HasPrefix(begins, "!["):
		return true
	case strings.IndexByte("|`~", begins[0]) >= 0:
		return true
	}
	return len(t.rows) == 1 && strings.IndexByte("-:", begins[0]) >= 0
}

// whole handles a complete line.
func (t *Tables) whole(b *strings.Builder) {
	l := t.line
	switch {
	case t.fence.mark != 0:
		if t.fence.closes(l) {
			t.fence = fence{}
		}
		b.WriteString(l[t.passed:] + "\n")
	case t.passed > 0:
		t.pass(b)
		b.WriteString(t.data.rest() + "\n")
	case t.row(b):
	default:
		t.settle(b)
		if t.fence = opensFence(l); t.fence.mark != 0 {
			b.WriteString(l + "\n")
		} else if p := readPicture(strings.TrimSpace(l)); p != nil {
			for _, l := range wrap([]span{{p.named(), look{}}}, cmp.Or(t.Width, len(l))) {
				b.WriteString(t.Style.paint(l, true) + "\n")
			}
		} else {
			b.WriteString(withoutData(l) + "\n")
		}
	}
	t.line, t.passed, t.data = "", 0, dataless{}
}

// row handles a line that belongs to a table or may begin one, and reports whether it does.
func (t *Tables) row(b *strings.Builder) bool {
	l, in := t.line, indent(t.line)
	bar := in <= 3 && strings.HasPrefix(l[in:], "|")
	if len(t.rows) == 1 && !t.table {
		if rules := readRules([]byte(l)); len(rules) > 0 && len(cellsOf(t.rows[0])) <= len(rules) {
			t.rows, t.table = append(t.rows, l), true
			return true
		}
		t.settle(b)
	}
	if bar {
		t.rows = append(t.rows, l)
	}
	return bar
}

// settle shows the held rows.
func (t *Tables) settle(b *strings.Builder) {
	switch {
	case len(t.rows) == 0:
		return
	case !t.table:
		b.WriteString(withoutData(t.rows[0]) + "\n")
	case t.Width > 0:
		b.WriteString(Render(strings.Join(t.rows, "\n"), t.Width, t.Style) + "\n")
	default:
		b.WriteString(aligned(t.rows))
	}
	t.rows, t.table = nil, false
}

// pass passes on the current line so far.
func (t *Tables) pass(b *strings.Builder) {
	text := t.line[t.passed:]
	if t.fence.mark == 0 {
		text = t.data.write(text)
	}
	b.WriteString(text)
	t.passed = len(t.line)
}

// mostPadding is the largest width of a padded column, so that one long cell does not make every row of a file
// as long.
const mostPadding = 60

// aligned returns a table in markdown with aligned columns.
func aligned(rows []string) string {
	sides := readRules([]byte(rows[1]))
	width := make([]int, len(sides))
	var grid [][]string
	for i, r := range rows {
		cut := cellsOf(withoutData(r))
		for c := range min(len(cut), len(sides)) {
			if n := cells(cut[c]); i != 1 {
				width[c] = max(width[c], min(n, mostPadding))
			}
		}
		grid = append(grid, cut)
	}
	var b strings.Builder
	for i, row := range grid {
		for c, side := range sides {
			w := max(width[c], 3)
			text := ""
			if c < len(row) {
				text = row[c]
			}
			if i == 1 {
				text = ruled(side, row[c], w)
			}
			b.WriteString("| " + padded(text, side, w) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// ruled returns the rule below a column's head, with the colons of the original.
func ruled(s side, written string, w int) string {
	left, right := "-", "-"
	if strings.HasPrefix(written, ":") {
		left = ":"
	}
	if s != atLeft {
		right = ":"
	}
	return left + strings.Repeat("-", w-2) + right
}

// padded pads a cell with blanks by the alignment of its column.
func padded(text string, s side, w int) string {
	space := max(0, w-cells(text))
	left := 0
	switch s {
	case atRight:
		left = space
	case atCenter:
		left = space / 2
	}
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", space-left)
}

// cellsOf splits a row as readRow does.
func cellsOf(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	var out []string
	for row != "" {
		n := barAt([]byte(row))
		out = append(out, strings.TrimSpace(row[:n]))
		row = row[min(n+1, len(row)):]
	}
	return out
}
