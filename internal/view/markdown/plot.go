package markdown

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/words"
)

// Rows of a plot, without its axis.
const (
	fewestRows = 6
	mostRows   = 18
	leastPlot  = 7 // cells across; below it the numbers are not next to the axis
)

// canvas has cells of two by four dots each. Letters cover the dots.
type canvas struct {
	columns, rows int
	dots          []uint8
	letters       []rune
}

func newCanvas(columns, rows int) *canvas {
	return &canvas{columns, rows, make([]uint8, columns*rows), make([]rune, columns*rows)}
}

// dot sets a dot; y counts from below.
func (c *canvas) dot(x, y int) {
	bits := [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
	y = 4*c.rows - 1 - y
	c.dots[y/4*c.columns+x/2] |= bits[y%4][x%2]
}

// letter puts one over the cell of a dot.
func (c *canvas) letter(x, y int, r rune) {
	c.letters[(4*c.rows-1-y)/4*c.columns+x/2] = r
}

// stroke joins two dots.
func (c *canvas) stroke(x0, y0, x1, y1 int) {
	n := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range n + 1 {
		c.dot(x0+(x1-x0)*i/n, y0+(y1-y0)*i/n)
	}
}

func abs(n int) int { return max(n, -n) }

func (c *canvas) row(i int) string {
	var b strings.Builder
	for at := i * c.columns; at < (i+1)*c.columns; at++ {
		switch {
		case c.letters[at] != 0:
			b.WriteRune(c.letters[at])
		case c.dots[at] != 0:
			b.WriteRune(0x2800 + rune(c.dots[at]))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// textPlot draws lines or points with their axes, and a legend.
func (c Chart) textPlot(width int) (out []string) {
	x, ys := c.lines()
	rows := max(fewestRows, min(mostRows, width/5))
	low, high := extent(valuesOf(ys)...)
	up := scaleOf(low, high, rows/3)
	steps := len(up.ticks()) - 1
	rows = steps*max(1, rows/steps) + 1 // so that all ticks are equally far apart
	marks := marksOf(up, rows)
	margin := 0
	for _, m := range marks {
		margin = max(margin, len(m))
	}
	if c.Y != "" {
		out = append(out, words.OneLine(c.Y, width))
	}
	if width-margin-2 < leastPlot { // the numbers are above
		out = append(out, words.OneLine(up.tick(up.low)+" to "+up.tick(up.high), width))
		marks, margin = make([]string, rows), 0
	}
	across := c.across(x)
	grid := newCanvas(width-margin-2, rows)
	c.draw(grid, across, up, x, ys)
	for i := range rows {
		mark, axis := marks[i], "│"
		if mark != "" {
			axis = "┤"
		}
		out = append(out, strings.Repeat(" ", margin-len(mark))+mark+axis+grid.row(i))
	}
	blank := strings.Repeat(" ", margin)
	out = append(out, blank+"└"+strings.Repeat("─", grid.columns), blank+" "+c.underAxis(grid.columns, across))
	if c.X != "" {
		out = append(out, blank+" "+words.OneLine(c.X, grid.columns))
	}
	return append(out, legend(ys, width)...)
}

// marksOf returns the numbers next to their rows; empty for the other rows.
func marksOf(up scale, rows int) []string {
	out := make([]string, rows)
	for _, v := range up.ticks() {
		out[rows-1-int(math.Round(up.at(v)*float64(rows-1)))] = up.tick(v)
	}
	return out
}

// across returns the axis of x. For a line it ends with its values.
func (c Chart) across(x []float64) scale {
	low, high := extent(x)
	if c.Kind == Scatter {
		return scaleOf(low, high, 5)
	}
	return scale{low, max(high, low+1), 1}
}

// draw puts the series on the canvas. Each of several is marked by its letter: at each point, or at the last
// one of a line.
func (c Chart) draw(g *canvas, across, up scale, x []float64, ys []Series) {
	at := func(s Series, i int) (int, int) {
		// The lowest and the highest tick lie in the middle of their rows.
		return int(math.Round(across.at(x[i]) * float64(2*g.columns-1))), int(math.Round(up.at(s.Values[i])*float64(4*g.rows-4))) + 2
	}
	for _, s := range ys {
		for i := range s.Values {
			px, py := at(s, i)
			switch {
			case c.Kind == Line && i > 0:
				qx, qy := at(s, i-1)
				g.stroke(qx, qy, px, py)
			default:
				g.dot(px, py)
			}
		}
	}
	for k, s := range ys {
		for i := range s.Values {
			if px, py := at(s, i); len(ys) > 1 && (c.Kind == Scatter || i == len(s.Values)-1) {
				g.letter(px, py, 'a'+rune(k))
			}
		}
	}
}

// underAxis returns the text at the ends of the axis of x, and in its middle.
func (c Chart) underAxis(columns int, across scale) string {
	n := len(c.Series[0].Values)
	left, right, middle := across.tick(across.low), across.tick(across.high), across.tick((across.low+across.high)/2)
	if c.Kind == Line {
		left, right, middle = c.label(0), c.label(n-1), c.label(n/2)
		if n%2 == 0 { // none is in the middle
			middle = ""
		}
	}
	room := columns / 3
	if room < 6 { // for three
		room, middle = columns/2, ""
	}
	left, middle, right = words.OneLine(left, room), words.OneLine(middle, room-2), words.OneLine(right, room)
	if n == 1 && c.Kind == Line {
		return left
	}
	start := (columns - ansi.StringWidth(middle)) / 2
	line := padded(padded(left, atLeft, start)+middle, atLeft, columns-ansi.StringWidth(right))
	return line + right
}

// legend explains the letters, or names the only series.
func legend(ys []Series, width int) []string {
	if len(ys) == 1 {
		if ys[0].Name == "" {
			return nil
		}
		return []string{words.OneLine(ys[0].Name, width)}
	}
	line := ""
	var out []string
	for k, s := range ys {
		entry := string('a'+rune(k)) + " " + words.OneLine(s.Name, width-4)
		if line != "" && ansi.StringWidth(line)+ansi.StringWidth(entry)+3 > width {
			out, line = append(out, line), ""
		}
		if line != "" {
			entry = line + " · " + entry
		}
		line = entry
	}
	return append(out, line)
}
