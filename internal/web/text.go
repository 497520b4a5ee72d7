package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// visible leaves out the characters that a person does not see: controls,
// zero-width and tag characters, and those that turn the direction of text.
// Joiners stay, as scripts and emoji need them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\f':
			return '\n'
		case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError,
			r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0,
			r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
			r == 0xfeff, r >= 0xfff0 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
			return -1
		}
		return r
	}, s)
}

// oneLine puts white space into single spaces, and cuts after limit bytes.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	return strings.TrimSpace(cutAt(s, limit)) + " …"
}

// cutAt returns at most the first limit bytes, in whole characters.
func cutAt(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// plain takes the marks of HTML from a short text.
func plain(s string, limit int) string {
	var b strings.Builder
	for s = cutAt(s, 64<<10); s != ""; {
		before, rest, found := strings.Cut(s, "<")
		b.WriteString(before)
		if !found {
			break
		}
		mark, after, closed := strings.Cut(rest, ">")
		first, _ := utf8.DecodeRuneInString(mark)
		if !closed || first != '/' && first != '!' && !unicode.IsLetter(first) {
			b.WriteByte('<')
			s = rest
			continue
		}
		s = after
	}
	return oneLine(visible(html.UnescapeString(b.String())), limit)
}
