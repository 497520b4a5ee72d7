package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Spelled writes a character so that it can be seen whatever it is: \x1b,
// \u202e, \U000e0041.
func Spelled(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Clean takes out of text whatever could drive the terminal, and leaves the rest
// as it is: what it returns holds no hidden character but newlines and tabs. What
// ends a line unseen becomes a newline, what looks like a space one, and what is
// no UTF-8 U+FFFD. For what is read, not for what is decided on.
func Clean(s string) string {
	return rewrite(s, Unread, func(b *strings.Builder, r rune, bad string) {
		if bad != "" {
			b.WriteRune(utf8.RuneError)
		}
		b.WriteString(stand(r))
	})
}

// Page is Clean for the text of a web page: carriage returns and form feeds end lines, as
// browsers have it, and what is no UTF-8 is left out.
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

// stand is what a character becomes that is not shown, mostly nothing.
func stand(r rune) string {
	switch Of(r) {
	case Separator:
		return "\n"
	case Blank:
		return " "
	}
	return ""
}

// Visible spells out what a person could not see, newlines too: what it returns
// is one line without hidden characters. A tab becomes four spaces, and a byte
// that is no UTF-8 \xff. For what is decided on: what is shown is what runs.
func Visible(s string) string { return rewrite(s, Hidden, spell) }

// VisibleLines is Visible for text of several lines: newlines stay.
func VisibleLines(s string) string { return rewrite(s, Hidden&^Newline, spell) }

// Line is prose as one line without hidden characters: white space of any kind
// becomes one space, the rest is as in Visible.
func Line(s string) string { return Visible(Flat(s)) }

// Flat is a text on one line: white space of any kind becomes one space, and none is left
// at either end.
func Flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Quoted is a text on one line in which every character can be told; quoted as in Go if
// that takes spelling some of them out.
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

// Holds reports whether a text has a character of the classes, or is no UTF-8.
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

// rewrite calls put for each character of the classes, and for each byte that is no
// UTF-8, which is bad then.
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
