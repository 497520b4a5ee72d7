package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine bounds a message on its own line, in bytes.
const MaxLine = 64 << 20

// Lines reads messages of one line each until in ends, and calls take, which returns whether to continue. A
// line that is too long is skipped: take gets nil for it. The end of in is not an error.
func Lines(in io.Reader, take func(body []byte) bool) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, tooLong, err := readLine(lines)
		line = bytes.TrimSpace(line)
		if (tooLong || len(line) > 0) && !take(line) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line, or skips it if it is too long.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > MaxLine {
			line, tooLong = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
