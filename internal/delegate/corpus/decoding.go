package corpus

import (
	"bytes"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// decoding names the encoding of a file that is not UTF-8.
type decoding string

const (
	wideLittle decoding = "utf-16le"
	wideBig    decoding = "utf-16be"
	// narrow is Latin-1, with Windows' letters instead of control characters. A letter is a byte, so
	// ranges are those of the file, and only shown text is decoded.
	narrow decoding = "windows-1252"
)

// wide detects UTF-16 at the beginning of a file: by a byte order mark, or because many bytes at every second
// position are NUL and no others are.
func wide(head []byte) decoding {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return wideLittle
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return wideBig
	}
	var nul [2]int
	for i, b := range head {
		if b == 0 {
			nul[i%2]++
		}
	}
	switch most := len(head) / 4; {
	case len(head) < 4:
	case nul[0] == 0 && nul[1] > most:
		return wideLittle
	case nul[1] == 0 && nul[0] > most:
		return wideBig
	}
	return ""
}

// bytesSeen records which kinds of bytes a text contains.
type bytesSeen struct {
	letters bool // UTF-8 beyond ASCII
	broken  bool // bytes that are not UTF-8
	rest    []byte
}

// Write implements [io.Writer].
func (s *bytesSeen) Write(p []byte) (int, error) {
	all := slices.Concat(s.rest, p)
	for len(all) > 0 {
		if all[0] < utf8.RuneSelf {
			all = all[1:]
			continue
		}
		if !utf8.FullRune(all) {
			break
		}
		r, size := utf8.DecodeRune(all)
		if r == utf8.RuneError && size == 1 {
			s.broken = true
		} else {
			s.letters = true
		}
		all = all[size:]
	}
	s.rest = bytes.Clone(all)
	return len(p), nil
}

// narrow reports whether the text has one byte per letter: it has bytes that are not UTF-8, and no UTF-8 letters
// beyond ASCII.
func (s *bytesSeen) narrow() bool { return (s.broken || len(s.rest) > 0) && !s.letters }

// reader decodes r if ranges count the decoded text.
func (d decoding) reader(r io.Reader) io.Reader {
	order, is := map[decoding]unicode.Endianness{wideLittle: unicode.LittleEndian, wideBig: unicode.BigEndian}[d]
	if !is {
		return r
	}
	return unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(r)
}

// text returns a range of a source as UTF-8, to be shown.
func (d decoding) text(data []byte) string {
	if d != narrow {
		return valid(string(data))
	}
	text, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil { // each byte is a letter
		return valid(string(data))
	}
	return string(text)
}

// asked returns a range of a source for a model that should quote it.
func (d decoding) asked(data []byte) string {
	if d != narrow {
		return string(data) // a quote is found in it byte for byte
	}
	return d.text(data)
}

// bytes returns how many bytes of the source a text from [decoding.text] stands for.
func (d decoding) bytes(shown string) int64 {
	if d != narrow {
		return int64(len(shown))
	}
	return int64(utf8.RuneCountInString(shown))
}

// pattern returns a pattern for the bytes of a source that finds at least the matches of re in its text. If exact,
// it finds no others.
func (d decoding) pattern(re *regexp.Regexp) (loose *regexp.Regexp, exact bool) {
	expr := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return utf8.RuneError // a byte that is not UTF-8 decodes to it
		}
		return r
	}, re.String())
	if d != narrow || expr == re.String() {
		return re, true
	}
	loose, err := regexp.Compile(expr)
	if err != nil {
		return re, true
	}
	return loose, false
}

// file is a file that is read decoded. It can't be positioned then.
func (d decoding) file(f fs.File) fs.File {
	if d != wideLittle && d != wideBig {
		return f
	}
	return decoded{f, d.reader(f)}
}

type decoded struct {
	fs.File
	text io.Reader
}

// Read implements [fs.File].
func (d decoded) Read(p []byte) (int, error) { return d.text.Read(p) }
