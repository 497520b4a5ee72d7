package markdown

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Plain makes text harmless: control characters, and characters that reorder or hide text, become visible
// escapes such as \x1b and \u202e; bytes that are not UTF-8 become \xff. Newlines stay, "\r\n" becomes one, and
// tabs become spaces up to the next multiple of four. Plain text is unchanged.
func Plain(text string) string {
	var c cleaner
	out := c.write(text)
	return out + c.rest()
}

// cleaner is Plain for text in pieces.
type cleaner struct {
	held   string // the beginning of a character, or of "\r\n"
	column int    // of the next character, counted in characters
}

// write returns the text that is certain so far; only the beginning of a character is held back.
func (c *cleaner) write(s string) string {
	if c.held == "" && simple(s) {
		c.advance(s)
		return s
	}
	s, c.held = c.held+s, ""
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == '\r' && i+1 == len(s) || !utf8.FullRuneInString(s[i:]) {
			c.held = s[i:]
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case s[i] == '\r' && s[i+1] == '\n':
		case r == utf8.RuneError && size == 1:
			c.put(&b, fmt.Sprintf(`\x%02x`, s[i]))
		case r == '\t':
			c.put(&b, "    "[c.column%4:])
		case text.Hidden.Has(r) && r != '\n':
			c.put(&b, text.Spelled(r))
		default:
			c.put(&b, s[i:i+size])
		}
		i += size
	}
	return b.String()
}

// rest returns the held text.
func (c *cleaner) rest() string {
	var b strings.Builder
	for i := range len(c.held) {
		fmt.Fprintf(&b, `\x%02x`, c.held[i])
	}
	c.held = ""
	return b.String()
}

func (c *cleaner) put(b *strings.Builder, s string) {
	b.WriteString(s)
	c.advance(s)
}

func (c *cleaner) advance(s string) {
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		c.column, s = 0, s[i+1:]
	}
	c.column += utf8.RuneCountInString(s)
}

// simple reports whether text has nothing but printable ASCII and newlines.
func simple(text string) bool {
	for i := range len(text) {
		if b := text[i]; b != '\n' && (b < ' ' || b > '~') {
			return false
		}
	}
	return true
}
