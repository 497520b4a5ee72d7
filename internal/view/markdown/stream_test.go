package markdown_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/inspan/inspan/internal/view/markdown"
)

// fataler is the common part of tests and properties.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// feed writes pieces and joins the settled lines. With tails, it looks at the tail after each and checks that looking
// changes nothing.
func feed(t fataler, s *markdown.Stream, pieces []string, tails bool) string {
	t.Helper()
	var settled []string
	add := func(text string) {
		if text != "" {
			settled = append(settled, text)
		}
	}
	for _, p := range pieces {
		add(s.Write(p))
		if tails {
			if a, b := s.Tail(), s.Tail(); a != b {
				t.Fatalf("two tails: %q, %q", a, b)
			}
		}
	}
	tail, rest := s.Tail(), s.Close()
	if tail != rest {
		t.Fatalf("the tail was\n%q\nbut the rest is\n%q", tail, rest)
	}
	add(rest)
	return strings.Join(settled, "\n")
}

// texts draws markdown that is made of lines which matter to each other.
func texts() *rapid.Generator[string] {
	lines := []string{
		"text of *some* words that is long enough to be wrapped at the end of a line", "more `code`", "", "", "# Heading", "===", "---", "- item",
		"* other", "  inside",
		"1. one", "2) two", "   - nested", "    far in", "> quote", ">", "```go", "```", "~~~", "func f() /* a", "b */ x := `y", "| a | b |", "|---|:-:|", "| 漢字 | x\\|y |",
		"<div>", "</div>", "<!-- a", "-->", "  ```", "\ttab", "-", "\x1b[31mred", "***", "- [x] done", "**bold", "on**", "\r", "é👩‍👩‍👧‍👦",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "lines"), "\n")
	})
}

// However a text is cut, the lines are those of the whole.
func TestPiecesGiveTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		s := &markdown.Stream{Width: rapid.IntRange(10, 60).Draw(t, "width"), Style: markdown.Style{NoColor: rapid.Bool().Draw(t, "plain")}}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 12)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		want := markdown.Render(text, s.Width, s.Style)
		if diff := cmp.Diff(want, feed(t, s, pieces, true)); diff != "" {
			t.Fatalf("%q (-whole +pieces):\n%s", text, diff)
		}
		if diff := cmp.Diff(want, feed(t, s, []string{text}, false)); diff != "" {
			t.Fatalf("a stream that was closed is not as new:\n%s", diff)
		}
	})
}

// The settled text after each line, and the tail.
func TestSettled(t *testing.T) {
	type step struct{ write, settled, tail string }
	for name, steps := range map[string][]step{
		"paragraphs end with the next block": {
			{"one\n", "", "one"}, {"more\n", "", "one more"}, {"\n", "one more", ""}, {"two", "", "\ntwo"}, {"\n# H\n", "\ntwo\n\n# H", ""},
		},
		"underlines make headings": {{"Title\n", "", "Title"}, {"---\n", "## Title", ""}},
		"lists go on item by item": {
			{"3. a\n", "", "3. a"},
			{"3. b\n", "3. a", "4. b"},
			{"   c\n", "", "4. b c"},
			{"\n3. d\n", "4. b c", "\n5. d"},
			{"\ntext\n", "\n5. d", "\ntext"},
		},
		"another mark begins another list": {{"- a\n* b\n", "• a", "\n• b"}},
		"items keep their blocks":          {{"- a\n\n  b\n", "", "• a\n\n  b"}, {"- c\n", "• a\n\n  b", "• c"}},
		"code goes on line by line": {
			{"```\na\n", "  a", ""},
			{"\n", "", ""},
			{"b\n", "\n  b", ""},
			{"\n```\n", "", ""},
			{"c", "", "\nc"},
		},
		"a fence that is cut": {{"``", "", "``"}, {"`go\nx", "", "  x"}, {"y\n``", "  xy", "  ``"}, {"`\nz\n\n", "\nz", ""}},
		"tables come whole": {
			{"|a|\n|-|\n", "", "┌───┐\n│ a │\n└───┘"},
			{"|b|\n", "", "┌───┐\n│ a │\n├───┤\n│ b │\n└───┘"},
			{"\n", "┌───┐\n│ a │\n├───┤\n│ b │\n└───┘", ""},
		},
		"quotes come whole": {{"> a\n> b\n", "", "│ a b"}, {"\n", "│ a b", ""}},
		"html ends as it should": {
			{"<div>\na\n", "", "<div>\na"},
			{"\n", "<div>\na", ""},
			{"<!-- a\n\nb\n", "", "\n<!-- a\n\nb"},
			{"-->\n", "\n<!-- a\n\nb\n-->", ""},
		},
		"indented code ends with other text":  {{"    a\n\n    b\n", "", "  a\n\n  b"}, {"c\n", "  a\n\n  b", "\nc"}},
		"emphasis closes later":               {{"a **b", "", "a **b"}, {"**\n\n", "a **b**", ""}},
		"a character in pieces":               {{"\xe6\xbc", "", `\xe6\xbc`}, {"\xa2\n\n", "漢", ""}},
		"a line end in pieces":                {{"a\r", "", `a\x0d`}, {"\n\r\nb", "a", "\nb"}},
		"references reach further down":       {{"[r]: /u\n\n", "", ""}, {"[r]\n\n", "r (/u)", ""}},
		"looking defines nothing":             {{"[r]: /u", "", ""}, {"v\n\n[r]\n\n", "r (/uv)", ""}},
		"references do not reach further up":  {{"[r]\n\n", "[r]", ""}, {"[r]: /u\n\n", "", ""}},
		"a block of html can not end a word":  {{"a\n<b>\n", "", "a <b>"}, {"\n", "a <b>", ""}},
		"a break ends a list":                 {{"- a\n***\n", "• a\n\n" + strings.Repeat("─", 20), ""}},
		"a second number can not end a text":  {{"a\n2. b\n", "", "a 2. b"}},
		"what is not indented ends the list":  {{"- a\n\nb\n\n- c\n", "• a\n\nb", "\n• c"}},
		"a lazy line goes on with its item":   {{"- a\nb\n- c\n", "• a b", "• c"}},
		"an ordered list begins with its own": {{"0. a\n0. b\n0. c\n", "0. a\n1. b", "2. c"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &markdown.Stream{Width: 20, Style: markdown.Style{NoColor: true}}
			for i, st := range steps {
				got := step{st.write, s.Write(st.write), s.Tail()}
				if got != st {
					t.Errorf("step %d:\n%q, want\n%q", i, got, st)
				}
			}
		})
	}
}

// The cost of the tail depends on the unsettled text only.
func TestTailIsBounded(t *testing.T) {
	s := &markdown.Stream{Width: 80}
	cost := func() float64 { return testing.AllocsPerRun(5, func() { s.Tail() }) }
	for i := range 20 {
		s.Write(fmt.Sprintf("- item %d\n", i))
	}
	few := cost()
	for i := range 20_000 {
		s.Write(fmt.Sprintf("- item %d\n", i))
	}
	if many := cost(); many > few*2+20 {
		t.Errorf("%v allocations for a tail after 20 items, %v after 20,000", few, many)
	}
}
