package text

import "unicode/utf8"

// longestSequence is more bytes than a control sequence of a terminal has, in practice.
const longestSequence = 64

// Invisible is how many bytes at the beginning of a text show nothing by themselves: a character
// of [Unseen], or a control sequence of a terminal. cut says that the text must go on to tell.
func Invisible(s string) (n int, cut bool) {
	if s == "" || !MayHide(s[0]) || s[0] == 0xe3 && len(s) > 1 && s[1] != 0x85 { // most kana, for speed
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

// MayHide reports whether what [Invisible] counts may begin with a byte.
func MayHide(b byte) bool {
	switch {
	case b < ' ':
		return Unseen.Has(rune(b))
	case b < utf8.RuneSelf:
		return b == 0x7f
	case b >= 0xf0:
		return true
	}
	switch b {
	case 0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xe3, 0xef:
		return true
	}
	return false
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
