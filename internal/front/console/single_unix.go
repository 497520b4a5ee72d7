//go:build linux || darwin

package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// single makes a terminal pass on each key as it is pressed, without echo. Signals and output stay as they are.
// Restore undoes that.
func single(tty *os.File) (restore func(), err error) {
	fd := int(tty.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil
}

// discard drops what was typed at a terminal and not read.
func discard(tty *os.File) { _ = flushInput(int(tty.Fd())) }
