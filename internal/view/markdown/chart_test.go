package markdown_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
)

func wave(n int, f func(float64) float64) (out []float64) {
	for i := range n {
		out = append(out, f(float64(i)/10))
	}
	return out
}

// charts are one of each sort, and odd ones.
func charts() map[string]markdown.Chart {
	sine, ramp := wave(100, func(x float64) float64 { return 3 * math.Sin(x) }), wave(100, func(x float64) float64 { return x/2 - 1 })
	evil := "</text><script>alert(1)</script>\x1b[2J\u202e\"'&\x00\xff"
	return map[string]markdown.Chart{
		"bar": {
			Kind: markdown.Bar, Title: "Lines by file", X: "file", Y: "lines",
			Labels: []string{"cart.go", "漢字 and a long name of a file that goes on and on", "x", ""},
			Series: []markdown.Series{{Values: []float64{210, 83.5, 1, 0}}},
		},
		"bar-groups": {
			Kind: markdown.Bar, Labels: []string{"a", "b", "c"},
			Series: []markdown.Series{{Name: "in", Values: []float64{5, -3, 0}}, {Name: "out", Values: []float64{-10, 4, 0.001}}},
		},
		"bar-below":   {Kind: markdown.Bar, Series: []markdown.Series{{Values: []float64{-1, -2.5}}}},
		"bar-nothing": {Kind: markdown.Bar, Labels: []string{"a"}, Series: []markdown.Series{{Values: []float64{0}}}},
		"line": {
			Kind: markdown.Line, Title: "Waves", X: "time", Y: "volts",
			Series: []markdown.Series{{Name: "sine", Values: sine}, {Name: "ramp", Values: ramp}},
		},
		"line-labels": {
			Kind: markdown.Line, Labels: []string{"Monday", "Tuesday", "火曜日"},
			Series: []markdown.Series{{Name: "visitors", Values: []float64{12, 31, 17}}},
		},
		"line-one":  {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{7}}}},
		"line-flat": {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{0, 0, 0}}}},
		"scatter":   {Kind: markdown.Scatter, X: "sine", Y: "ramp", Series: []markdown.Series{{Values: sine}, {Values: ramp}}},
		"scatter-two": {Kind: markdown.Scatter, Series: []markdown.Series{
			{Values: []float64{1, 2, 3}},
			{Name: "up", Values: []float64{1, 2, 3}},
			{Name: "down", Values: []float64{3, 2, 0}},
		}},
		"histogram":   {Kind: markdown.Histogram, Title: "How often", Series: []markdown.Series{{Values: sine}}},
		"histogram-1": {Kind: markdown.Histogram, Series: []markdown.Series{{Values: []float64{4, 4, 4}}}},
		"evil": {
			Kind: markdown.Bar, Title: evil, X: evil, Y: evil, Labels: []string{evil},
			Series: []markdown.Series{{Name: evil, Values: []float64{1}}, {Name: "b", Values: []float64{2}}},
		},
		"evil-line": {
			Kind: markdown.Line, Title: evil, X: evil, Y: evil, Labels: []string{evil, evil},
			Series: []markdown.Series{{Name: evil, Values: []float64{1, 2}}},
		},
		"huge":         {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{-1e300, 1e300, 1e-300}}}},
		"tiny":         {Kind: markdown.Bar, Series: []markdown.Series{{Values: []float64{5e-324, 1e-310}}}},
		"tiny-line":    {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{5e-324, 1e-323}}}},
		"close":        {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{1e15, 1e15 + 0.125}}}},
		"close-bins":   {Kind: markdown.Histogram, Series: []markdown.Series{{Values: []float64{1e15, 1e15 + 0.125}}}},
		"refused":      {Kind: "pie " + evil, Series: []markdown.Series{{Values: []float64{1}}}},
		"many-series":  {Kind: markdown.Line, Series: many(markdown.MaxSeries, 100)},
		"many-bars":    {Kind: markdown.Bar, Series: many(1, markdown.MaxPoints)},
		"many-points":  {Kind: markdown.Scatter, Series: many(2, markdown.MaxPoints/2)},
		"many-to-bins": {Kind: markdown.Histogram, Series: many(1, markdown.MaxPoints)},
	}
}

