package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxEvent is the largest line and the largest event accepted, in bytes.
const MaxEvent = 16 << 20

// ErrTooBig says that a line or an event is larger than allowed.
var ErrTooBig = errors.New("server-sent event too big")

// An Event is one server-sent event.
type Event struct {
	Name string // the event field; "" means "message"
	Data []byte // the data lines joined by newlines; valid until the next call of Next
}

// Whole reads a body that did not come as a stream, and returns the data of the events that it stands for, one a call.
func Whole[E ~[]byte](r io.Reader, events func(body []byte) []E) func() ([]byte, error) {
	var rest []E
	read := false
	return func() ([]byte, error) {
		if !read {
			body, err := io.ReadAll(io.LimitReader(r, MaxEvent))
			if err != nil {
				return nil, err
			}
			rest, read = events(body), true
		}
		if len(rest) == 0 {
			return nil, io.EOF
		}
		first := rest[0]
		rest = rest[1:]
		return first, nil
	}
}

// Events reads a stream of server-sent events as the HTML standard describes
// it (section "Server-sent events"): lines end in CR, LF or CRLF, a byte order
// mark at the start and comments are skipped, data lines are joined. Unlike
// there, an event that lacks only its closing blank line at the end of the
// stream is delivered: several servers end that way. So is one that holds a
// whole JSON value when the next begins: some proxies drop blank lines.
type Events struct {
	r     io.Reader
	max   int
	buf   []byte
	start int // buf[start:end] is read but not consumed
	end   int
	data  []byte
	held  []byte // a line that was read and begins the next event
	begun bool   // the byte order mark was handled
	cr    bool   // the last line ended in CR; a LF that follows belongs to it
	err   error
}

// NewEvents reads events of at most limit bytes from r.
func NewEvents(r io.Reader, limit int) *Events {
	return &Events{r: r, max: limit, buf: make([]byte, 32<<10)}
}

// Next returns the next event that has data. It returns io.EOF at the end of
// the stream, ErrTooBig, or the error of the underlying reader.
func (s *Events) Next() (Event, error) {
	s.data = s.data[:0]
	name, has := "", false
	for {
		line, err := s.held, error(nil)
		if s.held = nil; line == nil {
			line, err = s.line()
		}
		if err != nil {
			if errors.Is(err, io.EOF) && has && len(s.data) > 0 {
				return Event{Name: name, Data: s.data}, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if has && len(s.data) > 0 {
				return Event{Name: name, Data: s.data}, nil
			}
			name, has = "", false
			continue
		}
		field, value := splitField(line)
		if has && (string(field) == "event" || string(field) == "data") && json.Valid(s.data) {
			s.held = line
			return Event{Name: name, Data: s.data}, nil
		}
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if len(s.data)+len(value) >= s.max {
				return Event{}, fmt.Errorf("%w: more than %d bytes", ErrTooBig, s.max)
			}
			if has {
				s.data = append(s.data, '\n')
			}
			s.data = append(s.data, value...)
			has = true
		}
	}
}

// splitField splits a line at its first colon. A comment has an empty field.
func splitField(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte(":"))
	return field, bytes.TrimPrefix(value, []byte(" "))
}

// line returns the next line without its ending, valid until the next call.
func (s *Events) line() ([]byte, error) {
	scanned := 0
	for {
		if s.skip() {
			scanned = 0
		}
		if i := lineEnd(s.buf[s.start+scanned : s.end]); i >= 0 {
			i += s.start + scanned
			line := s.buf[s.start:i]
			s.cr = s.buf[i] == '\r'
			s.start = i + 1
			return line, nil
		}
		scanned = s.end - s.start
		if scanned > s.max {
			return nil, fmt.Errorf("%w: more than %d bytes in a line", ErrTooBig, s.max)
		}
		if s.err != nil {
			if errors.Is(s.err, io.EOF) && scanned > 0 {
				line := s.buf[s.start:s.end]
				s.start = s.end
				return line, nil
			}
			return nil, s.err
		}
		s.fill()
	}
}

// skip drops the LF of a CRLF and the byte order mark. It reports whether there
// was any.
func (s *Events) skip() bool {
	before := s.start
	if s.cr && s.start < s.end {
		if s.buf[s.start] == '\n' {
			s.start++
		}
		s.cr = false
	}
	if mark := []byte("\xef\xbb\xbf"); !s.begun {
		have := s.buf[s.start:s.end]
		if bytes.HasPrefix(have, mark) {
			s.start += len(mark)
		}
		s.begun = len(have) >= len(mark) || !bytes.HasPrefix(mark, have)
	}
	return s.start != before
}

// fill reads more bytes after those not yet consumed.
func (s *Events) fill() {
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// lineEnd returns the index of the first CR or LF, -1 if there is none.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	head := b
	if i >= 0 {
		head = b[:i]
	}
	if j := bytes.IndexByte(head, '\r'); j >= 0 {
		return j
	}
	return i
}
