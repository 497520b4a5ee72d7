package secret

import (
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// A known value may occur in a text with characters inside that are invisible, or that a shell or a string
// removes. Such a character is a gap: the value is searched as if the text had none.

// longestRun bounds adjacent gaps within a value, in bytes. 24-bit colours of a letter and its background, set
// again, fit in.
const longestRun = 64

// gap returns the size of the gap at the beginning of a text; 0 means none. cut says that more text is needed.
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

// caret returns the size of a control character as spelled out by programs, ^@ or ^[[31m.
func caret(s string) (n int, cut bool) {
	if n, cut = colour(s, "^["); n > 0 || cut {
		return n, cut
	}
	if len(s) > 1 && s[1] >= '?' && s[1] <= '_' && text.Unseen.Has(rune(s[1]^0x40)) {
		return 2, false
	}
	return 0, false
}

// escaped returns the size of a gap after a backslash: a line end, or an invisible character as in JSON and
// languages, \u200b or \x1b[31m.
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

// colour returns the size of a terminal control sequence whose escape is spelled like that.
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

// gapped lists the first bytes of gaps.
func gapped() (out [256]bool) {
	for b := range out {
		out[b] = strings.IndexByte(`'"\^`, byte(b)) >= 0 || text.MayHide(string([]byte{byte(b)}))
	}
	return out
}

// bare returns a text without its gaps.
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
