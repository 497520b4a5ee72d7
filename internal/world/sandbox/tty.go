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

// terminal is the terminal type that programs see.
const terminal = "xterm-256color"

// connectTTY opens a terminal instead of pipes. Output of a descendant that keeps it open is read further, as
// with a pipe. When we close it, the kernel signals remaining users.
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

// ttyGrace is how long a terminal is read after its process has ended. Its output is available by then, and
// other users of the terminal got a hangup.
const ttyGrace = 100 * time.Millisecond

// give writes the input of the process. The process may end without reading all of it.
func (p *process) give(in io.Reader) {
	_, _ = io.Copy(p.stdin, in)
	if p.tty != nil {
		_, _ = io.WriteString(p.stdin, endOfInput)
		return
	}
	p.stdin.Close()
}

// endOfInput signals the end of the input on a terminal.
const endOfInput = "\x04"
