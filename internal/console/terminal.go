package console

import "strings"

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
