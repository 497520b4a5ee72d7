package text

import (
	"strings"
	"unicode/utf8"
)

// longestSequence is more bytes than a control sequence of a terminal has, in practice.
const longestSequence = 64

// Invisible is how many bytes at the beginning of a text show nothing by themselves: a character
// of [Unseen], or a control sequence of a terminal. cut says that the text must go on to tell.
func Invisible(s string) (n int, cut bool) {
	if !MayHide(s) {
		return 0, false
	}
	if n, cut = sequence(s[:min(len(s), longestSequence)]); n > 0 {
		return n, false
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return 0, !utf8.FullRuneInString(s)
	case Unseen.Has(r):
		return size, cut && len(s) < longestSequence
	}
	return 0, false
}

// MayHide is a quick look at whether a text can begin with what [Invisible] counts. It looks at
// two bytes.
func MayHide(s string) bool {
	switch {
	case s == "" || s[0] >= ' ' && s[0] < 0x7f:
		return false
	case s[0] < utf8.RuneSelf:
		return Unseen.Has(rune(s[0]))
	case s[0] >= 0xf0:
		return true
	}
	next := ""
	switch s[0] {
	case 0xc2:
		return len(s) < 2 || s[1] < 0xa0 || s[1] == 0xad
	case 0xcd:
		next = "\x8f"
	case 0xd8:
		next = "\x9c"
	case 0xe1:
		next = "\x85\x9e\xa0"
	case 0xe2:
		next = "\x80\x81"
	case 0xe3:
		next = "\x85"
	case 0xef:
		next = "\xb7\xb8\xbb\xbe\xbf"
	}
	return next != "" && (len(s) < 2 || strings.IndexByte(next, s[1]) >= 0)
}

// sequence is the size of the control sequence of a terminal that a text begins with: one of CSI,
// or one that chooses a set of characters. cut says that there may be one if the text goes on.
func sequence(s string) (n int, cut bool) {
	if len(s) < 3 || s[0] != '\x1b' {
		return 0, s == "\x1b" || s == "\x1b[" || s == "\x1b(" || s == "\x1b)"
	}
	switch s[1] {
	case '(', ')':
		if s[2] >= '0' && s[2] <= '~' {
			return 3, false
		}
	case '[':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] >= '@' && s[i] <= '~':
				return i + 1, false
			case s[i] < ' ' || s[i] > '?':
				return 0, false
			}
		}
		return 0, true
	}
	return 0, false
}
