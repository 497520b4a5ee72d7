//go:build unix

package sandbox

import (
	"fmt"
	"io"
	"time"

	"github.com/creack/pty"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/tool"
)

// terminal is what programs are told that their terminal is.
const terminal = "xterm-256color"

// connectTTY opens a terminal in the place of pipes. A descendant that keeps it open is
// read on, as with a pipe; when we close it, the kernel tells those who still have it.
func (p *process) connectTTY(c tool.Command) (theirs WaitForEnd, err error) {
	ours, slave, err := pty.Open()
	if err != nil {
		return theirs, fmt.Errorf("open a terminal: %w", err)
	}
	p.tty, theirs.in, theirs.out = ours, slave, slave
	p.out = processes.NewCopier(ours, c.Output, ttyGrace)
	p.copies = append(p.copies, p.out)
	if c.Stdin != nil {
		p.stdin = ours
	}
	if err := pty.Setsize(ours, &pty.Winsize{Rows: uint16(c.TTY.Rows), Cols: uint16(c.TTY.Cols)}); err != nil {
		return theirs, fmt.Errorf("open a terminal: %w", err)
	}
	if c.Report != nil {
		theirs.report, err = p.reportTo(c)
	}
	return theirs, err
}

// ttyGrace is how long a terminal is read when its process has ended. What that printed is
// in it by then, and who else has it open was told that it is over.
const ttyGrace = 100 * time.Millisecond

// give passes on what the process is to read. It may well end without reading it all.
func (p *process) give(in io.Reader) {
	_, _ = io.Copy(p.stdin, in)
	if p.tty != nil {
		_, _ = io.WriteString(p.stdin, endOfInput)
		return
	}
	p.stdin.Close()
}

// endOfInput is what a terminal takes for the end of the input.
const endOfInput = "\x04"
