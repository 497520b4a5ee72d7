package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// narrow is the width below which no column is shrunk.
const narrow = 4

// grid is a table: its cells by rows, the head first.
type grid struct {
	rows  [][][]span
	align []side
	width []int
}

func (p *painter) table(n *table, width int) []line {
	g := grid{align: n.columns, width: make([]int, len(n.columns))}
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		row := make([][]span, len(g.width))
		i := 0
		for c := r.FirstChild(); c != nil && i < len(row); c = c.NextSibling() {
			row[i] = p.cell(c, r == n.FirstChild())
			g.width[i] = max(g.width[i], widest(row[i]))
			i++
		}
		g.rows = append(g.rows, row)
	}
	if !g.fit(width - 1 - 3*len(g.width)) {
		return g.list(width)
	}
	return g.draw()
}

// cell returns the text of a cell.
func (p *painter) cell(c ast.Node, head bool) []span {
	w := &writer{painter: p, cell: true}
	w.children(c, look{bold: head}, 0)
	return w.out
}

// widest returns the width of a cell's longest line.
func widest(cell []span) (most int) {
	n := 0
	for _, s := range cell {
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				n = 0
			}
			n += cells(part)
			most = max(most, n)
		}
	}
	return most
}

// fit shrinks the widest columns until all of them take no more than room cells,
// or reports that they can't.
func (g *grid) fit(room int) bool {
	sum, floor := 0, 0
	for i, w := range g.width {
		g.width[i] = max(w, 1)
		sum += g.width[i]
		floor += min(g.width[i], narrow)
	}
	if sum <= room {
		return true
	}
	if floor > room {
		return false
	}
	// The maximum width of a column is the largest limit that makes all fit.
	limit, high := narrow, room
	for limit < high {
		mid := (limit + high + 1) / 2
		if g.sum(mid) <= room {
			limit = mid
		} else {
			high = mid - 1
		}
	}
	spare := room - g.sum(limit)
	for i, w := range g.width {
		g.width[i] = min(w, limit)
		if w > limit && spare > 0 {
			g.width[i]++
			spare--
		}
	}
	return true
}

func (g *grid) sum(limit int) (n int) {
	for _, w := range g.width {
		n += min(w, limit)
	}
	return n
}

// draw shows the table in a box. There are rules between rows if one has several lines.
func (g *grid) draw() []line {
	cellLines := make([][][]line, len(g.rows))
	tall := false
	for r, row := range g.rows {
		cellLines[r] = make([][]line, len(row))
		for c, cell := range row {
			cellLines[r][c] = wrap(cell, g.width[c])
			tall = tall || r > 0 && len(cellLines[r][c]) > 1
		}
	}
	out := []line{g.rule("┌", "┬", "┐")}
	for r, row := range cellLines {
		if r == 1 || r > 1 && tall {
			out = append(out, g.rule("├", "┼", "┤"))
		}
		out = append(out, g.row(row)...)
	}
	return append(out, g.rule("└", "┴", "┘"))
}

func (g *grid) rule(left, middle, right string) line {
	var b strings.Builder
	for i, w := range g.width {
		b.WriteString(middle)
		if i == 0 {
			b.Reset()
			b.WriteString(left)
		}
		b.WriteString(strings.Repeat("─", w+2))
	}
	return line{{b.String() + right, look{faint: true}}}
}

func (g *grid) row(columns [][]line) []line {
	height := 1
	for _, c := range columns {
		height = max(height, len(c))
	}
	bar := look{faint: true}
	out := make([]line, height)
	for i := range out {
		l := line{{"│ ", bar}}
		for c, lines := range columns {
			if c > 0 {
				l = append(l, span{" │ ", bar})
			}
			var text line
			if i < len(lines) {
				text = lines[i]
			}
			l = append(l, g.pad(text, c)...)
		}
		out[i] = append(l, span{" │", bar})
	}
	return out
}

// pad fills a line of a cell up to the width of its column.
func (g *grid) pad(text line, column int) line {
	space := max(0, g.width[column]-width(text))
	left := 0
	switch g.align[column] {
	case atRight:
		left = space
	case atCenter:
		left = space / 2
	}
	out := line{{strings.Repeat(" ", left), look{}}}
	return append(append(out, text...), span{strings.Repeat(" ", space-left), look{}})
}

// list shows a table that is too wide for any box: each row as lines with a column's name and content.
func (g *grid) list(width int) []line {
	var out []line
	for r, row := range g.rows[1:] {
		if r > 0 {
			out = append(out, nil)
		}
		for c, cell := range row {
			if len(cell) == 0 {
				continue
			}
			text := append([]span{}, g.rows[0][c]...)
			out = append(out, wrap(append(append(text, span{": ", look{}}), cell...), width)...)
		}
	}
	if len(g.rows) == 1 {
		for _, cell := range g.rows[0] {
			out = append(out, wrap(cell, width)...)
		}
	}
	return out
}
