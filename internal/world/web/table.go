package web

import (
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"
)

const maxColumns = 60

// table renders a data table as rows, and a layout table as the content of its cells.
func (r *renderer) table(n *node) {
	if r.flow || layout(n) {
		r.paragraph()
		r.kids(n)
		r.paragraph()
		return
	}
	r.paragraph()
	g := grid{r: r}
	g.rows(n)
	r.paragraph()
}

// layout reports a table whose cells contain more than lines of text, or that has one cell per row.
func layout(n *node) bool {
	if n.attr["role"] == "presentation" || n.attr["role"] == "none" || n.tables {
		return true
	}
	wide := false
	var look func(*node) bool
	look = func(n *node) bool {
		cells := 0
		for _, k := range n.kids {
			if k.gone {
				continue
			}
			switch k.tag {
			case atom.Td, atom.Th:
				if cells++; hasCode(k) || k.blocks && k.all > 400 {
					return true
				}
			case atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr:
				if look(k) {
					return true
				}
			}
		}
		wide = wide || cells > 1
		return false
	}
	return look(n) || !wide
}

func hasCode(n *node) bool {
	for _, k := range n.kids {
		if k.tag == atom.Pre || k.blocks && hasCode(k) {
			return true
		}
	}
	return false
}

// grid renders rows of cells. A cell that spans several rows or columns is rendered in the first one.
type grid struct {
	r       *renderer
	below   []int // rows that the cell of each column still reaches down
	written int
}

func (g *grid) rows(n *node) {
	for _, k := range n.kids {
		switch {
		case g.r.skips(k):
		case k.tag == atom.Caption:
			g.r.within(mark{open: "**", shut: "**"}, func() { g.r.kids(k) })
			g.r.paragraph()
		case k.tag == atom.Tr:
			g.row(k)
		case k.tag == atom.Thead || k.tag == atom.Tbody || k.tag == atom.Tfoot:
			g.rows(k)
		}
	}
}

func (g *grid) row(n *node) {
	var line []string
	any := false
	next := func() {
		for len(line) < len(g.below) && g.below[len(line)] > 0 {
			g.below[len(line)]--
			line = append(line, "")
		}
	}
	for _, k := range n.kids {
		if k.tag != atom.Td && k.tag != atom.Th || k.gone || len(line) >= maxColumns {
			continue
		}
		next()
		text := strings.ReplaceAll(g.r.flat(k), "|", `\|`)
		any = any || text != ""
		down := span(k.attr["rowspan"]) - 1
		for i := range min(span(k.attr["colspan"]), maxColumns-len(line)) {
			for len(g.below) <= len(line) {
				g.below = append(g.below, 0)
			}
			g.below[len(line)] = down
			if i > 0 {
				text = ""
			}
			line = append(line, text)
		}
	}
	next()
	if !any {
		return
	}
	g.r.verbatim("| " + strings.Join(line, " | ") + " |")
	if g.written == 0 {
		g.r.verbatim("|" + strings.Repeat(" --- |", len(line)))
	}
	g.written++
}

func span(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, 1000)
}
