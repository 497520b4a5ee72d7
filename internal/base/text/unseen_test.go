package text_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/inspan/inspan/internal/base/text"
)

// TestInvisible checks that the size of invisible characters follows from the table, and that a text that ends too
// early to tell says so.
func TestInvisible(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		s, want := string(r), 0
		if text.Unseen.Has(r) {
			want = len(s)
		}
		if n, cut := text.Invisible(s + "x"); n != want || cut || want > 0 && !text.MayHide(s) {
			t.Fatalf("%q: %d, %v, want %d", s, n, cut, want)
		}
		for i := 1; i < len(s) && want > 0; i++ {
			if n, cut := text.Invisible(s[:i]); n != 0 || !cut || !text.MayHide(s[:i]) {
				t.Fatalf("%q of %q: %d, %v", s[:i], s, n, cut)
			}
		}
	}
	for s, want := range map[string]int{
		"\x1b[31mx": 5, "\x1b[mx": 3, "\x1b[38;2;255;0;0mx": 15, "\x1b[?25lx": 6, "\x1b[ qx": 4, "\x1b(Bx": 3, "\x1b)0x": 3,
		"\x1bx": 1, "\x1b[\nx": 1, "\x1b[é": 1, "\x1b(\x01": 1, "\x1b[" + strings.Repeat("1", 61) + "mx": 64, "\x1b[" + strings.Repeat("1", 62) + "mx": 1,
		"": 0, "x": 0, "\n": 0, "\t": 0, " ": 0, "\u2800": 0, "\xff": 0, "\x80": 0, "\xe2\x80x": 0,
	} {
		if n, cut := text.Invisible(s); n != want || cut {
			t.Errorf("%q: %d, %v, want %d", s, n, cut, want)
		}
	}
	for _, s := range []string{"\x1b", "\x1b[", "\x1b[3", "\x1b[38;2", "\x1b(", "\x1b)"} {
		if n, cut := text.Invisible(s); n > 1 || !cut {
			t.Errorf("%q: %d, %v", s, n, cut)
		}
	}
}
