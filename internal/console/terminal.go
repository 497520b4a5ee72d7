package console

import (
	"fmt"
	"strings"
	"unicode"
)

// Colours, as SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (c *Console) paint(sgr, text string) string {
	if !c.Color || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (c *Console) paintDiff(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return c.paint(green, line)
	case strings.HasPrefix(line, "-"):
		return c.paint(red, line)
	}
	return c.paint(dim, line)
}

// clean removes everything from text that could drive the terminal: all
// control characters but newline and tab, escape sequences with them.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || hidden(r) {
			return -1
		}
		return r
	}, text)
}

// visible spells out what a person could not see: control characters, and
// those that reorder or hide text. What is shown is what runs.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsControl(r) || hidden(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// visibleLines is visible for text of several lines.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	return strings.Join(lines, "\n")
}

// hidden reports whether r changes the direction of text or has no width.
func hidden(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2061 && r <= 0x206f, r == 0x061c: // bidirectional and invisible controls
		return true
	case r == 0x200b, r == 0x200e, r == 0x200f, r == 0x2060, r == 0xfeff, r == 0x2028, r == 0x2029, r == 0x180e, r == 0x3164, r == 0xffa0: // zero width, marks, separators, fillers
		return true
	case r >= 0xe0000 && r <= 0xe0fff, r >= 0xfff9 && r <= 0xfffb: // tags and annotations
		return true
	}
	return false
}

// OneLine shows text on one line of at most limit characters.
func OneLine(text string, limit int) string {
	runes := []rune(visible(strings.Join(strings.Fields(text), " ")))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}
