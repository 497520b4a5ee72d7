package tui

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

var (
	svgDir = flag.String("svg", "", "write pictures of eight screens to this folder")
	svgOf  = flag.String("frames", filepath.Join("testdata", "frames"), "the frames that pictures are of")
)

// pictured are the screens that scripts/screens draws.
func pictured() []string {
	return []string{
		"0.2.0/waiting.120x40", "0.2.0/waiting.120x40.light", "0.2.0/parallel.120x40", "0.2.0/parallel.120x40.light",
		"0.2.0/interrupted.120x40", "0.2.0/interrupted.120x40.light", "logs/shown.120x40", "logs/shown.120x40.light",
	}
}

// TestScreensAreDrawn checks that each of the screens becomes a picture that holds its text, and writes them where the
// flag says.
func TestScreensAreDrawn(t *testing.T) {
	names, columns := pictured(), 120
	if others, err := filepath.Glob(filepath.Join(*svgOf, "*.txt")); err == nil && len(others) > 0 { // of scripts/firstrun
		names, columns = nil, 80
		for _, path := range others {
			names = append(names, strings.TrimSuffix(filepath.Base(path), ".txt"))
		}
	}
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(*svgOf, filepath.FromSlash(name)+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		frame := strings.ReplaceAll(strings.Replace(string(raw), "\n~~~\n", "\n", 1), "^[", "\x1b")
		picture := svg(frame, columns, strings.HasSuffix(name, ".light"))
		if got, want := strings.Join(texts(t, picture), ""), strings.ReplaceAll(ansi.Strip(frame), "\n", ""); got != want {
			t.Errorf("%s: the picture has %q, want %q", name, got, want)
		}
		if *svgDir == "" {
			continue
		}
		if err := os.MkdirAll(*svgDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*svgDir, filepath.Base(name)+".svg"), []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// texts are the texts of a picture, which must be well-formed.
func texts(t *testing.T, picture string) []string {
	t.Helper()
	var parsed struct {
		Lines []struct {
			Spans []string `xml:"tspan"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(picture), &parsed); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range parsed.Lines {
		out = append(out, line.Spans...)
	}
	return out
}

const (
	cellWidth, cellHeight = 8, 17
	margin                = 12
)

// svg draws a frame. It knows the sequences for colours that the front end and tmux write, and no
// others.
func svg(frame string, columns int, light bool) string {
	back, fore := "#16181d", "#d6d8dc"
	if light {
		back, fore = "#ffffff", "#24272e"
	}
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(frame, "\n"), "\n")
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="13">`+"\n",
		columns*cellWidth+2*margin, len(lines)*cellHeight+2*margin)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", back)
	for i, line := range lines {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" xml:space="preserve">`, margin, margin+13+i*cellHeight, fore)
		for _, s := range spans(line, light) {
			fmt.Fprintf(&b, `<tspan%s>%s</tspan>`, s[0], html.EscapeString(s[1]))
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// spans are the parts of a line that look alike, each as the attributes and the text.
func spans(line string, light bool) (out [][2]string) {
	style := ""
	for line != "" {
		at := strings.Index(line, "\x1b[")
		if at < 0 {
			at = len(line)
		}
		if at > 0 {
			out = append(out, [2]string{style, line[:at]})
		}
		if line = line[at:]; line != "" {
			codes, rest, _ := strings.Cut(line[2:], "m")
			style, line = styled(style, codes, light), rest
		}
	}
	return out
}

// styled is a style after more codes.
func styled(style, codes string, light bool) string {
	if m := regexp.MustCompile(`38;5;(\d+)`).FindStringSubmatch(codes); m != nil {
		n, _ := strconv.Atoi(m[1])
		style, codes = style+fmt.Sprintf(` fill="%s"`, cube(n)), strings.Replace(codes, m[0], "", 1)
	}
	if m := regexp.MustCompile(`48;5;\d+`).FindString(codes); m != "" { // a text of SVG has no background
		codes = strings.Replace(codes, m, "", 1)
	}
	palette := map[string]string{"31": "#e06c75", "32": "#7fb069", "33": "#d9a441", "34": "#6ea8e8", "35": "#c586c0", "36": "#56b6c2"}
	if light {
		palette = map[string]string{"31": "#b3261e", "32": "#2e7d32", "33": "#8a6100", "34": "#1f5fbf", "35": "#8e24aa", "36": "#00707d"}
	}
	for code := range strings.SplitSeq(codes, ";") {
		switch {
		case code == "0":
			style = ""
		case code == "1":
			style += ` font-weight="bold"`
		case code == "2":
			style += ` fill-opacity="0.6"`
		case code == "3":
			style += ` font-style="italic"`
		case code == "4":
			style += ` text-decoration="underline"`
		case code == "39":
			style = regexp.MustCompile(` fill="[^"]*"`).ReplaceAllString(style, "")
		case palette[code] != "":
			style += ` fill="` + palette[code] + `"`
		}
	}
	return unique(style)
}

// unique keeps the last of each attribute.
func unique(style string) string {
	last := map[string]string{}
	var order []string
	for _, m := range regexp.MustCompile(` ([a-z-]+)="[^"]*"`).FindAllStringSubmatch(style, -1) {
		if last[m[1]] == "" {
			order = append(order, m[1])
		}
		last[m[1]] = m[0]
	}
	var b strings.Builder
	for _, name := range order {
		b.WriteString(last[name])
	}
	return b.String()
}

// cube is a colour of the 256 that terminals have.
func cube(n int) string {
	if n >= 232 {
		v := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", v, v, v)
	}
	level := func(v int) int { return []int{0, 95, 135, 175, 215, 255}[v%6] }
	n = max(0, n-16)
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6), level(n))
}
