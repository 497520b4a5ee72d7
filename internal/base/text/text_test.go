package text_test

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/base/text"
)

// classes names every class with one of its characters.
func classes() map[text.Class][]rune {
	return map[text.Class][]rune{
		0:               []rune("a ~ü漢🙂é\ufffd"),
		text.Newline:    {'\n'},
		text.Tab:        {'\t'},
		text.Return:     {'\r', '\f'},
		text.Control:    {0, 0x1b, '\v', 0x7f, 0x80, 0x9f},
		text.Separator:  {0x2028, 0x2029},
		text.Bidi:       {0x202a, 0x202b, 0x202c, 0x2066, 0x2069},
		text.Override:   {0x202d, 0x202e},
		text.Mark:       {0x200e, 0x200f, 0x61c},
		text.Joiner:     {0x200c, 0x200d, 0x180b, 0x180f},
		text.ByteOrder:  {0xfeff},
		text.ZeroWidth:  {0x200b, 0x2060, 0x180e, 0x34f},
		text.Operator:   {0x2061, 0x2065, 0x206a, 0x206f},
		text.SoftHyphen: {0xad},
		text.Filler:     {0x115f, 0x1160},
		text.Empty:      {0x3164, 0xffa0, 0x17b4, 0x17b5},
		text.Blank:      {0x2800},
		text.Selector:   {0xfe00, 0xfe0f, 0xe0100, 0xe01ef},
		text.Tag:        {0xe0000, 0xe0001, 0xe0041, 0xe007f},
		text.Ignorable:  {0xfff0, 0xfff8, 0xe0080, 0xe01f0, 0xe0fff},
		text.Annotation: {0xfff9, 0xfffb},
		text.Musical:    {0x1d173, 0x1d17a, 0x1bca0},
		text.Private:    {0xe000, 0xf8ff, 0xf0000, 0x10fffd},
		text.Nonchar:    {0xfdd0, 0xfffe, 0x1ffff, 0xfffff, 0x10ffff},
		text.Space:      {0xa0, 0x2003, 0x202f, 0x3000},
		text.Format:     {0x600, 0x6dd, 0x13430},
		text.Unassigned: {0x378, 0xe1000, 0xd800},
	}
}

// TestClasses checks the class of the characters that were once judged differently.
func TestClasses(t *testing.T) {
	for class, list := range classes() {
		for _, r := range list {
			if got := text.Of(r); got != class {
				t.Errorf("U+%04X is in class %b, want %b", r, got, class)
			}
			if class != 0 && (!class.Has(r) || (^class).Has(r)) {
				t.Errorf("U+%04X is not in its class alone", r)
			}
		}
	}
}

// TestEveryCodePoint compares the table with Unicode's own data: every character that can be invisible is in a class,
// each character in at most one, and printing characters are plain.
func TestEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		class := text.Of(r)
		if class&(class-1) != 0 || class.Has(r) != (class != 0) || text.Unclear.Has(r) != (class != 0) {
			t.Fatalf("U+%04X: %b", r, class)
		}
		unseen := unicode.In(r, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point, unicode.Zl, unicode.Zp)
		joins := text.Joiner | text.Selector
		switch {
		case unseen && !(text.Hidden | joins).Has(r):
			t.Errorf("U+%04X can't be seen, and is in class %b", r, class)
		case unicode.Is(unicode.Variation_Selector, r) && !joins.Has(r):
			t.Errorf("U+%04X selects, and is in class %b", r, class)
		case unicode.Is(unicode.Cf, r) && !text.Unproven.Has(r), unicode.IsControl(r) && r != '\n' && r != '\t' && !text.Unproven.Has(r),
			unicode.IsSpace(r) && !strings.ContainsRune(" \n\t", r) && !text.Unproven.Has(r):
			t.Errorf("U+%04X may stand in a command, and is in class %b", r, class)
		case !unicode.IsPrint(r) && class == 0:
			t.Errorf("U+%04X does not print and is plain", r)
		case unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.Sm, unicode.Sc) && class != 0 && class != text.Filler && class != text.Empty:
			t.Errorf("U+%04X is a letter, number or sign, and is in class %b", r, class)
		}
	}
}

