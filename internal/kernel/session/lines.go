package session

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// chunk is how much of a log is read at a time.
const chunk = 256 << 10

// errLongLine ends the reading of a file that is not a log.
var errLongLine = errors.New("line is too long")

// lines reads a file line by line from off up to end.
type lines struct {
	f    file
	off  int64 // of the next line
	end  int64
	buf  []byte
	r, w int // buf[r:w] is read and not yet returned
}

// next returns the next line without its newline, valid until the next call. The last line is not whole if its
// newline is missing. At the end the error is [io.EOF].
func (s *lines) next() (line []byte, whole bool, err error) {
	seen := 0
	for {
		if n := bytes.IndexByte(s.buf[s.r+seen:s.w], '\n'); n >= 0 {
			line = s.buf[s.r : s.r+seen+n]
			s.r += len(line) + 1
			s.off += int64(len(line)) + 1
			return line, true, nil
		}
		seen = s.w - s.r
		if seen > maxLine {
			return nil, false, errLongLine
		}
		more, err := s.fill()
		if err != nil {
			return nil, false, err
		}
		if !more {
			break
		}
	}
	if seen == 0 {
		return nil, false, io.EOF
	}
	line = s.buf[s.r:s.w]
	s.r, s.off = s.w, s.off+int64(seen)
	return line, false, nil
}

// verified returns the next line, verified at c, and moves c after it.
func (s *lines) verified(ctx context.Context, c *cursor) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	line, _, err := s.next()
	if err != nil {
		return nil, err
	}
	if _, why := c.take(line); why != "" {
		return nil, c.damage(why)
	}
	return line, nil
}

// fill reads on and reports whether there was more to read.
func (s *lines) fill() (more bool, err error) {
	left := s.end - s.off - int64(s.w-s.r)
	if left <= 0 {
		return false, nil
	}
	if s.r > 0 {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	if s.w == len(s.buf) {
		size := max(min(int64(s.w)+left, chunk), int64(min(2*s.w, s.w+int(min(left, maxLine)))))
		s.buf = append(make([]byte, 0, size), s.buf[:s.w]...)[:size]
	}
	room := s.buf[s.w:]
	room = room[:min(int64(len(room)), left)]
	n, err := s.f.ReadAt(room, s.off+int64(s.w))
	s.w += n
	if errors.Is(err, io.EOF) { // the file was cut meanwhile
		s.end = s.off + int64(s.w)
		err = nil
	}
	return n > 0, err
}
