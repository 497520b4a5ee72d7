package text

import (
	"strings"
	"unicode/utf8"
)

// longestSequence is longer than terminal control sequences are in practice, in bytes.
const longestSequence = 64

// Invisible returns how many bytes at the beginning of a text are invisible by themselves: a character of
// [Unseen], or a terminal control sequence. cut says that more text is needed to decide.
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

// MayHide is a fast check of whether a text can begin with something that [Invisible] counts. It examines two
// bytes.
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

// sequence returns the size of the terminal control sequence at the beginning of a text: CSI, or one that
// selects a character set. cut says that more text is needed to decide.
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
