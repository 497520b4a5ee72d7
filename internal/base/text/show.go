package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Spelled returns a visible form of any character: \x1b, \u202e, \U000e0041.
func Spelled(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Clean removes everything that could control the terminal from text, and preserves the rest: the result
// contains no hidden characters except newlines and tabs. Other line ends become newlines, other spaces a
// space, and invalid UTF-8 becomes U+FFFD. It is for text that is only read, not for decisions.
func Clean(s string) string {
	return rewrite(s, Unread, func(b *strings.Builder, r rune, bad string) {
		if bad != "" {
			b.WriteRune(utf8.RuneError)
		}
		b.WriteString(stand(r))
	})
}

// Page is Clean for the text of a web page: carriage returns and form feeds end lines, as in browsers, and
// invalid UTF-8 is removed.
func Page(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r' || r == '\f':
			return '\n'
		case r == utf8.RuneError:
			return -1
		case !Unread.Has(r):
			return r
		case stand(r) != "":
			return rune(stand(r)[0])
		}
		return -1
	}, s)
}

// stand returns the replacement of a hidden character, mostly nothing.
func stand(r rune) string {
	switch Of(r) {
	case Separator:
		return "\n"
	case Blank:
		return " "
	}
	return ""
}

// Visible spells out hidden characters, including newlines: the result is one line without hidden characters. A
// tab becomes four spaces, and a byte of invalid UTF-8 \xff. It is for decisions: the shown text is exactly
// what runs.
func Visible(s string) string { return rewrite(s, Hidden, spell) }

// VisibleLines is Visible for text of several lines: newlines are preserved.
func VisibleLines(s string) string { return rewrite(s, Hidden&^Newline, spell) }

// Line returns prose as one line without hidden characters: white space of any kind becomes one space, the rest
// is as in Visible.
func Line(s string) string { return Visible(Flat(s)) }

// Flat returns a text on one line: white space of any kind becomes one space, and both ends are trimmed.
func Flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Quoted returns a text on one line without ambiguous characters; quoted as in Go if some must be spelled out.
func Quoted(s string) string {
	if !Holds(s, Unclear) {
		return s
	}
	var b strings.Builder
	for _, r := range strconv.Quote(s) {
		if Unclear.Has(r) {
			b.WriteString(Spelled(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Holds reports whether a text contains a character of the classes, or invalid UTF-8.
func Holds(s string, c Class) bool { return !utf8.ValidString(s) || strings.ContainsFunc(s, c.Has) }

func spell(b *strings.Builder, r rune, bad string) {
	switch {
	case bad != "":
		fmt.Fprintf(b, `\x%02x`, bad[0])
	case r == '\t':
		b.WriteString("    ")
	default:
		b.WriteString(Spelled(r))
	}
}

// rewrite calls put for each character of the classes, and for each byte of invalid UTF-8, which is then in
// bad.
func rewrite(s string, hide Class, put func(b *strings.Builder, r rune, bad string)) string {
	first := strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || hide.Has(r) })
	if first < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:first])
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch part := s[i : i+size]; {
		case r == utf8.RuneError && size == 1:
			put(&b, r, part)
		case hide.Has(r):
			put(&b, r, "")
		default:
			b.WriteString(part)
		}
		i += size
	}
	return b.String()
}
