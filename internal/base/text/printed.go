package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printed converts the output of a program to text: without terminal control sequences and surrounding blanks.
// It is for models and logs; for people use [Clean].
func Printed(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	var b strings.Builder
	for s != "" {
		if n, _ := sequence(s); n > 0 {
			s = s[n:]
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
