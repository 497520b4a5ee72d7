package secret

import (
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// A known value may stand in a text with characters inside that nobody sees, or that a shell or
// a string takes away. Such a character is a gap: the value is looked for as if the text had none.

// longestRun is how many bytes of gaps may follow each other within a value. Colours of 24 bits
// for a letter and for what is behind it, set anew, fit in.
const longestRun = 64

// gap is the size of the gap that a text begins with; 0: it begins with none. cut says that the
// text must go on to tell.
func gap(s string) (n int, cut bool) {
	switch s[0] {
	case '\'', '"':
		return 1, false
	case '\\':
		if n, cut = escaped(s); n > 0 || cut {
			return max(n, 1), cut
		}
		return 1, false
	case '^':
		return caret(s)
	}
	return text.Invisible(s)
}

// caret is the size of a control character as programs show it that spell it out, ^@ or ^[[31m.
func caret(s string) (n int, cut bool) {
	if n, cut = colour(s, "^["); n > 0 || cut {
		return n, cut
	}
	if len(s) > 1 && s[1] >= '?' && s[1] <= '_' && text.Unseen.Has(rune(s[1]^0x40)) {
		return 2, false
	}
	return 0, false
}

// escaped is the size of what a backslash makes a gap of: the end of a line, or an invisible
// character that is written as JSON and languages do, \u200b or \x1b[31m.
func escaped(s string) (n int, cut bool) {
	if len(s) < 2 {
		return 0, true
	}
	switch s[1] {
	case '\n':
		return 2, false
	case '\r':
		if len(s) > 2 && s[2] == '\n' {
			return 3, false
		}
		return 0, len(s) == 2
	case 'e':
		return colour(s, `\e`)
	case '0':
		return colour(s, `\033`)
	case 'x':
		return colour(s, `\x1b`)
	case 'u':
		code := s[2:min(len(s), 6)]
		r, err := strconv.ParseUint(code, 16, 16)
		switch {
		case err != nil && code != "":
			return 0, false
		case len(code) < 4:
			return 0, true
		case r == '\x1b':
			if n, cut = colour(s, s[:6]); n > 0 || cut {
				return n, cut
			}
		}
		if text.Unseen.Has(rune(r)) {
			return 6, false
		}
	}
	return 0, false
}

// colour is the size of a control sequence of a terminal, the escape of which is written like
// that.
func colour(s, escape string) (n int, cut bool) {
	if len(s) < len(escape) {
		return 0, strings.EqualFold(s, escape[:len(s)])
	}
	if !strings.EqualFold(s[:len(escape)], escape) {
		return 0, false
	}
	s = s[len(escape):]
	if n, cut = text.Invisible("\x1b" + s[:min(len(s), longestRun)]); n > 1 {
		return n - 1 + len(escape), false
	}
	return 0, cut
}

// gapped lists the bytes that gaps begin with.
func gapped() (out [256]bool) {
	for b := range out {
		out[b] = strings.IndexByte(`'"\^`, byte(b)) >= 0 || text.MayHide(string([]byte{byte(b)}))
	}
	return out
}

// bare is a text without its gaps.
func bare(s string) string {
	first := 0
	for ; first < len(s); first++ {
		if n, _ := gap(s[first:]); n > 0 {
			break
		}
	}
	if first == len(s) {
		return s
	}
	out := []byte(s[:first])
	for i := first; i < len(s); {
		n, _ := gap(s[i:])
		if n == 0 {
			out = append(out, s[i])
		}
		i += max(n, 1)
	}
	return string(out)
}
