package markdown_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/view/markdown"
)

// reply is a long answer of a model, of about so many lines.
func reply(lines int) string {
	var b strings.Builder
	for i := 0; i < lines/20; i++ {
		fmt.Fprintf(&b, "## Part %d\n\nSome **words** about `code` and [links](https://example.com/%d), in a paragraph\n"+
			"that goes on for two lines.\n\n", i, i)
		b.WriteString("1. an item\n2. another *item*\n   - nested\n\n```go\nfunc f(a int) error {\n\tif a > 1 { // comment\n\t\treturn fmt.Errorf(\"too big: %d\", a)\n\t}\n")
		b.WriteString("\treturn nil\n}\n```\n\n| a | b |\n|---|---|\n| 1 | two |\n\n")
	}
	return b.String()
}

func stream(b *testing.B, text string, tails bool) {
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := markdown.Stream{Width: 80}
		for i := 0; i < len(text); i += 20 {
			s.Write(text[i:min(len(text), i+20)])
			if tails {
				s.Tail()
			}
		}
		s.Close()
	}
}

func BenchmarkStream10k(b *testing.B)      { stream(b, reply(10_000), false) }
func BenchmarkStream10kTails(b *testing.B) { stream(b, reply(10_000), true) }

func BenchmarkRender(b *testing.B) {
	raw, err := os.ReadFile("testdata/all.md")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		markdown.Render(string(raw), 80, markdown.Style{})
	}
}

func BenchmarkRenderShared(b *testing.B) {
	raw, err := os.ReadFile("testdata/all.md")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	s := markdown.Style{Lexers: &markdown.Lexers{}}
	for b.Loop() {
		markdown.Render(string(raw), 80, s)
	}
}

func BenchmarkDiff(b *testing.B) {
	raw, err := os.ReadFile("testdata/change.diff")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		markdown.Diff(string(raw), 80, markdown.Style{})
	}
}
