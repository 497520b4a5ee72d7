package tools

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// maxOverwritten is how much of one line is kept for a carriage return to
// overwrite, in bytes.
const maxOverwritten = 64 << 10

// A cleaner makes plain text from terminal output. It drops escape sequences, applies carriage returns and
// backspaces as a terminal would, so that only the last state of a progress line stays, writes other control
// characters as ^X and makes invalid UTF-8 valid. Output may arrive in pieces of any size.
type cleaner struct {
	state   cleanState
	line    []byte // the line so far
	partial []byte // start of a character that is not all there
	back    bool   // a carriage return came: what follows overwrites the line
}

type cleanState uint8

const (
	inText   cleanState = iota
	inEscape            // after ESC
	inCSI               // after ESC [
	inString            // after ESC ] and its like, up to BEL, ESC \ or the end of the line
)

// clean cleans a complete text.
func clean(data []byte) string {
	var c cleaner
	return string(c.flush(c.feed(nil, data)))
}

// feed appends to out the text that is certain after the next piece.
func (c *cleaner) feed(out, p []byte) []byte {
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	for len(p) > 0 {
		if c.state != inText {
			p = p[c.sequence(p[0]):]
			continue
		}
		if len(c.line) == 0 && !c.back {
			if n := plainLines(p); n > 0 {
				out = append(out, p[:n]...)
				p = p[n:]
				continue
			}
		}
		if n := plainRun(p); n > 0 {
			out = c.put(out, p[:n])
			p = p[n:]
			continue
		}
		if p[0] < utf8.RuneSelf {
			out = c.control(out, p[0])
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) {
			c.partial = append(c.partial, p...)
			break
		}
		r, n := utf8.DecodeRune(p)
		out = c.rune(out, r, p[:n])
		p = p[n:]
	}
	return out
}

// flush appends the rest at the end of the output.
func (c *cleaner) flush(out []byte) []byte {
	if len(c.partial) > 0 {
		out = c.put(out, []byte("\ufffd"))
		c.partial = nil
	}
	out = append(out, c.line...)
	c.line, c.back = c.line[:0], false
	return out
}

// plainLines counts the bytes of the whole lines at the start that stand for themselves.
func plainLines(p []byte) int {
	n := 0
	for n+8 <= len(p) {
		// A byte is odd if its highest bit is set in one of these: it is below a space or above ~, except for
		// tabs and line ends. No carry reaches the next byte.
		word := binary.LittleEndian.Uint64(p[n:])
		low := word & (ones * 0x7f)
		below := ^(low + ones*0x60)
		above := word | (low + ones)
		tab, end := (low^ones*'\t')+ones*0x7f, (low^ones*'\n')+ones*0x7f
		if (below&tab&end|above)&(ones*0x80) != 0 {
			break
		}
		n += 8
	}
	for n < len(p) && (p[n] == '\n' || p[n] == '\t' || p[n] >= ' ' && p[n] < 0x7f) {
		n++
	}
	return bytes.LastIndexByte(p[:n], '\n') + 1
}

const ones = 0x0101010101010101

// plainRun counts the bytes at the start that stand for themselves.
func plainRun(p []byte) int {
	for i, b := range p {
		if b < ' ' && b != '\t' || b >= 0x7f {
			return i
		}
	}
	return len(p)
}

func (c *cleaner) put(out, p []byte) []byte {
	if c.back {
		c.line, c.back = c.line[:0], false
	}
	c.line = append(c.line, p...)
	if len(c.line) > maxOverwritten {
		out = append(out, c.line...)
		c.line = c.line[:0]
	}
	return out
}

func (c *cleaner) control(out []byte, b byte) []byte {
	switch b {
	case '\n':
		out = append(append(out, c.line...), '\n')
		c.line, c.back = c.line[:0], false
	case '\r':
		c.back = true
	case '\b':
		_, n := utf8.DecodeLastRune(c.line)
		c.line = c.line[:len(c.line)-n]
	case '\a':
	case 0x1b:
		c.state = inEscape
	default:
		out = c.put(out, []byte{'^', b ^ 0x40})
	}
	return out
}

// rune handles a character beyond ASCII. The control characters among them are short forms of escape sequences.
func (c *cleaner) rune(out []byte, r rune, text []byte) []byte {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		return c.put(out, []byte("\ufffd"))
	case r == 0x9b:
		c.state = inCSI
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		c.state = inString
	case r >= 0x80 && r <= 0x9f:
	default:
		return c.put(out, text)
	}
	return out
}

// sequence reads a byte of an escape sequence and returns 1, or 0 if the sequence is over and the byte is not
// part of it.
func (c *cleaner) sequence(b byte) int {
	switch c.state {
	case inEscape:
		return c.escape(b)
	case inCSI:
		switch {
		case b >= 0x40 && b <= 0x7e:
			c.state = inText
		case b < ' ' || b > 0x7e:
			c.state = inText
			return 0
		}
	case inString:
		switch b {
		case '\a':
			c.state = inText
		case 0x1b:
			c.state = inEscape // its backslash ends both
		case '\n':
			c.state = inText
			return 0
		}
	}
	return 1
}

func (c *cleaner) escape(b byte) int {
	switch {
	case b == '[':
		c.state = inCSI
	case b == ']' || b == 'P' || b == '_' || b == '^' || b == 'X':
		c.state = inString
	case b >= 0x20 && b <= 0x2f: // one more byte comes
	case b < ' ' || b > 0x7e:
		c.state = inText
		return 0
	default:
		c.state = inText
	}
	return 1
}
