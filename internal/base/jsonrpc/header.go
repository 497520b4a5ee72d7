package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxMessage = 32 << 20 // bytes of one message
	maxHeader  = 8 << 10  // bytes of the lines before it
	maxKept    = 1 << 20  // bytes of buffer that are reused for the next message
)

// Header prepends a header with its length to the body of a message.
func Header(body []byte) []byte {
	return append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
}

// A Decoder splits a stream into messages with headers. It is an [io.Writer], so that no goroutine is needed
// for reading. Data after an error is dropped.
type Decoder struct {
	Take func(body []byte) // the body is valid until it returns

	buf  []byte
	body int // length of the expected body; 0 while the header is expected
	err  error
}

// Write implements [io.Writer]. It handles the messages that p completes before it returns. The error says that
// the stream is invalid.
func (d *Decoder) Write(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	d.buf = append(d.buf, p...)
	rest := d.buf
	for d.err == nil {
		n := d.next(rest)
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	if d.err != nil {
		d.buf = nil
		return 0, d.err
	}
	d.keep(rest)
	return len(p), nil
}

// keep moves the rest to the front of the buffer, and releases a buffer that a single big message enlarged.
func (d *Decoder) keep(rest []byte) {
	if cap(d.buf) > maxKept && len(rest) < maxKept/2 {
		d.buf = append([]byte(nil), rest...)
		return
	}
	d.buf = d.buf[:copy(d.buf, rest)]
}

// next takes one header or one body from the front and returns its length, 0 if it is incomplete.
func (d *Decoder) next(data []byte) int {
	if d.body > 0 {
		if len(data) < d.body {
			return 0
		}
		n := d.body
		d.body = 0
		d.Take(data[:n])
		return n
	}
	end := bytes.Index(data[:min(len(data), maxHeader)], []byte("\r\n\r\n"))
	if end < 0 {
		if len(data) >= maxHeader {
			d.err = errors.New("what it writes are not messages")
		}
		return 0
	}
	d.body, d.err = bodyLength(string(data[:end]))
	return end + 4
}

// bodyLength parses a header.
func bodyLength(header string) (int, error) {
	length := 0
	for line := range strings.SplitSeq(header, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return 0, fmt.Errorf("it wrote %.80q where the header of a message was due", line)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		if err != nil || n > maxMessage || n == 0 {
			return 0, fmt.Errorf("it announced a message of %.40q bytes; at most %d are read", strings.TrimSpace(value), maxMessage)
		}
		length = int(n)
	}
	if length == 0 {
		return 0, errors.New("it wrote a message without its length")
	}
	return length, nil
}
