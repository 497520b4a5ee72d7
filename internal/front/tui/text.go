package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
)

// Colours, as SGR parameters. All are from the terminal's own palette, which its owner can read on its
// background.
const (
	bold    = "1"
	dim     = "2"
	reverse = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	cyan    = "36"

	boldCyan = "1;36" // the person's words
)

// look is how things are shown.
type look struct {
	width   int  // most cells of a line
	light   bool // the background is light
	noColor bool
	verbose bool // results are shown in full
	reader  bool // a screen reader reads the terminal: no colours, marks as words, and nothing moves
	lexers  *markdown.Lexers
}

// paint returns text in a colour. The text must have no control characters.
func (l look) paint(sgr, text string) string {
	if l.noColor || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// clean is text.Clean with tabs as spaces, so that cells can be counted.
func clean(s string) string { return strings.ReplaceAll(text.Clean(s), "\t", "    ") }

// wrap breaks text without control characters into lines of at most width cells, at spaces if possible. Every
// line is indented.
func wrap(text string, width int, indent string) []string {
	return wrapBy(text, width, indent, func(line string, room int) string {
		return ansi.Hardwrap(ansi.Wrap(line, room, ""), room, true) // Wrap leaves some lines with leading blanks too long
	})
}

// wrapAnywhere is like wrap, but breaks at any character and loses nothing, not even spaces.
func wrapAnywhere(text string, width int, indent string) []string {
	return wrapBy(text, width, indent, func(line string, room int) string { return ansi.Hardwrap(line, room, true) })
}

func wrapBy(text string, width int, indent string, breaking func(line string, room int) string) (out []string) {
	room := max(width-ansi.StringWidth(indent), 1)
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if len(line) > room {
			line = breaking(line, room)
		}
		for part := range strings.SplitSeq(line, "\n") {
			out = append(out, indent+part)
		}
	}
	return out
}

// cells returns the width of a line. It counts ASCII and colours, which make up most lines, by itself, which is
// ten times as fast.
func cells(line string) (n int) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c >= ' ' && c <= '~':
			n++
		case c == '\x1b' && i+1 < len(line) && line[i+1] == '[':
			end := i + 2
			for end < len(line) && (line[end] >= '0' && line[end] <= '9' || line[end] == ';') {
				end++
			}
			if end == len(line) || line[end] != 'm' {
				return ansi.StringWidth(line)
			}
			i = end
		default:
			return ansi.StringWidth(line)
		}
	}
	return n
}

// rewrap breaks lines that were made for a wider terminal.
func rewrap(lines []string, width int) []string {
	for i, line := range lines {
		if len(line) > width && cells(line) > width {
			out := append([]string(nil), lines[:i]...)
			for _, line := range lines[i:] {
				out = append(out, strings.Split(ansi.Hardwrap(line, width, true), "\n")...)
			}
			return out
		}
	}
	return lines
}
