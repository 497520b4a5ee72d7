package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

const (
	maxFrame = 16 << 20 // bytes of one message
	maxNoise = 16 << 20 // bytes that are none, in all
	maxKept  = 1 << 20  // bytes of buffer that are kept between messages
)

// frames passes on what a server writes: one message a line. Lines that are none
// go to the noise, as many programs greet on standard output. What comes after
// an error is dropped.
type frames struct {
	to    io.Writer
	noise io.Writer

	line    []byte
	dropped int
	err     error
}

// Write implements [io.Writer]. The error is that of a stream that is none of
// messages, or of who reads them.
func (f *frames) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && f.err == nil {
		line, after, ended := bytes.Cut(p, []byte{'\n'})
		f.line = append(f.line, line...)
		if len(f.line) > maxFrame {
			f.err = fmt.Errorf("it wrote a message of more than %d MiB", maxFrame>>20)
			break
		}
		if ended {
			f.pass()
		}
		p = after
	}
	if f.err != nil {
		f.line = nil
		return 0, f.err
	}
	return n, nil
}

// pass handles a whole line.
func (f *frames) pass() {
	line := bytes.TrimSpace(f.line)
	if len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line) {
		_, f.err = f.to.Write(append(line, '\n'))
	} else if f.dropped += len(line) + 1; f.dropped > maxNoise {
		f.err = fmt.Errorf("it wrote more than %d MiB to its standard output that are no messages", maxNoise>>20)
	} else {
		_, _ = f.noise.Write(append(line[:min(len(line), 500)], '\n')) // a tail never fails
	}
	if f.line = f.line[:0]; cap(f.line) > maxKept {
		f.line = nil
	}
}
