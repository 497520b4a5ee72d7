package tools

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how a text file stores characters.
type encoding int

const (
	plainUTF8 encoding = iota
	utf8BOM
	utf16LE // with byte order mark
	utf16BE // with byte order mark
	latin1
)

// String names the encoding for people.
func (e encoding) String() string {
	return [...]string{"UTF-8", "UTF-8 with byte order mark", "UTF-16 LE", "UTF-16 BE", "Latin-1"}[e]
}

// sniffed is how many bytes of a file are checked to tell text from binary.
const sniffed = 8000

// decode decodes a text file. It reports false for data that is not text, or could not be written back
// unchanged.
func decode(data []byte) (text string, e encoding, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		text, e = string(data[3:]), utf8BOM
		ok = utf8.ValidString(text) && !looksBinary(data)
		return text, e, ok
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decodeUTF16(data, binary.LittleEndian, utf16LE)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeUTF16(data, binary.BigEndian, utf16BE)
	case looksBinary(data):
		return "", plainUTF8, false
	case utf8.Valid(data):
		return string(data), plainUTF8, true
	case hasControls(data[:min(len(data), sniffed)]):
		return "", latin1, false
	}
	runes := make([]rune, len(data))
	for i, b := range data {
		runes[i] = rune(b)
	}
	return string(runes), latin1, true
}

func decodeUTF16(data []byte, order binary.ByteOrder, e encoding) (string, encoding, bool) {
	units := make([]uint16, 0, len(data)/2)
	for rest := data[2:]; len(rest) > 1; rest = rest[2:] {
		units = append(units, order.Uint16(rest))
	}
	text := string(utf16.Decode(units))
	back, err := e.encode(text)
	return text, e, err == nil && bytes.Equal(back, data) && !strings.Contains(text, "\x00")
}

// encode writes text as a file of this encoding.
func (e encoding) encode(text string) ([]byte, error) {
	switch e {
	case utf8BOM:
		return append([]byte("\xef\xbb\xbf"), text...), nil
	case utf16LE:
		return encodeUTF16(text, binary.LittleEndian), nil
	case utf16BE:
		return encodeUTF16(text, binary.BigEndian), nil
	case latin1:
		out := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 0xff {
				return nil, fmt.Errorf("the file is Latin-1, which has no %q", r)
			}
			out = append(out, byte(r))
		}
		return out, nil
	}
	return []byte(text), nil
}

func encodeUTF16(text string, order binary.AppendByteOrder) []byte {
	out := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// looksBinary reports whether data does not begin like text: with a NUL byte, the same test as git's.
func looksBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}

// hasControls reports whether there are control bytes that text files lack.
func hasControls(data []byte) bool {
	return bytes.ContainsFunc(data, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) || r == 0x7f
	})
}

// errBinary describes a file that is not text, by its first bytes.
func errBinary(name string, data []byte) error {
	if isPDF(data) {
		return fmt.Errorf("%s is a PDF of %s; pdftotext -layout FILE - in bash shows its text, where poppler is installed, and pdftoppm -png "+
			"makes images of its pages", name, size(int64(len(data))))
	}
	head := data[:min(len(data), 16)]
	return fmt.Errorf("%s is a binary file of %s that starts with % x; use bash with xxd, file or a program that knows the format",
		name, size(int64(len(data))), head)
}

var errNoBlobs = errors.New("there is no blob store in this session")

// unix returns text with every CRLF as LF.
func unix(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// dos returns text, whose line ends are LF, with CRLF instead.
func dos(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// endsInCRLF reports whether most lines of a text end in CRLF.
func endsInCRLF(text string) bool {
	return strings.Count(text, "\r\n")*2 > strings.Count(text, "\n")
}
