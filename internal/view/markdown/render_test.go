package markdown_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/markdown"
)

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                      {"", ""},
		"blanks":                       {" \n\t\n", ""},
		"a link that says its address": {"[http://a.b](http://a.b) <me@a.b> [me](mailto:me) [x](<a b>)", "http://a.b me@a.b me x (a b)"},
		"a link without an address":    {"[a]() ![]() ![b](c)", "a [image] [image: b] c"},
		"a reference further down":     {"[r]\n\n- [r]\n\n[r]: /u", "r (/u)\n\n• r (/u)"},
		"entities":                     {"&lt;&#65;&nosuch;&amp;lt; \\&amp; `&amp;`", "<A&nosuch;&lt; &amp; `&amp;`"},
		"entities stay harmless":       {"a&#27;[31m &#x202e;b &ZeroWidthSpace;", `a\x1b[31m \u202eb \u200b`},
		"addresses stay harmless":      {"[a](/b&#27;c) ![d](/e&#7;)", "a (/b\\x1bc) [image: d] /e\\x07"},
		"html":                         {"a <b>c</b><br/>d <!-- e -->", "a <b>c</b>\nd <!-- e -->"},
		"breaks":                       {"a  \nb\\\nc\nd", "a\nb\nc d"},
		"a word too long":              {"x 12345678901234567890123456789012345 y", "x\n123456789012345678901234567890\n12345 y"},
		"wide characters":              {"漢字漢字漢字漢字漢字漢字漢字漢字 x", "漢字漢字漢字漢字漢字漢字漢字漢\n字 x"},
		"a line may break before a wide character": {"x " + strings.Repeat("a", 27) + "漢", "x " + strings.Repeat("a", 27) + "\n漢"},
		"characters made of several": {
			strings.Repeat("1\ufe0f\u20e3", 16),
			strings.Repeat("1\ufe0f\u20e3", 15) + "\n1\ufe0f\u20e3",
		},
		"an empty item can not end a text": {"a\n*\nb", "a * b"},
		"what belongs to an item":          {"-   a\n\n  b\n\n-   c\n\n    d", "• a\n\nb\n\n• c\n\n  d"},
		"the first definition counts":      {"[a]: /1\n[a]: /2\n\n[a]", "a (/1)"},
		"tables use all the room": {
			"a|b\n-|-\naaaaaa aaaaaaaa|bbbbbb bbbbbbbb",
			"┌──────────────┬─────────────┐\n│ a            │ b           │\n├──────────────┼─────────────┤\n│ aaaaaa       │ bbbbbb      │\n" +
				"│ aaaaaaaa     │ bbbbbbbb    │\n└──────────────┴─────────────┘",
		},
		"combined characters": {
			strings.Repeat("e\u0301", 35),
			strings.Repeat("e\u0301", 30) + "\n" + strings.Repeat("e\u0301", 5),
		},
		"tabs":                     {"-\ta\n\n\tb", "• a\n\n  b"},
		"line ends":                {"a\r\nb\rc", `a b\x0dc`},
		"a number from the source": {"7. a\n7. b", "7. a\n8. b"},
		"another delimiter":        {"1) a\n2) b\n3. c", "1) a\n2) b\n\n3. c"},
		"quotes in lists":          {"- > a\n  > b\n- c", "• │ a b\n• c"},
		"code in quotes":           {"> ```go\n> x\n> ```", "│   x"},
		"code keeps its blanks":    {"```\n\n a  b\n\n\n```", "\n   a  b"},
		"a code fence that is indented": {
			"  ```\n  a\n b\n    c\n  ```", "  a\n  b\n    c",
		},
		"tables": {
			"a|b\n:-|-:\n1|2 `x\\|y`\n3",
			"┌───┬─────────┐\n│ a │       b │\n├───┼─────────┤\n│ 1 │ 2 `x|y` │\n│ 3 │         │\n└───┴─────────┘",
		},
		"tables shrink": {
			"aaaaaaaaaa aaaaaaaaa|b\n-|-\nc cccccccccccc ccc dd ee|2",
			"┌────────────────────────┬───┐\n│ aaaaaaaaaa aaaaaaaaa   │ b │\n├────────────────────────┼───┤\n│ c cccccccccccc ccc dd  │ 2 │\n" +
				"│ ee                     │   │\n└────────────────────────┴───┘",
		},
		"tables too wide for a box": {
			"a1|b1|c1|d1|e1|f1|g1|h1\n-|-|-|-|-|-|-|-\n1|2|3|4|5|6|7|8888888888\n2",
			"a1: 1\nb1: 2\nc1: 3\nd1: 4\ne1: 5\nf1: 6\ng1: 7\nh1: 8888888888\n\na1: 2",
		},
		"tables of a head only":    {"a1|b1|c1|d1|e1|f1|g1|h1\n-|-|-|-|-|-|-|-", "a1\nb1\nc1\nd1\ne1\nf1\ng1\nh1"},
		"headings":                 {"# a #\n### b `c`\nd\n---", "# a\n\n### b `c`\n\n## d"},
		"a paragraph of one blank": {"a\n\n`\n`\n\nb\n\n- `\n  `", "a\n\n` `\n\nb\n\n• ` `"},
		"no heading":               {"#a\n####### b", "#a ####### b"},
		"empty items":              {"-\n- a\n-", "•\n• a\n•"},
		"definitions alone show nothing": {
			"[a]: /b\n[c]: /d", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := markdown.Style{NoColor: true}
			got := markdown.Render(tc.text, 30, s)
			if got != tc.want {
				t.Errorf("%q gives\n%s\nwant\n%s", tc.text, got, tc.want)
			}
			check(t, got, 30, s)
		})
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2J\x07":         `a\x1b[2J\x07`,
		"\u009b1m":             `\x9b1m`,
		"\u202etxt.exe\u2066":  `\u202etxt.exe\u2066`,
		"a\u200bb\ufeff\u00ad": `a\u200bb\ufeff\xad`,
		"\U000e0041":           `\U000e0041`,
		"a\tb\n\tc\r\nd\r":     "a   b\n    c\nd\\x0d",
		"\xff\xe6\xbc":         `\xff\xe6\xbc`,
		"👩‍👧 é ü שלום \ufe0f":  "👩‍👧 é ü שלום \ufe0f",
	} {
		if got := markdown.Plain(text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// paint is highlighted code, each colour as a letter before its text.
func paint(code, language string) string {
	out := markdown.Code(code, language, markdown.Style{})
	for sgr, letter := range map[string]string{
		"[38;5;75m": "K", "[38;5;150m": "S", "[38;5;80m": "F", "[38;5;179m": "T", "[38;5;176m": "N", "[38;5;245m": "C", "[38;5;114m": "+",
		"[38;5;210m": "-", "[0m": ".",
	} {
		out = strings.ReplaceAll(out, "\x1b"+sgr, "«"+letter)
	}
	return strings.ReplaceAll(out, "«.", "»")
}

// Constructs over several lines are recognised although each line is shown before the next is read.
func TestCodeOverLines(t *testing.T) {
	for _, tc := range []struct{ language, code, want string }{
		{"go", "/* a\nb\n*/ x := `c\n\nd` + 1", "«C/* a»\n«Cb»\n«C*/» x := «S`c»\n\n«Sd`» + «N1»"},
		{"go", "/* a\n*/ x\ny := 1 /* b */", "«C/* a»\n«C*/» x\ny := «N1» «C/* b */»"},
		{"go", `x := "/* " // "`, `x := «S"/* "» «C// "»`},
		{"python", "x = \"\"\"a\n# b\n\"\"\" # c", "x = «S\"\"\"a»\n«S# b»\n«S\"\"\"» «C# c»"},
		{"html", "<!-- a\n<b> --><script>\nlet x\n</script>\n<i>", "«C<!-- a»\n«C<b> -->»<«Kscript»>\n«Klet» x\n</«Kscript»>\n<«Ki»>"},
		{"RUST", "/* a\n*/ fn", "«C/* a»\n«C*/» «Kfn»"},
		{"c++", "int x;", "«Tint» x;"},
		{"diff", "-a\n+b", "«--a»\n«++b»"},
		{"nosuch", "let x = 1", "let x = 1"},
		{"go", "", ""},
		{"go", "a\n\n", "a\n\n"},
		{"go", "\ue000 x \ue000", "\ue000 x \ue000"},
	} {
		if got := paint(tc.code, tc.language); got != tc.want {
			t.Errorf("%s: %q gives\n%s\nwant\n%s", tc.language, tc.code, got, tc.want)
		}
	}
}

// Each lexer that is shipped can be read, and is one of a language.
func TestLexers(t *testing.T) {
	files, err := filepath.Glob("lexers/*.xml")
	if err != nil || len(files) < 30 {
		t.Fatal(files, err)
	}
	s := markdown.Style{Lexers: &markdown.Lexers{}}
	for _, f := range files {
		language := strings.TrimSuffix(filepath.Base(f), ".xml")
		switch language {
		case "protocol_buffer":
			language = "proto"
		case "docker":
			language = "dockerfile"
		}
		code := "# \"a\" <b c=\"d\"> // 'e' 12 /* f */ -- g\n-h\nfrom: 1.5\n[i]\nj = \"k\"\n\tl := func(m) { return `n` } // o\nFROM a\n" +
			"RUN b \"c\"\n<script>\nvar x = 1\n</script>\n"
		for range 2 {
			out := markdown.Code(code, language, s)
			if out == markdown.Plain(code) {
				t.Errorf("%s paints nothing", language)
			}
			if ansi.Strip(out) != markdown.Plain(code) {
				t.Errorf("%s changes the code: %q", language, out)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	for name, tc := range map[string]struct{ diff, want string }{
		"nothing": {"", ""},
		"no head": {"-old\n+new\n", "- old\n+ new"},
		"text":    {"hello\n", "hello"},
		"numbers": {"--- a/f\n+++ b/f\n@@ -9,2 +9,3 @@\n x\n-y\n+z\n+\n", "f\n@@ -9,2 +9,3 @@\n 9   x\n10 - y\n10 + z\n11 +"},
		"what looks like a head": {
			"@@ -1,2 +1,2 @@\n--- a\n+++ b\n x\n", "@@ -1,2 +1,2 @@\n1 - -- a\n1 + ++ b\n2   x",
		},
		"a head without a file": {"diff --git a/x b/x\nold mode 1\n--- a\nx", "diff --git a/x b/x\nold mode 1\n--- a\nx"},
		"only a head":           {"--- a/x", "--- a/x"},
		"two files": {
			"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n--- a/y\t2020\n+++ /dev/null\t2021\n@@ -1 +0,0 @@\n-b",
			"x (new)\n@@ -0,0 +1 @@\n1 + a\n\ny (deleted)\n@@ -1 +0,0 @@\n1 - b",
		},
		"renamed":    {"--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b", "x → y\n@@ -1 +1 @@\n1 - a\n1 + b"},
		"no newline": {"@@ -1 +1 @@\n-a\n\\ No newline\n+a", "@@ -1 +1 @@\n1 - a\n\\ No newline\n1 + a"},
		"wrapped": {
			"@@ -1 +1 @@\n-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n+c\n",
			"@@ -1 +1 @@\n1 - aaaaaaaaaaaaaaaaaaaaaaaaaa\n    aaaab\n1 + c",
		},
		"nonsense": {
			"@@ -99999999999999999999,1 +1 @@\n@@ -1 @@\n@@ -a +b @@\n+\n-",
			"@@ -99999999999999999999,1 +1\n@@\n@@ -1 @@\n@@ -a +b @@\n+\n-",
		},
		"left out": {
			"@@ -1,9 +1,9 @@\n a\n… 3 KB left out …\n b\n+c\n@@ -20 +21 @@\n-d\n+e\n",
			"@@ -1,9 +1,9 @@\n 1   a\n… 3 KB left out …\n     b\n   + c\n@@ -20 +21 @@\n20 - d\n21 + e",
		},
		"line ends that changed": {"-a\r\n+a\n", "- a\\x0d\n+ a"},
		"line ends of windows":   {"-a\r\n+b\r\n", "- a\n+ b"},
		"harmless":               {"-\x1b[2J\n+\u202e", "- \\x1b[2J\n+ \\u202e"},
	} {
		t.Run(name, func(t *testing.T) {
			s := markdown.Style{NoColor: true}
			got := markdown.Diff(tc.diff, 30, s)
			if got != tc.want {
				t.Errorf("%q gives\n%s\nwant\n%s", tc.diff, got, tc.want)
			}
			check(t, got, 30, s)
		})
	}
}

// TestDiffHTML checks that a diff on the page has the numbers of both files, colours, marked words, and nothing active.
func TestDiffHTML(t *testing.T) {
	got := strings.Join(markdown.DiffHTML("--- a/f.go\n+++ b/f.go\n@@ -9,2 +9,2 @@\n if x {\n-y := \"<b>\"\n+z := \"<b>\"\n", nil), "\n")
	want := `<span class="row hunk"><i></i><i></i><span><span class="t-heading">f.go</span></span></span>
<span class="row hunk"><i></i><i></i><span><span class="t-comment">@@ -9,2 +9,2 @@</span></span></span>
<span class="row"><i>9</i><i>9</i><span> <span class="t-keyword">if</span> x {</span></span>
<span class="row removed"><i>10</i><i></i><span>-<u>y</u> := <span class="t-literal">&#34;&lt;b&gt;&#34;</span></span></span>
<span class="row added"><i></i><i>10</i><span>+<u>z</u> := <span class="t-literal">&#34;&lt;b&gt;&#34;</span></span></span>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Only the words that differ have another background, and none if all of it differs.
func TestChangedWords(t *testing.T) {
	for _, tc := range [][3]string{
		{"return foo(a, b)", "return foo(a, c, b)", "return foo(a, <c, >b)"},
		{"x := old_name + 1", "x := new_name + 1", "x := <new_name> + 1"},
		{"漢字 text here", "漢語 text here", "<漢語> text here"},
		{"one two", "three", "three"},
		{"same", "same", "same"},
	} {
		out := markdown.Diff("-"+tc[0]+"\n+"+tc[1]+"\n", 80, markdown.Style{})
		_, plus, _ := strings.Cut(out, "\n")
		plus = strings.ReplaceAll(plus, "\x1b[38;5;114;48;5;22m", "<")
		plus = strings.ReplaceAll(plus, "\x1b[0m\x1b[38;5;114m", ">")
		if got := ansi.Strip(plus); got != "+ "+tc[2] {
			t.Errorf("%q to %q: %q, want %q", tc[0], tc[1], got, "+ "+tc[2])
		}
	}
}

// Whatever is nested, long or many, comes to an end soon, and at any width.
func TestBounds(t *testing.T) {
	rep := func(s string) string { return strings.Repeat(s, 20_000/len(s)) }
	for name, text := range map[string]string{
		"quotes": rep(">"), "bullets": rep("- "), "numbers": rep("1. ") + "a", "links": rep("[a]("), "brackets": rep("[a") + rep("]"),
		"definitions":      rep("[a]: b\n"),
		"open definitions": rep("[a]:\n"), "pipes": "|a|\n|-|\n" + rep("|`x\\|y`|\n"), "columns": rep("|a") + "\n" + rep("|-"),
		"emphasis": rep("*a ") + rep("a* "),
		"heading":  "# " + rep("[a]("), "underlined": "> " + rep("[a](\n") + "> ===\n", "marks": rep("\u0301"), "code": "```go\n" + rep("/*") + "\n" + rep("x\n"),
		"a cell": "|a|\n|-|\n|" + rep("[a]("),
	} {
		t.Run(name, func(t *testing.T) {
			for _, width := range []int{-1, 1, 2, 3, 10, 200} {
				s := markdown.Style{NoColor: width == 10}
				out := markdown.Render(text, width, s)
				if width >= 2 {
					check(t, out, width, s)
				}
			}
			markdown.Diff(text, 20, markdown.Style{})
			markdown.Diff(rep("-a b c d e\n")+rep("+a b x d e\n"), 20, markdown.Style{})
		})
	}
}

// Paragraphs that are too long for the parser keep their words.
func TestLongParagraph(t *testing.T) {
	text := strings.Repeat("some __words__ here\n", 1000)
	out := markdown.Render("- a\n\n"+text, 40, markdown.Style{NoColor: true})
	if n := strings.Count(strings.Join(strings.Fields(out), " "), "some __words__ here"); n != 1000 {
		t.Errorf("%d of 1000", n)
	}
}

func TestLicenceIsShipped(t *testing.T) {
	for _, name := range []string{"lexers/LICENSE", "lexers/NOTICE"} {
		if raw, err := os.ReadFile(name); err != nil || len(raw) < 100 {
			t.Error(name, err)
		}
	}
}
