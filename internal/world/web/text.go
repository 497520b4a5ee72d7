package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/inspan/inspan/internal/base/text"
)

// plain removes HTML markup from a short text.
func plain(s string, limit int) string {
	var b strings.Builder
	for s = text.Head(s, 64<<10); s != ""; {
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
	return text.Short(text.Page(html.UnescapeString(b.String())), limit)
}
