package console

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/view/words"
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
	switch text := strings.TrimPrefix(line, words.Within); {
	case strings.HasPrefix(text, "+"):
		return c.paint(green, line)
	case strings.HasPrefix(text, "-"):
		return c.paint(red, line)
	}
	return c.paint(dim, line)
}

// Say prints lines to standard error. On a terminal they wrap between words, indented like the beginning of the
// line, so that words stay whole for copying.
func (c *Console) Say(text string) { fmt.Fprintln(c.Err, words.Wrap(text, c.width(c.Err))) }
