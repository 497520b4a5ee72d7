package markdown_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/markdown"
)

// drawing is an image in markdown.
func drawing(t testing.TB, w, h int, at func(x, y int) color.Color) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, at(x, y))
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return "![a cat](data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()) + ")"
}

func one(r, g, b, a uint8) func(int, int) color.Color {
	return func(int, int) color.Color { return color.NRGBA{r, g, b, a} }
}

// noise can't be packed.
func noise(int, int) color.Color {
	return color.NRGBA{uint8(rand.Int()), uint8(rand.Int()), uint8(rand.Int()), 255}
}

func TestPicture(t *testing.T) {
	stripes := func(_, y int) color.Color {
		return []color.Color{color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}, color.NRGBA{}}[y%3]
	}
	for name, tc := range map[string]struct{ text, want string }{
		"one colour":           {drawing(t, 3, 2, one(255, 0, 0, 255)), "[38;5;196]███"},
		"two in a cell":        {drawing(t, 2, 2, stripes), "[38;5;196;48;5;21]▀▀"},
		"nothing above, below": {drawing(t, 2, 6, stripes), "[38;5;196;48;5;21]▀▀\n[38;5;196]▄▄\n[38;5;21]▀▀"},
		"an odd row":           {drawing(t, 1, 1, one(255, 255, 255, 255)), "[38;5;231]▀"},
		"grey":                 {drawing(t, 1, 2, one(128, 128, 128, 255)), "[38;5;244]█"},
		"black":                {drawing(t, 1, 2, one(0, 0, 0, 255)), "[38;5;16]█"},
		"half seen through":    {drawing(t, 1, 2, one(250, 0, 0, 200)), "[38;5;196]█"},
		"seen through":         {"a\n\n" + drawing(t, 9, 2, one(250, 0, 0, 100)) + "\n\nb", "a\n\nb"},
		"in a quote":           {"> " + drawing(t, 2, 2, stripes), "[2]│ [38;5;196;48;5;21]▀▀"},
		"in a list":            {"- " + drawing(t, 2, 2, stripes) + "\n- b", "[38;5;179]• [38;5;196;48;5;21]▀▀\n[38;5;179]• b"},
		"made small": {
			drawing(t, 300, 150, one(0, 255, 0, 255)),
			strings.TrimSuffix(strings.Repeat("[38;5;46]"+strings.Repeat("█", 30)+"\n", 7), "\n") + "\n[38;5;46]" + strings.Repeat("▀", 30),
		},
		"the mean": {
			drawing(t, 60, 4, func(x, _ int) color.Color { return color.NRGBA{uint8(x % 2 * 255), 0, 0, 255} }),
			"[38;5;88]" + strings.Repeat("█", 30),
		},
		// not drawn
		"beside text":          {"x " + drawing(t, 2, 2, stripes), "x [image: a cat]"},
		"two":                  {drawing(t, 2, 2, stripes) + drawing(t, 2, 2, stripes), "[image: a cat][image: a cat]"},
		"broken base64":        {"![a](data:image/png;base64,AAAAA)", "[image: a, PNG, 3 bytes]"},
		"no PNG":               {"![a](data:image/png;base64,AAAA)", "[image: a, PNG, 3 bytes]"},
		"cut off":              {drawing(t, 9, 9, noise)[:200] + ")", "[image: a cat, PNG, 9 x 9, 126\nbytes]"},
		"still coming":         {drawing(t, 9, 9, noise)[:200], "[image: a cat]"},
		"a JPEG":               {"![a](data:image/jpeg;base64,AAAA)", "[image: a, JPEG, 3 bytes]"},
		"no name":              {"![](data:image/jpeg;base64,AAAA)", "[image, JPEG, 3 bytes]"},
		"brackets in its name": {"![a [b] c](data:image/png;base64,AAAA)", "[image: a [b] c]"},
		"a link":               {"[a](data:image/png;base64,AAAA)", "[4;38;5;80]a[2] (data:…)"},
		"a hidden name":        {"![&#27;c&#x202e;](data:image/jpeg;base64,AAAA)", "[image: \\x1bc\\u202e, JPEG, 3\nbytes]"},
		"too many dots":        {drawing(t, 1<<11, 1<<10, one(0, 0, 0, 255)), "[image: a cat, PNG, 2048 x\n1024, 8419 bytes]"},
		"a title":              {"![a](data:image/jpeg;base64,AAAA \"(x) 9 KB\")", "[image: a, (x) 9 KB]"},
		"more than a title":    {"![a](data:image/jpeg;base64,AAAA) b c)", "[image: a] b c)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := markdown.Style{}
			got := markdown.Render(tc.text, 30, s)
			check(t, got, 30, s)
			shown := regexp.MustCompile(`\x1b\[([0-9;]*)m`).ReplaceAllString(strings.ReplaceAll(got, "\x1b[0m", ""), "[$1]")
			if shown != tc.want {
				t.Errorf("%.100q gives\n%s\nwant\n%s", tc.text, shown, tc.want)
			}
		})
	}
}

func TestPictureWithoutColours(t *testing.T) {
	for _, s := range []markdown.Style{{NoColor: true}, {Named: true}} {
		if got := markdown.Render(drawing(t, 4, 4, one(9, 9, 9, 255)), 60,
			s); !regexp.MustCompile(`^\[image: a cat, PNG, 4 x 4, \d+ bytes\]$`).MatchString(got) {
			t.Errorf("%q", got)
		}
	}
	if got := markdown.Render(drawing(t, 200, 200, noise), 60, markdown.Style{}); !strings.HasPrefix(got, "[image: a cat, PNG, 200 x 200, ") {
		t.Errorf("%q", got)
	}
}

// TestPictureBounds checks how much room a picture takes at most.
func TestPictureBounds(t *testing.T) {
	for _, tc := range []struct{ w, h, width, columns, rows int }{
		{500, 100, 1000, 120, 12},
		{100, 1000, 1000, 12, 60},
		{1, 1000, 80, 1, 60},
		{1000, 1, 80, 80, 1},
		{5, 5, 80, 5, 3},
		{100, 150, 1000, 80, 60},
		{50, 50, 2, 2, 1},
	} {
		got := ansi.Strip(markdown.Render(drawing(t, tc.w, tc.h, one(9, 9, 9, 255)), tc.width, markdown.Style{}))
		lines := strings.Split(got, "\n")
		if len(lines) != tc.rows || ansi.StringWidth(lines[0]) != tc.columns {
			t.Errorf("%+v: %d by %d", tc, ansi.StringWidth(lines[0]), len(lines))
		}
	}
}
