package text_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// anything is a text of characters of every kind, and of bytes that are none.
func anything(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(20) {
		switch r.IntN(6) {
		case 0:
			b.WriteByte(byte(r.IntN(256)))
		case 1:
			b.WriteRune(rune(r.IntN(0x110000)))
		case 2:
			b.WriteString([]string{"\n", "\r\n", "\t", " ", "  ", "\u2028", "\u200b", "\u202e", "\x1b[31m", "\x1b[", "\ufffd"}[r.IntN(11)])
		default:
			b.WriteString([]string{"a", "word", "é", "漢", "🙂", "👩‍💻"}[r.IntN(6)])
		}
	}
	return b.String()
}

// TestAlways checks the promises of each function for every input.
func TestAlways(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		s, n := anything(random), random.IntN(40)-2
		for name, f := range map[string]func(string) string{
			"Clean": text.Clean, "Visible": text.Visible, "VisibleLines": text.VisibleLines, "Line": text.Line, "Flat": text.Flat, "Page": text.Page,
			"FirstLine": text.FirstLine, "Printed": text.Printed,
		} {
			once := f(s)
			if again := f(once); again != once {
				t.Fatalf("%s of %q is %q, and again %q", name, s, once, again)
			}
		}
		for _, shown := range []string{text.Visible(s), text.Line(s), text.Quoted(s)} {
			if strings.ContainsAny(shown, "\n\r\t\x1b") || text.Holds(shown, text.Hidden) {
				t.Fatalf("%q is shown as %q", s, shown)
			}
		}
		if clean := text.Clean(s); text.Holds(clean, text.Unread) {
			t.Fatalf("%q is cleaned to %q", s, clean)
		}
		if lines := text.VisibleLines(s); strings.Count(lines, "\n") != strings.Count(s, "\n") {
			t.Fatalf("%q has other lines: %q", s, lines)
		}
		if utf8.ValidString(s) {
			cuts(t, s, n)
		}
	}
}

// cuts holds that a text is cut to size, in whole characters, and that nothing of it is invented.
func cuts(t *testing.T, s string, n int) {
	t.Helper()
	room := max(n, 0)
	for name, got := range map[string]string{
		"Head": text.Head(s, n),
		"Tail": text.Tail(s, n), "Cut": text.Cut(s, n), "Short": text.Short(s, n),
	} {
		if len(got) > room || !utf8.ValidString(got) {
			t.Fatalf("%s(%q, %d) = %q", name, s, n, got)
		}
	}
	if got := text.Clip(s, n); utf8.RuneCountInString(got) > room || !utf8.ValidString(got) {
		t.Fatalf("Clip(%q, %d) = %q", s, n, got)
	}
	if !strings.HasPrefix(s, text.Head(s, n)) || !strings.HasSuffix(s, text.Tail(s, n)) {
		t.Fatalf("%q: the head is %q, the tail %q", s, text.Head(s, n), text.Tail(s, n))
	}
	if len(s) <= n && (text.Cut(s, n) != s || text.Head(s, n) != s || text.Tail(s, n) != s || text.Clip(s, n) != s) {
		t.Fatalf("%q fits into %d and was cut", s, n)
	}
	if got := text.Cut(s, n); len(s) > n && got != "" && (!strings.HasSuffix(got, text.More) ||
		!strings.HasPrefix(s, strings.TrimSuffix(got, text.More))) {
		t.Fatalf("Cut(%q, %d) = %q", s, n, got)
	}
	for at := range s { // joining what was cut anywhere
		head, tail := []byte(s[:at]), []byte(s[at:])
		if string(text.TrimEnd(head))+string(text.TrimStart(tail)) != s {
			t.Fatalf("%q in two at %d", s, at)
		}
	}
	for at := range len(s) {
		if end, start := text.TrimEnd([]byte(s[:at])), text.TrimStart([]byte(s[at:])); !utf8.Valid(end) || !utf8.Valid(start) {
			t.Fatalf("%q cut at %d: %q, %q", s, at, end, start)
		}
	}
}

func TestPlurals(t *testing.T) {
	for want, n := range map[string]int{
		"0 calls": 0, "1 call": 1, "2 calls": 2, "-1 calls": -1, "999 calls": 999, "1,000 calls": 1000, "-1,000 calls": -1000, "-999 calls": -999,
		"12,345,678 calls": 12_345_678, "9,223,372,036,854,775,807 calls": math.MaxInt64, "-9,223,372,036,854,775,808 calls": math.MinInt64,
	} {
		if got := text.Count(n, "call"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := text.Counted(2, "entry", "entries"); got != "2 entries" {
		t.Errorf("%q", got)
	}
}
