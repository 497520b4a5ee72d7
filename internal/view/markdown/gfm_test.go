package markdown_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/view/markdown"
)

// Bare addresses are marked as <links>, without characters of the surrounding text.
func TestBareLinks(t *testing.T) {
	long := strings.Repeat("a", 257)
	for text, want := range map[string]string{
		"http://a.b https://c.d/ ftp://e.f www.g.h": "<http://a.b> <https://c.d/> <ftp://e.f> <www.g.h>",
		"see (http://a.b/c(d)) or http://a.b/c)))":  "see (<http://a.b/c(d)>) or <http://a.b/c>)))",
		"http://a.b/c((":                            "<http://a.b/c((>",
		"http://a.b, http://a.b/?. www.a.b/!_~:":    "<http://a.b>, <http://a.b/>?. <www.a.b/>!_~:",
		"x ~~~http://a.9 ~~~www.a.b ~~~a~~~":        "x ~~~http://a.9 ~~~<www.a.b> ~~~a~~~",
		"http://a.b/?q=1&amp; http://a.b/?q&;x;":    "<http://a.b/?q=1>& <http://a.b/?q&;x;>",
		"http://a.b/c&x;). http://a.b/&;":           "<http://a.b/c>&x;). <http://a.b/&;>",
		"http://a.b:80/c www.a.b:8x http://a.b:/c":  "<http://a.b:80/c> <www.a.b:8>x <http://a.b>:/c",
		"http://a.b/-_@:%+.~#$!?&/=(),'\">^{}[]`x":  "<http://a.b/-_@:%+.~#$!?&/=(),'\">^{}[]`x>",
		"http://a.b/é http://a.b/<i> http://a.b#c":  "<http://a.b/>é <http://a.b/>\x1b[2m<i>> <http://a.b#c>",
		"http://a.b.Com http://a http://.b http://": "<http://a.b>.Com http://a http://.b http://",
		"http://a.b-c.d9 http://u@a.b http://é.b":   "<http://a.b-c.d>9 <http://u@a.b> http://é.b",
		"http:/a.b HTTP://a.b xhttp://a.b www.a":    "http:/a.b HTTP://a.b xhttp://a.b www.a",
		"[http://a.b] *http://a.b* ~http://a.b~":    "[http://a.b] *<http://a.b> ~<http://a.b>",
		"me@a.b a.b-c+d@e-f.gh. (x@y.z)":            "<me@a.b> <a.b-c+d@e-f.gh>. (<x@y.z>)",
		"me@a me@a.b- me@a.b_ @a.b +me@a.b me@":     "me@a me@a.b- me@a.b_ @a.b +me@a.b me@",
		"a\nhttp://a.b\n- www.a.b":                  "a <http://a.b>\n\n• <www.a.b>",
		"http://" + long[1:] + ".b":                 "<http://" + long[1:] + ".b>",
		"http://" + long + ".b":                     "http://" + long + ".b",
	} {
		out := markdown.Render(text, 400, markdown.Style{})
		out = strings.NewReplacer("\x1b[4;38;5;80m", "<", "\x1b[3;4;38;5;80m", "*<",
			"\x1b[38;5;179m• \x1b[0m", "• ", "\x1b[4;9;38;5;80m", "~<", "\x1b[0m", ">").Replace(out)
		if out != want {
			t.Errorf("%q gives\n%q\nwant\n%q", text, out, want)
		}
	}
}

func TestStruckTasksAndTables(t *testing.T) {
	for text, want := range map[string]string{
		"~~a~~ ~b~ ~~~c~~~ ~~ d ~~ e~~f~~":           "~~a~~ ~~b~~ ~~~c~~~ ~~ d ~~ e~~f~~",
		"*a ~b* c~ ~*d*~":                            "*a ~b* c~ ~~*d*~~",
		"- [ ] a\n- [x] b\n- [X]   c\n- [ ]\n- [x]d": "• ☐ a\n• ☑ b\n• ☑ c\n• ☐\n• ☑ d",
		"- [y] a\n- [] b\n- a [x] c\n- [x](u)":       "• [y] a\n• [] b\n• a [x] c\n• ☑ (u)",
		"[x] a\n\n> [x] b\n\n- # c\n\n  [x] d":       "[x] a\n\n│ [x] b\n\n• # c\n\n  [x] d",
		"- [x]\n  a":                                 "• ☑ a",
		"- [\n- [x\n-":                               "• [\n• [x\n•",

		"a|b\n    -|-":            "a|b -|-",
		"a  \nb|c\n-|-":           "a\n\n┌───┬───┐\n│ b │ c │\n└───┴───┘",
		"a\n-|-\nb||c":            "┌───┬───┐\n│ a │   │\n├───┼───┤\n│ b │   │\n└───┴───┘",
		"a||b\n   -|-|- \n||c\\|": "┌───┬────┬───┐\n│ a │    │ b │\n├───┼────┼───┤\n│   │ c| │   │\n└───┴────┴───┘",

		"a\nb|c\n-|-\n1|2|3\n|": "a\n\n┌───┬───┐\n│ b │ c │\n├───┼───┤\n│ 1 │ 2 │\n│   │   │\n└───┴───┘",
		"|a|b|c|\n|:-:|-:|:-|\n|123|123|123|\n|1|2|3|": "┌─────┬─────┬─────┐\n│  a  │   b │ c   │\n├─────┼─────┼─────┤\n│ 123 │ 123 │ 123 │\n" +
			"│  1  │   2 │ 3   │\n└─────┴─────┴─────┘",
		"- a|\n  :-\n  *b*\n\n  c":    "• ┌─────┐\n  │ a   │\n  ├─────┤\n  │ *b* │\n  └─────┘\n\n  c",
		"> a\\|b|c\n> -|-\n> `d\\|`|": "│ ┌──────┬───┐\n│ │ a|b  │ c │\n│ ├──────┼───┤\n│ │ `d|` │   │\n│ └──────┴───┘",

		"a|b\n-":          "## a|b",
		"a|b|c\n-|-\nd|e": "a|b|c -|- d|e",
		"a|b\n-|:\nc":     "a|b -|: c",
		"a|b\n-||-\nc":    "a|b -||- c",
		"a|b\n-|x\nc":     "a|b -|x c",
		"a|b\n-|-:-\nc":   "a|b -|-:- c",
		"a\n|\nb":         "a | b",
		"a\n||\nb":        "a || b",
		"|-|-|\na":        "|-|-| a",
	} {
		s := markdown.Style{NoColor: true}
		got := markdown.Render(text, 60, s)
		if got != want {
			t.Errorf("%q gives\n%s\nwant\n%s", text, got, want)
		}
		check(t, got, 60, s)
	}
}
