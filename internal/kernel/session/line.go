package session

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/inspan/inspan/event"
)

const (
	crcHead = `{"crc":"`
	crcTail = `",`
	headLen = len(crcHead) + 8 + len(crcTail)

	// maxLine limits the size of one event, so that a damaged file without newlines is not read into memory as
	// a whole.
	maxLine = 64 << 20
)

// DamageError says that a log is damaged in a place that no crash of ours explains. Everything before it is
// good; the log accepts no further appends.
type DamageError struct {
	Line   int    // line number, from 1
	Offset int64  // byte offset of the line's start
	Why    string // for people
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("log is damaged at line %d, byte %d: %s", e.Line, e.Offset, e.Why)
}

// cursor is a place between two lines, with the data needed to continue reading or writing there. The zero
// cursor is the start of a log.
type cursor struct {
	Seq uint64 `json:"seq"` // of the event before
	Off int64  `json:"off"`
	CRC uint32 `json:"crc"` // of the line before
}

// damage describes the line that starts at c.
func (c cursor) damage(why string) *DamageError {
	return &DamageError{Line: int(c.Seq) + 1, Offset: c.Off, Why: why}
}

// add appends the line for e, encoded as enc, to buf and moves after it.
func (c *cursor) add(buf []byte, e event.Event, enc []byte) ([]byte, error) {
	if len(enc)+headLen > maxLine {
		return nil, fmt.Errorf("%s event of %d bytes is too big", e.Body.Kind(), len(enc))
	}
	rest := enc[1:]
	crc := chain(c.CRC, rest)
	start := len(buf)
	buf = append(buf, crcHead...)
	buf = appendCRC(buf, crc)
	buf = append(buf, crcTail...)
	buf = append(buf, rest...)
	buf = append(buf, '\n')
	*c = cursor{Seq: e.Seq, Off: c.Off + int64(len(buf)-start), CRC: crc}
	return buf, nil
}

// take verifies the line at c, given without its newline, and moves after it. If the line does not belong there,
// why is the reason and c stays.
func (c *cursor) take(line []byte) (kind string, why string) {
	stated, rest, ok := splitLine(line)
	if !ok {
		if len(line) > 0 && len(bytes.Trim(line, "\x00")) == 0 {
			return "", "only NUL bytes"
		}
		return "", "not a record"
	}
	seq, kind, ok := peek(rest)
	if plain, marked := markedKind(rest); marked {
		kind = plain
	}
	if chain(c.CRC, rest) != stated {
		if ok && seq != c.Seq+1 {
			return "", fmt.Sprintf("sequence number is %d, want %d", seq, c.Seq+1)
		}
		return "", "checksum does not match"
	}
	if !ok || seq != c.Seq+1 {
		return "", fmt.Sprintf("sequence number is %d, want %d", seq, c.Seq+1)
	}
	*c = cursor{Seq: seq, Off: c.Off + int64(len(line)) + 1, CRC: stated}
	return kind, ""
}

// splitLine separates the checksum of a line from the bytes that it covers.
func splitLine(line []byte) (stated uint32, rest []byte, ok bool) {
	if len(line) < headLen || string(line[:len(crcHead)]) != crcHead ||
		string(line[headLen-len(crcTail):headLen]) != crcTail {
		return 0, nil, false
	}
	digits := line[len(crcHead) : len(crcHead)+8]
	var raw [4]byte
	if _, err := hex.Decode(raw[:], digits); err != nil || bytes.ContainsAny(digits, "ABCDEF") {
		return 0, nil, false
	}
	return uint32(raw[0])<<24 | uint32(raw[1])<<16 | uint32(raw[2])<<8 | uint32(raw[3]), line[headLen:], true
}

// chain returns the checksum of a line with these bytes after a line with the checksum prev.
func chain(prev uint32, rest []byte) uint32 {
	var digits [8]byte
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(appendCRC(digits[:0], prev), table), table, rest)
}

func appendCRC(buf []byte, crc uint32) []byte {
	return hex.AppendEncode(buf, []byte{byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc)})
}

// peek finds sequence number and kind without decoding the whole event, if it has the spelling of event.Encode.
func peek(rest []byte) (seq uint64, kind string, ok bool) {
	digits, after, ok1 := bytes.Cut(rest[:min(len(rest), 512)], []byte(`,"time":"`))
	stamp, after, ok2 := bytes.Cut(after, []byte(`","session":"`))
	session, after, ok3 := bytes.Cut(after, []byte(`","kind":"`))
	name, after, ok4 := bytes.Cut(after, []byte(`"`))
	ok4 = ok4 && (bytes.HasPrefix(after, []byte(`,"body":`)) || bytes.HasPrefix(after, []byte(`,"must":true,"body":`)))
	digits, ok5 := bytes.CutPrefix(digits, []byte(`"seq":`))
	plain := !quoted(stamp) && !quoted(session) && !quoted(name)
	if ok1 && ok2 && ok3 && ok4 && ok5 && plain {
		if seq, err := strconv.ParseUint(string(digits), 10, 64); err == nil {
			return seq, string(name), true
		}
	}
	var w struct {
		Seq  uint64 `json:"seq"`
		Kind string `json:"kind"`
	}
	err := json.Unmarshal(append([]byte{'{'}, rest...), &w)
	return w.Seq, w.Kind, err == nil && w.Seq > 0
}

// quoted reports whether s is more than the plain inside of a JSON string.
func quoted(s []byte) bool { return bytes.IndexByte(s, '"') >= 0 || bytes.IndexByte(s, '\\') >= 0 }
