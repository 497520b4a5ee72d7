package markdown

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/words"
)

const (
	defaultWidth = 80
	leastWidth   = 10 // below it nothing can be drawn, so lines are cut
	leastBar     = 3  // cells of the longest bar, or there are no bars
)

// Text draws the chart in lines of at most width cells, without colours and without
// a newline at the end. A width of zero or less means 80.
func (c Chart) Text(width int) string {
	if width <= 0 {
		width = defaultWidth
	}
	if err := c.Check(); err != nil {
		return words.OneLine(err.Error(), width)
	}
	draw := max(width, leastWidth)
	var lines []string
	switch c.Kind {
	case Bar:
		lines = c.textBars(draw)
	case Histogram:
		lines = c.bins().textBars(draw)
	default:
		lines = c.textPlot(draw)
	}
	if c.Title != "" {
		lines = append([]string{words.OneLine(c.Title, draw), ""}, lines...)
	}
	for i, l := range lines {
		if ansi.StringWidth(l) > width {
			l = ansi.Truncate(l, width, "")
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// bar is one line of a bar chart.
type bar struct {
	label string
	value float64
	head  bool // it has only a label: that of the bars below
}

// barList has all bars of a chart.
type barList []bar

func (c Chart) bars() (out barList) {
	for i := range c.Series[0].Values {
		if len(c.Series) == 1 {
			out = append(out, bar{label: c.label(i), value: c.Series[0].Values[i]})
			continue
		}
		out = append(out, bar{label: c.label(i), head: true})
		for j, s := range c.Series {
			name := s.Name
			if name == "" {
				name = c.name(j)
			}
			out = append(out, bar{label: "  " + name, value: s.Values[i]})
		}
	}
	return out
}

// textBars draws bars from left to right: the label, the bar, the number. Negative ones go to the left of a
// line.
func (c Chart) textBars(width int) (out []string) {
	bars, labels, room := c.bars().laidOut(width)
	low, high := extent(valuesOf(c.Series)...)
	low, high = min(low, 0), max(high, 0)
	left := 0
	if high-low > 0 {
		left = int(math.Round(float64(room) * -low / (high - low)))
	}
	if low < 0 {
		left = max(1, min(left, room-1))
	}
	if name := c.subject(); name != "" {
		out = append(out, words.OneLine(name, width))
	}
	for _, b := range bars {
		switch {
		case b.head:
			out = append(out, b.label)
		case room == 0:
			out = append(out, padded(b.label, atLeft, labels)+" "+numeral(b.value))
		default:
			out = append(out, padded(b.label, atLeft, labels)+" "+strip(b.value, low, high, left, room-left)+" "+numeral(b.value))
		}
	}
	return out
}

// laidOut cuts the labels so that the numbers stay, and returns the widths for the labels and the bars. Labels
// give way to bars, and bars to numbers: there are none if the room is 0.
func (bars barList) laidOut(width int) (out barList, labels, room int) {
	numbers := 0
	for _, b := range bars {
		if !b.head {
			numbers = max(numbers, len(numeral(b.value)))
		}
	}
	most := min(width*2/5, width-numbers-3-leastBar)
	if most < leastBar {
		most = max(1, width-numbers-1)
	}
	for _, b := range bars {
		if b.head {
			b.label = words.OneLine(b.label, width)
		} else {
			indent := min(len(b.label)-len(strings.TrimLeft(b.label, " ")), 2, most/3)
			b.label = strings.Repeat(" ", indent) + words.OneLine(b.label, most-indent)
			labels = max(labels, ansi.StringWidth(b.label))
		}
		out = append(out, b)
	}
	if room = width - labels - numbers - 3; room < leastBar {
		room = 0
	}
	return out, labels, room
}

// strip returns a bar in left cells for the part below zero and right ones above. Only a zero has no bar.
func strip(v, low, high float64, left, right int) string {
	const eighths = "▏▎▍▌▋▊▉█"
	if v < 0 {
		halves := max(1, int(math.Round(v/low*float64(2*left))))
		bar := strings.Repeat("▐", halves%2) + strings.Repeat("█", halves/2)
		return strings.Repeat(" ", left-halves/2-halves%2) + bar + "│"
	}
	line := ""
	if low < 0 {
		line = strings.Repeat(" ", left) + "│"
	}
	if v == 0 {
		return line
	}
	n := max(1, int(math.Round(v/high*float64(8*right))))
	line += strings.Repeat("█", n/8)
	if n%8 > 0 {
		line += string([]rune(eighths)[n%8-1])
	}
	return line
}

// subject describes the bars: the values by the labels.
func (c Chart) subject() string {
	if c.X != "" && c.Y != "" {
		return c.Y + " by " + c.X
	}
	return c.Y + c.X
}
