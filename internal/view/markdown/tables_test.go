package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/view/markdown"
)

// TestTables checks that text that people read as it is written has tables and images that they can read, however small
// the pieces are that it comes in, and that all else is as it was.
func TestTables(t *testing.T) {
	const table = "|file|n|\n|:---|--:|\n|cart.go|7|\n|漢字|12|\n"
	for name, tc := range map[string]struct {
		width      int
		text, want string
	}{
		"aligned": {
			0, "So:\n\n" + table + "\nDone.",
			"So:\n\n| file    |   n |\n| :------ | --: |\n| cart.go |   7 |\n| 漢字    |  12 |\n\nDone.",
		},
		"in a box": {
			40, table + "Done.",
			"┌─────────┬────┐\n│ file    │  n │\n├─────────┼────┤\n│ cart.go │  7 │\n│ 漢字    │ 12 │\n└─────────┴────┘\nDone.",
		},
		"in a narrow one": {
			15, "|file|n|\n|:---|--:|\n|cart.go|7|\n|漢字|12|\n",
			"┌────────┬────┐\n│ file   │  n │\n├────────┼────┤\n│ cart.g │  7 │\n│ o      │    │\n├────────┼────┤\n│ 漢字   │ 12 │\n" +
				"└────────┴────┘\n",
		},
		"rows too short":     {0, "| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |", "| a   | b   |\n| --- | --- |\n| 1   |     |\n| 1   | 2   |"},
		"markup stays":       {0, "| a |\n|---|\n| **b** `c\\|d` |\n", "| a            |\n| ------------ |\n| **b** `c\\|d` |\n"},
		"after a row":        {0, "| x\n| a |\n|---|\n", "| x\n| a   |\n| --- |\n"},
		"not a table":        {0, "| a | b |\nand so on\n- c\n", "| a | b |\nand so on\n- c\n"},
		"in code":            {0, "```\n" + table + "```\n", "```\n" + table + "```\n"},
		"not closed":         {0, "| a |\n|---|", "| a   |\n| --- |"},
		"an image":           {0, "x\n![cat](data:image/jpeg;base64,AAAA)\ny", "x\n[image: cat, JPEG, 3 bytes]\ny"},
		"an image in a line": {0, "see ![cat](data:image/png;base64,AAAAAAAA) there", "see ![cat](data:…) there"},
		"an image that ends": {0, "see ![cat](data:image/png;base64,AAAAAAAA", "see ![cat](data:…"},
		"an image in a row": {
			0, "| a |\n|---|\n| ![c](data:image/png;base64,AAAA) |\n",
			"| a            |\n| ------------ |\n| ![c](data:…) |\n",
		},
		"nearly an image": {0, "a](dat\n](da", "a](dat\n](da"},
		"marks":           {0, "!\n`\n   \n~ |\n|", "!\n`\n   \n~ |\n|"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 7, len(tc.text)} {
				s := &markdown.Tables{Width: tc.width, Style: markdown.Style{NoColor: true}}
				var b strings.Builder
				for rest := tc.text; rest != ""; {
					k := min(n, len(rest))
					b.WriteString(s.Write(rest[:k]))
					rest = rest[k:]
				}
				b.WriteString(s.Close())
				if diff := cmp.Diff(tc.want, b.String()); diff != "" {
					t.Fatalf("in pieces of %d:\n%s", n, diff)
				}
			}
		})
	}
}

// TestTablesComeAtOnce checks that words need not wait for the end of their line.
func TestTablesComeAtOnce(t *testing.T) {
	var s markdown.Tables
	if got := s.Write("Some wo"); got != "Some wo" {
		t.Errorf("%q", got)
	}
	if got := s.Write("rds\n| a"); got != "rds\n" {
		t.Errorf("%q", got)
	}
}
