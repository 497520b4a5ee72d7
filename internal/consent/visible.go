package consent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is a text on one line in which every character can be seen; quoted as
// in Go if that takes spelling some of them out.
func visible(text string) string {
	if presentable(text) {
		return text
	}
	var b strings.Builder
	for _, r := range strconv.Quote(text) {
		if r >= utf8.RuneSelf && hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// presentable reports whether every character of a text can be seen.
func presentable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || hidden(r) })
}

// hidden reports whether a character counts as printable and yet shows nothing.
func hidden(r rune) bool {
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return unicode.Is(unicode.Variation_Selector, r)
}