// TestPolicies checks that stricter policies have all of the milder ones.
func TestPolicies(t *testing.T) {
	for name, tc := range map[string]struct{ all, of text.Class }{
		"what is not read is hidden":         {text.Hidden, text.Unread},
		"no command holds what is not read":  {text.Unproven, text.Unread},
		"a model is told of what is unread":  {text.Covert | text.Return | text.Blank, text.Unread},
		"what is hidden is not clear":        {text.Unclear, text.Hidden},
		"what is ignored is told to a model": {text.Covert, text.Ignored},
	} {
		if tc.of&^tc.all != 0 {
			t.Errorf("%s: not %b", name, tc.of&^tc.all)
		}
	}
}

func TestShown(t *testing.T) {
	for _, tc := range []struct{ text, clean, lines, visible string }{
		{"plain ü 漢", "plain ü 漢", "plain ü 漢", "plain ü 漢"},
		{"a\x1b[2J\x07", "a[2J", `a\x1b[2J\x07`, `a\x1b[2J\x07`},
		{"a\tb\nc\r\n", "a\tb\nc\n", "a    b\nc\\x0d\n", `a    b\x0ac\x0d\x0a`},
		{"\u009b1m", "1m", `\x9b1m`, `\x9b1m`},
		{"\u202etxt.exe\u2066", "txt.exe", `\u202etxt.exe\u2066`, `\u202etxt.exe\u2066`},
		{"a\u200b\ufeff\u00ad\u2060\u17b4", "a", `a\u200b\ufeff\xad\u2060\u17b4`, `a\u200b\ufeff\xad\u2060\u17b4`},
		{"a\u2028b\u2029", "a\nb\n", `a\u2028b\u2029`, `a\u2028b\u2029`},
		{"rm\u2800x", "rm x", `rm\u2800x`, `rm\u2800x`},
		{"\U000e0041\u3164\U0001d173\ufdd0", "", `\U000e0041\u3164\U0001d173\ufdd0`, `\U000e0041\u3164\U0001d173\ufdd0`},
		{"\xff\xe6\xbc \ufffd", "\ufffd\ufffd\ufffd \ufffd", "\\xff\\xe6\\xbc \ufffd", "\\xff\\xe6\\xbc \ufffd"},
		{"👩‍👧 שלום \ufe0f \ue0b0", "👩‍👧 שלום \ufe0f \ue0b0", "👩‍👧 שלום \ufe0f \ue0b0", "👩‍👧 שלום \ufe0f \ue0b0"},
	} {
		got := [3]string{text.Clean(tc.text), text.VisibleLines(tc.text), text.Visible(tc.text)}
		if diff := cmp.Diff([3]string{tc.clean, tc.lines, tc.visible}, got); diff != "" {
			t.Errorf("%q: %s", tc.text, diff)
		}
	}
}

