package markdown

// Charts are drawn as text for terminals and as SVG for pages, tables as markdown and as HTML, and pages
// contain them. The same figure always looks the same. Labels, names and cells may have any content; they are
// escaped for their destination.

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kinds of charts.
const (
	Bar       = "bar"       // a bar for each label, for each series
	Line      = "line"      // values in order, along the labels if there are any
	Scatter   = "scatter"   // the first series has x, each other one y
	Histogram = "histogram" // how many values of one series lie in each range
)

// Limits of a chart.
const (
	MaxPoints = 2000 // of all series together
	MaxSeries = 12
	maxValue  = 1e300 // so that the difference of two values is a number
)

// Chart is a chart of numbers. Check it first: a chart that Check refuses is drawn as the text of the refusal.
type Chart struct {
	Kind   string   `json:"kind"` // Bar, Line, Scatter or Histogram
	Title  string   `json:"title,omitempty"`
	X      string   `json:"x,omitempty"` // title of the axis; may be empty
	Y      string   `json:"y,omitempty"`
	Labels []string `json:"labels,omitempty"` // of the values of each series, in order; nil: counted from 1
	Series []Series `json:"series"`
}

// Series is a row of numbers.
type Series struct {
	Name   string    `json:"name,omitempty"` // may be empty if it is the only one
	Values []float64 `json:"values"`
}

// Check returns the fault of the chart, for its author; nil means it can be drawn.
func (c Chart) Check() error {
	if !slices.Contains([]string{Bar, Line, Scatter, Histogram}, c.Kind) {
		return fmt.Errorf("kind %q is not one of %s, %s, %s, %s", c.Kind, Bar, Line, Scatter, Histogram)
	}
	points := 0
	for _, s := range c.Series {
		points += len(s.Values)
	}
	switch {
	case points == 0:
		return errors.New("the chart has no values")
	case len(c.Series) > MaxSeries:
		return fmt.Errorf("the chart has %d series, more than %d", len(c.Series), MaxSeries)
	case points > MaxPoints:
		return fmt.Errorf("the chart has %d values, more than %d; give means or a part of them", points, MaxPoints)
	case c.Kind == Scatter && len(c.Series) < 2:
		return errors.New("a scatter chart needs two series at least: the first is x, each other one y")
	case c.Kind == Histogram && len(c.Series) > 1:
		return fmt.Errorf("a histogram has one series, not %d", len(c.Series))
	case len(c.Labels) > 0 && (c.Kind == Scatter || c.Kind == Histogram):
		return fmt.Errorf("a %s has no labels", c.Kind)
	}
	n := len(c.Series[0].Values)
	if len(c.Labels) > 0 && len(c.Labels) != n {
		return fmt.Errorf("there are %d labels for the %d values of %s", len(c.Labels), n, c.name(0))
	}
	for i, s := range c.Series {
		if len(s.Values) != n {
			return fmt.Errorf("%s has %d values and %s has %d; all series must have as many", c.name(0), n, c.name(i), len(s.Values))
		}
		for j, v := range s.Values {
			if math.IsNaN(v) || math.Abs(v) > maxValue {
				return fmt.Errorf("value %d of %s is %v, which can't be drawn", j+1, c.name(i), v)
			}
		}
	}
	return nil
}

// name returns the name of a series in errors.
func (c Chart) name(i int) string {
	if name := c.Series[i].Name; name != "" {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("series %d", i+1)
}

// label returns the label of the value with an index.
func (c Chart) label(i int) string {
	if i < len(c.Labels) {
		return c.Labels[i]
	}
	return strconv.Itoa(i + 1)
}

// extent returns the smallest and the largest of values.
func extent(values ...[]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// scale is an axis: a range that begins and ends at round numbers.
type scale struct{ low, high, step float64 }

// scaleOf covers values with about the given number of steps. Values that floating point can hardly distinguish
// count as one.
func scaleOf(low, high float64, steps int) scale {
	if high-low <= 1e-12*max(math.Abs(low), math.Abs(high))+1e-290 {
		pad := max(math.Abs(low)/2, 0.5)
		low, high = low-pad, high+pad
	}
	step := round((high - low) / float64(max(steps, 1)))
	return scale{math.Floor(low/step) * step, math.Ceil(high/step) * step, step}
}

// round returns the next of 1, 2 and 5 times a power of ten.
func round(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= step*(1-1e-9) {
			return n * power
		}
	}
	return 10 * power
}

// ticks returns the round numbers on the axis, lowest first.
func (s scale) ticks() []float64 {
	n := int(math.Round((s.high - s.low) / s.step))
	var out []float64
	for i := range min(n, 100) + 1 {
		out = append(out, s.low+float64(i)*s.step)
	}
	return out
}

// at returns the place of a value on the axis, from 0 to 1.
func (s scale) at(v float64) float64 { return max(0, min(1, (v-s.low)/(s.high-s.low))) }

// tick formats a number of the axis with no more digits than needed to distinguish the steps.
func (s scale) tick(v float64) string {
	if math.Abs(v) < s.step/2 {
		return "0"
	}
	if big := max(math.Abs(s.low), math.Abs(s.high)); big >= 1e7 || s.step < 1e-5 {
		return numeral(v)
	}
	return strconv.FormatFloat(v, 'f', max(0, int(math.Ceil(-math.Log10(s.step)-1e-9))), 64)
}

// numeral formats a value in a few characters, with at most six digits.
func numeral(v float64) string {
	short := strconv.FormatFloat(v, 'g', 6, 64)
	if strings.Contains(short, "e") && math.Abs(v) < 1e9 && math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return short
}

// bins makes a bar chart of a histogram: how many values lie in each range.
func (c Chart) bins() Chart {
	values := c.Series[0].Values
	low, high := extent(values)
	axis := scaleOf(low, high, max(4, min(20, int(math.Sqrt(float64(len(values)))))))
	ticks := axis.ticks()
	counts := make([]float64, max(1, len(ticks)-1))
	for _, v := range values {
		counts[min(len(counts)-1, max(0, int((v-axis.low)/axis.step)))]++
	}
	out := Chart{Kind: Bar, Title: c.Title, X: c.X, Y: c.Y, Series: []Series{{Name: c.Series[0].Name, Values: counts}}}
	for i := range counts {
		out.Labels = append(out.Labels, axis.tick(ticks[i])+" to "+axis.tick(axis.low+float64(i+1)*axis.step))
	}
	return out
}

// lines returns the series that a line or scatter chart shows over x.
func (c Chart) lines() (x []float64, ys []Series) {
	if c.Kind == Scatter {
		return c.Series[0].Values, c.Series[1:]
	}
	for i := range c.Series[0].Values {
		x = append(x, float64(i+1))
	}
	return x, c.Series
}

func valuesOf(series []Series) [][]float64 {
	var out [][]float64
	for _, s := range series {
		out = append(out, s.Values)
	}
	return out
}
