package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

func countLines(p []byte) int { return bytes.Count(p, []byte("\n")) }

// block is the number of bytes searched at once. A longer line is searched in parts.
const block = 1 << 20

// line is a line of a source.
type line struct {
	from   int64 // its first byte
	number int64 // from 1
	text   []byte
	match  []int // place of the match in text
}

// pattern compiles a regular expression for one line.
func pattern(expr string, anyCase bool) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, errors.New("pattern is empty")
	}
	if anyCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%w (RE2 syntax: no look-around, no back-references; escape ( [ { . * with a backslash)", err)
	}
	return re, nil
}

// search calls found for each matching line. The text of a line is only valid until found returns. Buf has the
// size block; it can be reused.
func search(r io.Reader, re *regexp.Regexp, buf []byte, found func(l line) error) error {
	s := searcher{re: re, found: found, number: 1}
	literal, _ := re.LiteralPrefix()
	s.literal = []byte(literal)
	for n := 0; ; {
		k, err := io.ReadFull(r, buf[n:])
		n += k
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		end := n
		if i := bytes.LastIndexByte(buf[:n], '\n'); !last && i >= 0 {
			end = i + 1
		} else if !last {
			end = wholeRunes(buf[:n])
		}
		if err := s.block(buf[:end]); err != nil || last {
			return err
		}
		n = copy(buf, buf[end:n])
	}
}

// searcher searches blocks that end with a line.
type searcher struct {
	re      *regexp.Regexp
	literal []byte // the start of every match; empty means unknown
	found   func(l line) error
	from    int64 // of the block
	number  int64 // of its first line
}

func (s *searcher) block(data []byte) error {
	counted, number := 0, s.number
	for at := 0; at < len(data); {
		start := at
		if len(s.literal) > 0 {
			i := bytes.Index(data[at:], s.literal)
			if i < 0 {
				break
			}
			start = bytes.LastIndexByte(data[:at+i], '\n') + 1
		}
		end := len(data)
		if i := bytes.IndexByte(data[start:], '\n'); i >= 0 {
			end = start + i
		}
		at = end + 1
		text := bytes.TrimSuffix(data[start:end], []byte("\r"))
		match := s.re.FindIndex(text)
		if match == nil {
			continue
		}
		number += int64(countLines(data[counted:start]))
		counted = start
		if err := s.found(line{from: s.from + int64(start), number: number, text: text, match: match}); err != nil {
			return err
		}
	}
	s.from += int64(len(data))
	s.number += int64(countLines(data))
	return nil
}

// wholeRunes returns the end of the last whole character of a text. Invalid bytes count as whole.
func wholeRunes(p []byte) int {
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax); i-- {
		if r, n := utf8.DecodeRune(p[i:]); p[i] >= 0xc0 {
			if r == utf8.RuneError && n < 2 && !utf8.FullRune(p[i:]) {
				return i
			}
			break
		}
	}
	return len(p)
}

// excerpt returns the part of a line around a match, at most so many bytes of whole characters, and its start
// in the line.
func excerpt(l line, most int) (text []byte, from int) {
	if len(l.text) <= most {
		return l.text, 0
	}
	from = max(0, min(l.match[0]-most/3, len(l.text)-most))
	for from < len(l.text) && continues(l.text[from]) {
		from++
	}
	out := l.text[from:min(from+most, len(l.text))]
	return out[:wholeRunes(out)], from
}

// continues reports whether a byte can't begin a character.
func continues(b byte) bool { return b&0xc0 == 0x80 }
