package markdown

import (
	_ "embed"
	"fmt"
	escaper "html"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/words"
)

//go:embed svg.css
var svgStyle string

// Sizes of an SVG, in its own units, which are pixels at its full size.
const (
	svgWidth  = 720
	svgMargin = 12
	svgLine   = 18 // of text
	svgCell   = 7  // about what a cell of text is wide
	svgPlot   = 300
)

// SVG draws the chart as one self-contained element that is readable on a light and a dark background. For a
// chart that Check refuses it is the text of the refusal.
func (c Chart) SVG() string {
	s := &svg{top: svgMargin}
	name := c.Title
	if err := c.Check(); err != nil {
		name = err.Error()
		s.title(name)
		return s.whole(name)
	}
	if name == "" {
		name = c.Kind + " chart"
	}
	if c.Title != "" {
		s.title(c.Title)
	}
	switch c.Kind {
	case Bar:
		s.bars(c)
	case Histogram:
		s.bars(c.bins())
	default:
		s.plot(c)
	}
	return s.whole(name)
}

// svg collects drawings, from the top downwards.
type svg struct {
	strings.Builder
	top float64
}

func (s *svg) whole(name string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" role="img" `+
		`class="chart"><title>%s</title><style>%s</style>%s</svg>`+"\n",
		svgWidth, math.Ceil(s.top+svgMargin), svgWidth, safe(name, 200), strings.TrimSpace(svgStyle), s.String())
}

// safe returns text for an element or an attribute, in at most the given cells.
func safe(text string, cells int) string { return escaper.EscapeString(words.OneLine(text, cells)) }

// text writes text at a place; anchor is start, middle or end, and room its width.
func (s *svg) text(x, y float64, anchor, text string, room float64) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, safe(text, max(1, int(room/svgCell))))
}

func (s *svg) title(text string) {
	s.top += svgLine
	fmt.Fprintf(s, `<text x="%d" y="%.1f" class="title">%s</text>`, svgMargin, s.top, safe(text, (svgWidth-2*svgMargin)/(svgCell+1)))
	s.top += svgLine / 2
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(s, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// note writes a line of text below everything before.
func (s *svg) note(text string) {
	if text != "" {
		s.top += svgLine
		s.text(svgMargin, s.top, "start", text, svgWidth-2*svgMargin)
		s.top += 4
	}
}

// legend explains the colours of series.
func (s *svg) legend(series []Series) {
	if len(series) < 2 {
		return
	}
	x := float64(svgMargin)
	s.top += svgLine
	for k, one := range series {
		name := words.OneLine(one.Name, 30)
		wide := float64(svgCell*ansi.StringWidth(name) + 34)
		if x > svgMargin && x+wide > svgWidth-svgMargin {
			x, s.top = svgMargin, s.top+svgLine
		}
		fmt.Fprintf(s, `<rect class="s%d" x="%.1f" y="%.1f" width="11" height="11" rx="2"/>`, k, x, s.top-10)
		s.text(x+16, s.top, "start", name, 31*svgCell)
		x += wide
	}
	s.top += 6
}

// bars draws bars from left to right. If there are very many, they are thin and only some have their label and
// their number.
func (s *svg) bars(c Chart) {
	s.note(c.subject())
	s.legend(c.Series)
	n := len(c.Series[0].Values)
	labels := 0
	for i := range n {
		labels = max(labels, ansi.StringWidth(words.OneLine(c.label(i), 34)))
	}
	left, room := float64(svgMargin+svgCell*labels+8), 0.0
	low, high := extent(valuesOf(c.Series)...)
	low, high = min(low, 0), max(high, 0)
	room = svgWidth - svgMargin - left - 70 // for the number
	at := func(v float64) float64 {
		if high == low {
			return left
		}
		return left + room*(v-low)/(high-low)
	}
	thick := max(2, min(14, 6000/float64(n*len(c.Series))))
	group := thick*float64(len(c.Series)) + max(1, thick/3)
	every := max(1, int(math.Ceil(12/group)))
	s.top += 6
	for i := range n {
		y := s.top + float64(i)*group
		if i%every == 0 {
			s.text(left-6, y+group/2+2, "end", c.label(i), 34*svgCell)
		}
		for k, one := range c.Series {
			v := one.Values[i]
			x0, x1, top := min(at(0), at(v)), max(at(0), at(v)), y+float64(k)*thick
			fmt.Fprintf(s, `<rect class="s%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`, k, x0, top, x1-x0,
				max(1, thick-1), safe(c.label(i)+": "+numeral(v), 100))
			if thick >= 10 {
				s.text(x1+4, top+thick-3, "start", numeral(v), 66)
			}
		}
	}
	s.line("axis", at(0), s.top-3, at(0), s.top+float64(n)*group+1)
	s.top += float64(n) * group
}

// plot draws lines or points between their axes.
func (s *svg) plot(c Chart) {
	x, ys := c.lines()
	low, high := extent(valuesOf(ys)...)
	up, across := scaleOf(low, high, 5), c.across(x)
	s.note(c.Y)
	s.legend(ys)
	s.top += 10
	marks := 0
	for _, v := range up.ticks() {
		marks = max(marks, len(up.tick(v)))
	}
	left, right, top := float64(svgMargin+svgCell*marks+8), float64(svgWidth-svgMargin-8), s.top
	px := func(v float64) float64 { return left + (right-left)*across.at(v) }
	py := func(v float64) float64 { return top + svgPlot*(1-up.at(v)) }
	for _, v := range up.ticks() {
		s.line("grid", left, py(v), right, py(v))
		s.text(left-6, py(v)+4, "end", up.tick(v), 200)
	}
	s.line("axis", left, top, left, top+svgPlot)
	s.line("axis", left, top+svgPlot, right, top+svgPlot)
	for k, one := range ys {
		s.series(c.Kind, k, x, one.Values, px, py)
	}
	s.top += svgPlot + svgLine
	s.under(c, across, px)
	s.note(c.X)
}

// series draws one, as a line with its points or as points.
func (s *svg) series(kind string, k int, x, y []float64, px, py func(float64) float64) {
	if kind == Line {
		var points []string
		for i := range y {
			points = append(points, fmt.Sprintf("%.1f,%.1f", px(x[i]), py(y[i])))
		}
		fmt.Fprintf(s, `<polyline class="l%d" points="%s"/>`, k, strings.Join(points, " "))
		if len(y) > 60 {
			return
		}
	}
	for i := range y {
		fmt.Fprintf(s, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3"/>`, k, px(x[i]), py(y[i]))
	}
}

// under writes the numbers or the labels below the axis.
func (s *svg) under(c Chart, across scale, px func(float64) float64) {
	if c.Kind == Scatter {
		for _, v := range across.ticks() {
			s.text(px(v), s.top, "middle", across.tick(v), 200)
		}
		return
	}
	n := len(c.Series[0].Values)
	every := int(math.Ceil(float64(n) / 8))
	for i := 0; i < n; i += every {
		anchor := "middle"
		if i == 0 {
			anchor = "start"
		}
		s.text(px(float64(i+1)), s.top, anchor, c.label(i), 11*svgCell)
	}
}
