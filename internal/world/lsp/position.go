package lsp

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Position is a place in a file. Line counts from 0; lines end with "\n". Byte is
// the offset in bytes of UTF-8 from the start of the line.
type Position struct{ Line, Byte int }

// wirePosition counts Character in units of the negotiated encoding.
type wirePosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type wireRange struct {
	Start wirePosition `json:"start"`
	End   wirePosition `json:"end"`
}

type textEdit struct {
	Range wireRange `json:"range"`
	Text  string    `json:"newText"`
}

// A sheet is the text of a file by lines.
type sheet struct {
	text   string
	starts []int // offset of each line
	utf8   bool  // characters in the protocol are bytes; otherwise UTF-16 units
}

func newSheet(text string, inBytes bool) sheet {
	s := sheet{text: text, starts: []int{0}, utf8: inBytes}
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return s
		}
		i += n + 1
		s.starts = append(s.starts, i)
	}
}

// line returns a line without its end; empty if it does not exist.
func (s sheet) line(n int) string {
	if n < 0 || n >= len(s.starts) {
		return ""
	}
	line, _, _ := strings.Cut(s.text[s.starts[n]:], "\n")
	return strings.TrimSuffix(line, "\r")
}

// wire converts a position for the server. A position beyond the end of a line becomes its end.
func (s sheet) wire(p Position) wirePosition {
	line := s.line(p.Line)
	head := line[:max(0, min(p.Byte, len(line)))]
	if s.utf8 {
		return wirePosition{p.Line, len(head)}
	}
	return wirePosition{p.Line, units(head)}
}

// position converts a position of the server. Beyond the end of a line it becomes the end; within a character
// its start.
func (s sheet) position(w wirePosition) Position {
	w.Line = max(w.Line, 0)
	line := s.line(w.Line)
	if !s.utf8 {
		return Position{w.Line, bytesOf(line, w.Character)}
	}
	n := max(0, min(w.Character, len(line)))
	for n > 0 && n < len(line) && !utf8.RuneStart(line[n]) {
		n--
	}
	return Position{w.Line, n}
}

// units returns the length of text in UTF-16 units.
func units(text string) int {
	n := 0
	for _, r := range text {
		n += width(r)
	}
	return n
}

// bytesOf converts a number of UTF-16 units in a line to bytes.
func bytesOf(line string, units int) int {
	for i, r := range line {
		if units -= width(r); units < 0 {
			return i
		}
	}
	return len(line)
}

func width(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// offset converts a position of the server to an offset. The line after the last one is the end.
func (s sheet) offset(w wirePosition) (int, error) {
	if w.Line == len(s.starts) && w.Character == 0 {
		return len(s.text), nil
	}
	if w.Line < 0 || w.Line >= len(s.starts) || w.Character < 0 {
		return 0, fmt.Errorf("line %d is not in the file", w.Line+1)
	}
	return s.starts[w.Line] + s.position(w).Byte, nil
}

// edit applies edits that all refer to the current text.
func (s sheet) edit(edits []textEdit) (string, error) {
	type span struct {
		from, to int
		text     string
	}
	spans := make([]span, len(edits))
	for i, e := range edits {
		from, err := s.offset(e.Range.Start)
		if err != nil {
			return "", err
		}
		to, err := s.offset(e.Range.End)
		if err != nil {
			return "", err
		}
		spans[i] = span{from, to, e.Text}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, e := range spans {
		if e.from < at || e.to < e.from {
			return "", errors.New("its edits overlap")
		}
		b.WriteString(s.text[at:e.from] + e.text)
		at = e.to
	}
	b.WriteString(s.text[at:])
	return b.String(), nil
}
