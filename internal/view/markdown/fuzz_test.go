package markdown_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/markdown"
)

// check checks properties of all displayed text: lines fit, only colours drive the terminal, and each line stands for
// itself.
func check(t *testing.T, text string, width int, s markdown.Style) {
	t.Helper()
	sgr := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	if strings.HasSuffix(text, "\n") {
		t.Errorf("a newline at the end of %q", text)
	}
	for l := range strings.SplitSeq(text, "\n") {
		bare := sgr.ReplaceAllString(l, "")
		if n := ansi.StringWidth(bare); width > 0 && n > width {
			t.Errorf("%d cells of %d: %q", n, width, l)
		}
		if bare != markdown.Plain(bare) || s.NoColor && bare != l {
			t.Errorf("not harmless: %q", l)
		}
		if all := sgr.FindAllString(l, -1); len(all) > 0 && all[len(all)-1] != "\x1b[0m" {
			t.Errorf("no reset at the end of %q", l)
		}
		if width > 0 && strings.HasSuffix(bare, " ") {
			t.Errorf("blanks at the end of %q", l)
		}
	}
}

func seeds(f *testing.F) {
	for _, name := range []string{"all.md", "code.md", "change.diff"} {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw), byte(40))
	}
	for _, text := range []string{
		"", "`\n\n`\n`", "\x00\x1b[31mred\u202e", "- a\n1. b\n\n  c\n", "> a\n2. b", "|a|\n|-|\n|b|", "[a]: b\n[a]", "&#27;[2J", "```\n\n\na",
		"\r\r\n\t\xff",
		"👩‍👩‍👧‍👦e\u0301", "100000000. a", strings.Repeat("> ", 30) + "x", strings.Repeat("- ", 30) + "x", "<!--\n\na-->b", "a\n===\n***",
		"@@ -1 +1 @@\n-a b\n+a c\n",
		"`` ` ``\\|", "a  \nb\\\nc<br>d", "```html\n<script>\n`${\n```", "```js\n/*\n", "- [ ] a\n- [x]\n-\n", "a\n  \n",
		"- ![a](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAYAAAAECAYAAACtBE5DAAAAG0lEQVR42mM4oaHxH4YZkAFOCY2AE/+xYZwSAIZfJ3/B8tcFAAAAAElFTkSuQmCC \"b\")\n![a](data:image/png;base64,AA",
	} {
		f.Add(text, byte(10))
	}
}

func FuzzRender(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n byte) {
		width := 10 + int(n)
		for _, s := range styles() {
			out := markdown.Render(text, width, s)
			check(t, out, width, s)
		}
	})
}

func FuzzStream(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n byte) {
		s := &markdown.Stream{Width: 10 + int(n)/4}
		var pieces []string
		for i := 0; i < len(text); i += 1 + int(n)%13 {
			pieces = append(pieces, text[i:min(len(text), i+1+int(n)%13)])
		}
		got := feed(t, s, pieces, len(text) < 500)
		if want := markdown.Render(text, s.Width, s.Style); got != want && !strings.Contains(text, "]:") {
			t.Errorf("the pieces give\n%q\nthe whole\n%q", got, want)
		}
	})
}

func FuzzDiff(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n byte) {
		for _, s := range styles() {
			check(t, markdown.Diff(text, 10+int(n), s), 10+int(n), s)
		}
	})
}

func FuzzCode(f *testing.F) {
	seeds(f)
	langs := []string{"go", "python", "html", "c++", "markdown", "php", "yaml", "ruby", "docker", "", "none"}
	f.Fuzz(func(t *testing.T, text string, n byte) {
		s := markdown.Style{Light: n%2 == 0}
		out := markdown.Code(text, langs[int(n)%len(langs)], s)
		if ansi.Strip(out) != markdown.Plain(text) {
			t.Errorf("the code changed:\n%q\n%q", out, markdown.Plain(text))
		}
		check(t, strings.TrimRight(out, "\n"), 0, s)
	})
}

func FuzzPlain(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, _ byte) {
		out := markdown.Plain(text)
		if again := markdown.Plain(out); again != out {
			t.Errorf("%q is not plain: %q", out, again)
		}
	})
}
