package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printed makes text of bytes that a program wrote: without what moves or colours a
// terminal, and without blanks around it. It is for
// models and logs; people are shown it by [Clean].
func Printed(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	var b strings.Builder
	for s != "" {
		if rest, ok := escape(s); ok {
			s = rest
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return strings.TrimSpace(b.String())
}

// escape cuts an ANSI control sequence off the front.
func escape(s string) (rest string, ok bool) {
	if !strings.HasPrefix(s, "\x1b[") {
		return s, false
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return s[i+1:], true
		}
		if s[i] < 0x20 || s[i] > 0x3f {
			break
		}
	}
	return s, false
}
