package tui

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
)

// mark is written to the output between two frames and never reaches the terminal. Bubble Tea's painter writes raw
// sequences first and then the frame, in one goroutine, so when the second of two marks is written, the frame that
// was current at the first one has been written too.
const (
	markStart = "\x1b_inspan;"
	markEnd   = "\x1b\\"
)

// markWritten is sent when a mark has been written.
type markWritten struct{ number int }

// mark writes a mark.
func mark(number int) tea.Cmd { return tea.Raw(fmt.Sprint(markStart, number, markEnd)) }

// output is the terminal. It takes marks out of the stream, and calls passed for each in a goroutine of its own:
// the painter holds a lock while it writes.
type output struct {
	out    io.Writer
	passed func(markWritten)
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	rest := p
	for {
		before, after, found := bytes.Cut(rest, []byte(markStart))
		if len(before) > 0 {
			if n, err := o.out.Write(before); err != nil {
				return len(p) - len(rest) + n, err
			}
		}
		if !found {
			return len(p), nil
		}
		number, after, _ := bytes.Cut(after, []byte(markEnd))
		if n, err := strconv.Atoi(string(number)); err == nil {
			go o.passed(markWritten{n})
		}
		rest = after
	}
}

// terminal is an output to a file, which Bubble Tea asks for its size.
type terminal struct {
	term.File
	output *output
}

// Write implements io.Writer.
func (t terminal) Write(p []byte) (int, error) { return t.output.Write(p) }

// output returns where the front end is drawn.
func (t *TUI) output(passed func(markWritten)) io.Writer {
	o := &output{out: t.out(), passed: passed}
	if file, ok := o.out.(term.File); ok {
		return terminal{file, o}
	}
	return o
}