func many(series, values int) (out []markdown.Series) {
	for k := range series {
		out = append(out, markdown.Series{
			Name:   strings.Repeat("n", k+1),
			Values: wave(values, func(x float64) float64 { return float64(k) + math.Cos(x*float64(k+1)) }),
		})
	}
	return out
}

// harmless checks properties of all drawn text.
func harmless(t *testing.T, s string, width int) {
	t.Helper()
	for line := range strings.SplitSeq(s, "\n") {
		if n := ansi.StringWidth(line); n > width {
			t.Errorf("%d cells of %d: %q", n, width, line)
		}
		if text.Visible(line) != line || strings.HasSuffix(line, " ") {
			t.Errorf("%q", line)
		}
	}
}

func TestText(t *testing.T) {
	for name, c := range charts() {
		for _, width := range []int{72, 40, 24, 10, 1, 300} {
			harmless(t, c.Text(width), width)
		}
		if c.Text(0) != c.Text(80) {
			t.Errorf("%s: no width is not 80", name)
		}
		if !strings.HasPrefix(name, "many") {
			golden(t, "testdata/figures/"+name+".txt", c.Text(60)+"\n")
		}
	}
}

func TestSVG(t *testing.T) {
	for name, c := range charts() {
		t.Run(name, func(t *testing.T) {
			svg := c.SVG()
			wellFormed(t, svg)
			if svg != c.SVG() {
				t.Error("it is another one each time")
			}
			if name == "bar-groups" || name == "line" || name == "scatter-two" {
				golden(t, "testdata/figures/"+name+".svg", svg)
			}
		})
	}
}