func TestPage(t *testing.T) {
	for page, want := range map[string]string{
		"a\r\fb\tc\n":            "a\n\nb\tc\n",
		"a\u2028b\u2800c":        "a\nb c",
		"a\x00\u200b\xff\ufffdb": "ab",
		"क्\u200dष ✔\ufe0f":      "क्\u200dष ✔\ufe0f",
	} {
		if got := text.Page(page); got != want {
			t.Errorf("%q: %q, want %q", page, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"docs/ü.md": "docs/ü.md", `a "b"`: `a "b"`, "a\nb": `"a\nb"`, "a\u202eb": `"a\u202eb"`, "a\u2800b": `"a\u2800b"`,
		"a\ufe0fb": `"a\ufe0fb"`,
		"a\u00a0b": `"a\u00a0b"`, "\xff": `"\xff"`, "": "", "a\u115fb\\": `"a\u115fb\\"`, "\U000e0100": `"\U000e0100"`,
	} {
		if got := text.Quoted(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestSmuggled(t *testing.T) {
	var said strings.Builder
	for _, r := range "\U000e0001\U000e0068\U000e0069\U000e007f" {
		if m := text.Mirrored(r); m != 0 {
			said.WriteRune(m)
		}
	}
	if said.String() != "hi" || text.Mirrored('h') != 0 {
		t.Errorf("%q", said.String())
	}
	for r, want := range map[rune]byte{0xfe00: 0, 0xfe0f: 15, 0xe0100: 16, 0xe01ef: 255} {
		if got := text.Selected(r); got != want {
			t.Errorf("U+%04X selects %d, want %d", r, got, want)
		}
	}
}

// FuzzShown checks the promises about displayed text.
func FuzzShown(f *testing.F) {
	f.Add("a\tb\x1b[31m\u202e漢字漢字 👩‍👩‍👧 long line of words\n\xff\u2028\u2800")
	f.Add(" 0\x88")
	f.Fuzz(func(t *testing.T, s string) {
		for _, rule := range []struct {
			f       func(string) string
			without text.Class
		}{
			{text.Clean, text.Unread},
			{text.Page, text.Unread},
			{text.VisibleLines, text.Hidden &^ text.Newline},
			{text.Visible, text.Hidden},
			{text.Line, text.Hidden},
			{text.Quoted, text.Unclear},
		} {
			once := rule.f(s)
			if text.Holds(once, rule.without) {
				t.Errorf("%q gives %q", s, once)
			}
			if rule.f(once) != once {
				t.Errorf("%q changes again", once)
			}
		}
	})
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		s                     string
		n                     int
		head, tail, cut, clip string
	}{
		{"abc", 3, "abc", "abc", "abc", "abc"},
		{"abcd", 3, "abc", "bcd", "", "ab…"},
		{"abcdef", 5, "abcde", "bcdef", "ab…", "abcd…"},
		{"漢字", 4, "漢", "字", "…", "漢字"},
		{"漢字漢字", 6, "漢字", "漢字", "漢…", "漢字漢字"},
		{"a   bcdef", 6, "a   bc", " bcdef", "a…", "a   b…"},
		{"abc", 0, "", "", "", ""},
		{"abc", -1, "", "", "", ""},
		{"", 0, "", "", "", ""},
	} {
		got := [4]string{text.Head(tc.s, tc.n), text.Tail(tc.s, tc.n), text.Cut(tc.s, tc.n), text.Clip(tc.s, tc.n)}
		if diff := cmp.Diff([4]string{tc.head, tc.tail, tc.cut, tc.clip}, got); diff != "" {
			t.Errorf("%q in %d: %s", tc.s, tc.n, diff)
		}
	}
	if got := text.Short(" a\n\tb\u2028c ", 9); got != "a b c" {
		t.Errorf("%q", got)
	}
	if got := text.Short(strings.Repeat("word ", 9), 13); got != "word word…" {
		t.Errorf("%q", got)
	}
	if got := text.FirstLine(" a b\r\nc"); got != "a b" {
		t.Errorf("%q", got)
	}
}

func TestTrim(t *testing.T) {
	for _, tc := range [][3]string{
		{"abc", "abc", "abc"},
		{"漢", "漢", "漢"},
		{"\xbc\xa2a", "a", "\xbc\xa2a"},
		{"a\xe6\xbc", "a\xe6\xbc", "a"},
		{"a\xff", "a\xff", "a\xff"},
		{"", "", ""},
	} {
		if got := string(text.TrimStart([]byte(tc[0]))); got != tc[1] {
			t.Errorf("start of %q: %q", tc[0], got)
		}
		if got := string(text.TrimEnd([]byte(tc[0]))); got != tc[2] {
			t.Errorf("end of %q: %q", tc[0], got)
		}
	}
}

// FuzzCut checks that nothing is longer than it may be, and no character is parted.
func FuzzCut(f *testing.F) {
	f.Add("漢字 👩‍👩‍👧 é plain", 7)
	f.Add("\x80\x80\x80\x80\xff", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = (n%200+200)%200 - 10
		room := max(n, 0)
		head, tail, cut, clip := text.Head(s, n), text.Tail(s, n), text.Cut(s, n), text.Clip(s, n)
		if len(head) > room || len(tail) > room || len(cut) > room || utf8.RuneCountInString(clip) > room || len(text.Short(s, n)) > room {
			t.Errorf("%q in %d: %q, %q, %q, %q", s, n, head, tail, cut, clip)
		}
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || !strings.HasPrefix(s, strings.TrimSuffix(cut, text.More)) {
			t.Errorf("%q in %d: %q, %q, %q", s, n, head, tail, cut)
		}
		whole := utf8.ValidString(head) && utf8.ValidString(tail) && utf8.ValidString(cut) && utf8.ValidString(clip)
		if utf8.ValidString(s) && !whole {
			t.Errorf("a character of %q is parted in %d", s, n)
		}
		if len(s) <= n && (head != s || tail != s || cut != s || clip != s) {
			t.Errorf("%q fits in %d", s, n)
		}
		if utf8.ValidString(s) && n >= utf8.UTFMax && len(head) < min(len(s), n)-utf8.UTFMax+1 {
			t.Errorf("%q in %d is only %q", s, n, head)
		}
	})
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		text.Thousands(0): "0", text.Thousands(999): "999", text.Thousands(1000): "1,000", text.Thousands(1234567): "1,234,567",
		text.Thousands(-123): "-123", text.Thousands(-1234): "-1,234", text.Thousands(math.MaxInt64): "9,223,372,036,854,775,807",
		text.Count(1, "call"): "1 call", text.Count(0, "call"): "0 calls", text.Count(1200, "call"): "1,200 calls",
		text.Counted(1, "entry", "entries"): "1 entry", text.Counted(2, "entry", "entries"): "2 entries",
		text.Plural(1, "was", "were"): "was", text.Plural(0, "was", "were"): "were",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTable checks how rows stand below each other.
func TestTable(t *testing.T) {
	var out strings.Builder
	w := text.NewTable(&out, "NAME", "N")
	w.Row("a long one", 7)
	w.Row("kurz", "", "last")
	w.Row("a heading that is longer than all")
	w.Row("x", 1)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "NAME        N\na long one  7\nkurz          last\na heading that is longer than all\nx  1\n"
	if out.String() != want {
		t.Errorf("it is\n%swanted\n%s", out.String(), want)
	}
}

func TestWild(t *testing.T) {
	for pattern, want := range map[string]bool{
		"npm run test": true, "npm * test": true, "npm*": true, "*test": true, "*": true, "**": true, "n*run*st": true,
		"npm": false, "npm run": false, "*run": false, "run*": false, "npm test*": false, "*test*run*": false, "": false,
		"npm run test*t": false, // a part of the text counts once
	} {
		if got := text.Wild(pattern, "npm run test"); got != want {
			t.Errorf("%q matches %v, want %v", pattern, got, want)
		}
	}
}

func TestFenced(t *testing.T) {
	for in, want := range map[string]string{
		"a\n":           "```go\na\n```",
		"a ``` b\n````": "`````go\na ``` b\n````\n`````",
		"":              "```go\n\n```",
	} {
		if got := text.Fenced("go", in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestHunk(t *testing.T) {
	for line, want := range map[string][2]text.Lines{
		"@@ -1,2 +3,4 @@ func f": {{First: 1, Count: 2}, {First: 3, Count: 4}},
		"@@ -1 +0,0 @@":          {{First: 1, Count: 1}, {First: 0, Count: 0}},
	} {
		if old, fresh, ok := text.Hunk(line); !ok || old != want[0] || fresh != want[1] {
			t.Errorf("%q has the lines %v and %v (%v), want %v", line, old, fresh, ok, want)
		}
	}
	for _, line := range []string{"", "@@ -1,2 +3,4", "-- -1 +1 @@", "@@ +1 -1 @@", "@@ -x +1 @@", "@@ -1,-2 +1 @@", "@@ -1099511627777 +1 @@"} {
		if _, _, ok := text.Hunk(line); ok {
			t.Errorf("%q counts as the head of a hunk", line)
		}
	}
}
