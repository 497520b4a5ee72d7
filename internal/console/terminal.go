package console

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
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

// Say prints lines of words to standard error. On a terminal they wrap between words,
// below what a line begins with, so that what is to be copied stays whole.
func (c *Console) Say(text string) {
	width := c.width(c.Err)
	if width == 0 {
		fmt.Fprintln(c.Err, text)
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(rest)]
		used := len(indent)
		var b strings.Builder
		b.WriteString(indent)
		for i, word := range strings.Split(rest, " ") {
			n := ansi.StringWidth(word)
			switch {
			case i == 0:
			case used+1+n > width:
				b.WriteString("\n" + indent)
				used = len(indent)
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += n
		}
		fmt.Fprintln(c.Err, b.String())
	}
}