// wellFormed checks that any program can read an SVG, that the SVG does nothing, and that all its numbers are valid.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %.300q", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains(strings.Fields("svg title style text line rect polyline circle"), start.Name.Local) {
			t.Errorf("an element %q", start.Name.Local)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") || strings.Contains(a.Value, "url(") {
				t.Errorf("an attribute %v", a)
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || a.Name.Local == "width" && strings.HasPrefix(a.Value, "-") {
				t.Errorf("%s: %v", start.Name.Local, a)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	two := []markdown.Series{{Name: "a", Values: []float64{1, 2}}, {Values: []float64{1}}}
	for want, c := range map[string]markdown.Chart{
		`kind "pie" is not one of bar, line, scatter, histogram`: {Kind: "pie"},
		"the chart has no values":                                {Kind: markdown.Bar, Series: []markdown.Series{{Name: "a"}}},
		"the chart has 13 series, more than 12":                  {Kind: markdown.Bar, Series: many(13, 1)},
		"the chart has 2001 values, more than 2000":              {Kind: markdown.Bar, Series: many(1, 2001)},
		"a scatter chart needs two series":                       {Kind: markdown.Scatter, Series: many(1, 3)},
		"a histogram has one series, not 2":                      {Kind: markdown.Histogram, Series: many(2, 3)},
		"a scatter has no labels":                                {Kind: markdown.Scatter, Series: many(2, 1), Labels: []string{"a"}},
		"there are 1 labels for the 3 values of \"n\"":           {Kind: markdown.Bar, Series: many(1, 3), Labels: []string{"a"}},
		`"a" has 2 values and series 2 has 1`:                    {Kind: markdown.Line, Series: two},
		"value 2 of series 1 is NaN": {
			Kind:   markdown.Line,
			Series: []markdown.Series{{Values: []float64{1, math.NaN()}}},
		},
		"value 1 of series 1 is +Inf":    {Kind: markdown.Line, Series: []markdown.Series{{Values: []float64{math.Inf(1)}}}},
		"value 1 of series 1 is -1e+301": {Kind: markdown.Bar, Series: []markdown.Series{{Values: []float64{-1e301}}}},
	} {
		err := c.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			continue
		}
		if !strings.Contains(c.Text(200), want) || !strings.Contains(c.SVG(), "<svg ") {
			t.Errorf("%q is drawn as %q", want, c.Text(200))
		}
	}
	for name, c := range charts() {
		if err := c.Check(); err != nil && name != "refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBarsAreTrue checks that bars are as long as their values are large.
func TestBarsAreTrue(t *testing.T) {
	c := markdown.Chart{Kind: markdown.Bar, Series: []markdown.Series{{Values: []float64{80, 40, 10, -40}}}}
	lines := strings.Split(c.Text(60), "\n")
	length := func(line string) (n float64) {
		for _, r := range line {
			if i := strings.IndexRune("▏▎▍▌▋▊▉█", r); i >= 0 {
				n += float64(i/len("█")+1) / 8
			} else if r == '▐' {
				n += 0.5
			}
		}
		return n
	}
	full := length(lines[0])
	for i, want := range []float64{full, full / 2, full / 8, full / 2} {
		if got := length(lines[i]); math.Abs(got-want) > 0.6 {
			t.Errorf("bar %d is %v long, want %v:\n%s", i, got, want, c.Text(60))
		}
	}
}

// TestBinsCountAll checks that a histogram leaves nothing out.
func TestBinsCountAll(t *testing.T) {
	for range 200 {
		var values []float64
		for range 1 + rand.IntN(300) {
			values = append(values, math.Round(rand.NormFloat64()*100)/float64(1+rand.IntN(20)))
		}
		text := markdown.Chart{Kind: markdown.Histogram, Series: []markdown.Series{{Values: values}}}.Text(80)
		total := 0
		for _, n := range regexp.MustCompile(`(?m) (\d+)$`).FindAllStringSubmatch(text, -1) {
			n, _ := fmtInt(n[1])
			total += n
		}
		if total != len(values) {
			t.Fatalf("%d of %d:\n%s", total, len(values), text)
		}
	}
}

func fmtInt(text string) (n int, err error) {
	for _, r := range text {
		n = 10*n + int(r-'0')
	}
	return n, nil
}

func TestTable(t *testing.T) {
	for _, tc := range []struct {
		table          markdown.Table
		markdown, html string
	}{
		{markdown.Table{}, "", ""},
		{
			markdown.Table{Head: []string{"a", "b|c"}, Rows: [][]string{{"1\n2", `x\|y`}, {"<b>&", `a\b|c`}}},
			"| a | b\\|c |\n| --- | --- |\n| 1<br>2 | x\\\\\\|y |\n| <b>& | a\\b\\|c |\n",
			"<table>\n<tr><th>a</th><th>b|c</th></tr>\n<tr><td>1<br>2</td><td>x\\|y</td></tr>\n<tr><td>&lt;b&gt;&amp;</td><td>a\\b|c</td></tr>\n" +
				"</table>\n",
		},
		{
			markdown.Table{Rows: [][]string{{"a"}, {"b", "c\r\nd\x1b"}}},
			"|  |  |\n| --- | --- |\n| a |  |\n| b | c<br>d\x1b |\n",
			"<table>\n<tr><td>a</td><td></td></tr>\n<tr><td>b</td><td>c<br>d\\x1b</td></tr>\n</table>\n",
		},
	} {
		if diff := cmp.Diff(tc.markdown, tc.table.Markdown()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(tc.html, tc.table.HTML()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPage(t *testing.T) {
	page := markdown.Page("A <title>\x00", "<p>one</p>", charts()["bar-below"].SVG())
	golden(t, "testdata/figures/page.html", page)
	for _, bad := range []string{"<script", "http:", "https:", "url(", "@import", "\x00"} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

func TestThumbnail(t *testing.T) {
	for _, tc := range []struct{ w, h, cols, wantW, wantH int }{
		{400, 200, 80, 80, 40}, {10, 10, 80, 10, 10}, {100, 1000, 80, 12, 120}, {3000, 2, 80, 80, 1}, {1, 500, 80, 1, 120}, {40, 40, 1, 1, 1},
	} {
		img := image.NewNRGBA(image.Rect(5, 5, 5+tc.w, 5+tc.h)) // images need not begin at zero
		for i := range img.Pix {
			img.Pix[i] = []uint8{200, 100, 50, 255}[i%4]
		}
		out, err := png.Decode(bytes.NewReader(markdown.Thumbnail(img, tc.cols)))
		if err != nil {
			t.Fatal(err)
		}
		if b := out.Bounds(); b.Dx() != tc.wantW || b.Dy() != tc.wantH {
			t.Errorf("%+v: %v", tc, b)
		}
		if got := color.NRGBAModel.Convert(out.At(0, 0)); got != (color.NRGBA{200, 100, 50, 255}) {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	half := image.NewGray(image.Rect(0, 0, 4, 1))
	half.Pix = []uint8{0, 255, 255, 255}
	out, err := png.Decode(bytes.NewReader(markdown.Thumbnail(half, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if l, r := color.GrayModel.Convert(out.At(0, 0)), color.GrayModel.Convert(out.At(1, 0)); l != (color.Gray{127}) || r != (color.Gray{255}) {
		t.Errorf("the means are %v and %v", l, r)
	}
	noise := image.NewNRGBA(image.Rect(0, 0, 500, 500))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rand.Int()) | uint8(255*(i%4/3))
	}
	if small := markdown.Thumbnail(noise, 500); len(small) > 24<<10 || len(small) < 10<<10 {
		t.Errorf("%d bytes of PNG", len(small))
	}
	if markdown.Thumbnail(image.NewGray(image.Rect(0, 0, 0, 5)), 10) != nil || markdown.Thumbnail(noise, 0) != nil {
		t.Error("there is a thumbnail of nothing")
	}
}

func FuzzChart(f *testing.F) {
	f.Add(uint8(0), uint8(2), "a\nb", 1.0, -2.0, 0.0, 40)
	f.Add(uint8(1), uint8(1), "漢字", 1e300, 5e-324, 1.0, 10)
	f.Add(uint8(3), uint8(1), "", 1e15, 1e15, 1e15+0.125, 80)
	f.Fuzz(func(t *testing.T, kind, series uint8, text string, a, b, c float64, width int) {
		chart := markdown.Chart{
			Kind:  []string{markdown.Bar, markdown.Line, markdown.Scatter, markdown.Histogram, "other"}[kind%5],
			Title: text, X: text, Y: text,
		}
		for range series % 14 {
			chart.Series = append(chart.Series, markdown.Series{Name: text, Values: []float64{a, b, c, a + b}})
		}
		if kind > 100 {
			chart.Labels = []string{text, text, "c", ""}
		}
		width = max(width%200, 1)
		if width < 0 {
			width = -width
		}
		harmless(t, chart.Text(width), width)
		wellFormed(t, chart.SVG())
	})
}

// TestDrawn checks that a chart in markdown is drawn again for each width, whatever it contains, and that nothing else
// is.
func TestDrawn(t *testing.T) {
	for name, c := range charts() {
		if c.Check() != nil {
			continue
		}
		first, rest, _ := strings.Cut(c.Markdown(), "\n")
		info, ok := strings.CutPrefix(first, "```")
		if !ok || strings.Contains(info, "`") || !strings.HasSuffix(rest, "\n```\n") {
			t.Fatalf("%s: %s", name, c.Markdown())
		}
		for _, width := range []int{200, 100, 76, 34, 20, 14, 8, 1} {
			got := markdown.Drawn(info, width)
			for line := range strings.Lines(got) {
				if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > min(width, 100) {
					t.Errorf("%s at %d: %d cells: %s", name, width, n, line)
				}
			}
			if strings.TrimSpace(got) == "" {
				t.Errorf("%s at %d: nothing is drawn", name, width)
			}
		}
	}
	for _, info := range []string{"", "chart", "chart {", `chart {"kind":"pie"}`, `go {"kind":"bar","series":[{"values":[1]}]}`} {
		if got := markdown.Drawn(info, 80); got != "" {
			t.Errorf("%q is drawn: %s", info, got)
		}
	}
}

// TestNumbersStay checks that the numbers of bars are the last thing to go where a terminal is narrow, and that names
// of full width are measured as they are shown.
func TestNumbersStay(t *testing.T) {
	c := markdown.Chart{Kind: markdown.Bar, Labels: []string{"漢字という名前", "cart.go"}, Series: []markdown.Series{{Values: []float64{1234.5, 7}}}}
	for _, width := range []int{80, 20, 14, 12, 10} {
		got := c.Text(width)
		if !strings.Contains(got, "1234.5") || !strings.Contains(got, " 7") {
			t.Errorf("at %d:\n%s", width, got)
		}
		for line := range strings.Lines(got) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("at %d: %d cells", width, n)
			}
		}
	}
}
