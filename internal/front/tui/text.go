package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
)

// Colours, as SGR parameters. Only those of the terminal's own palette, which
// its owner can read on its background.
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
	width   int  // cells of a line, at most
	light   bool // the background is
	noColor bool
	reader  bool // a screen reader reads along: no colours, marks in words, and nothing that moves
	lexers  *markdown.Lexers
}

// paint returns text in a colour. Text holds no control characters.
func (l look) paint(sgr, text string) string {
	if l.noColor || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// clean is text.Clean with tabs as spaces, so that cells can be counted.
func clean(s string) string { return strings.ReplaceAll(text.Clean(s), "\t", "    ") }

// wrap breaks text without control characters into lines of at most width
// cells, at spaces where it can. Every line gets indent in front.
func wrap(text string, width int, indent string) []string {
	room := max(width-ansi.StringWidth(indent), 1)
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if len(line) > room { // it lets some lines with blanks in front be too long
			line = ansi.Hardwrap(ansi.Wrap(line, room, ""), room, true)
		}
		for part := range strings.SplitSeq(line, "\n") {
			out = append(out, indent+part)
		}
	}
	return out
}

// broken is wrap at any character: nothing of the text is lost, not even spaces.
func broken(text string, width int, indent string) []string {
	room := max(width-ansi.StringWidth(indent), 1)
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if len(line) > room {
			line = ansi.Hardwrap(line, room, true)
		}
		for part := range strings.SplitSeq(line, "\n") {
			out = append(out, indent+part)
		}
	}
	return out
}

// cells is how wide a line is. It counts what lines mostly are, ASCII and
// colours, by itself, as that is ten times as fast.
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

// fitted breaks lines that were made for a wider terminal.
func fitted(lines []string, width int) []string {
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
