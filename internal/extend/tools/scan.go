package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/tool"
)

// scanner searches files line by line. It is only read while searching.
type scanner struct {
	re      *regexp.Regexp
	literal []byte // every match contains it; nil if unknown
	context int    // lines around a match
}

// scanned is the result for one file.
type scanned struct {
	hits   []hit
	more   bool // there are more hits than requested
	binary bool
	failed bool
}

// hit is a matching line and those around it, cut to a length fit to show.
type hit struct {
	line          int
	text          string
	before, after []string
}

// scanFile searches a file for up to most matching lines. It reads into buf
// and returns it for the next file.
func (s *scanner) scanFile(ctx context.Context, files tool.Files, path string, buf []byte, most int) (scanned, []byte) {
	f, err := files.Open(ctx, path)
	if err != nil {
		return scanned{failed: true}, buf
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return scanned{failed: true}, buf
	}
	if info.Size() > maxFile {
		return s.scanLong(f, longBlock, most), buf
	}
	data, err := readInto(f, buf[:0], int(info.Size()))
	if err != nil {
		return scanned{failed: true}, data
	}
	text := data
	if looksBinary(data) || !utf8.Valid(data) {
		wide, enc, ok := decode(data)
		switch {
		case ok && enc != plainUTF8:
			text = []byte(wide)
		case looksBinary(data):
			return scanned{binary: true}, data
		}
	}
	hits, more := s.scan(text, lineRange{to: len(text), line: 1}, most)
	return scanned{hits: hits, more: more}, data
}

// longBlock is how much of a too large file is searched at once, in bytes. A longer line is searched in pieces.
const longBlock = 4 << 20

// scanLong searches a file of any size, one block at a time.
func (s *scanner) scanLong(f io.Reader, block, most int) (out scanned) {
	buf, fresh, line := make([]byte, 0, block), 0, 1 // new data begins there, at that line
	for last := false; !last; {
		n, err := io.ReadFull(f, buf[len(buf):cap(buf)])
		buf, last = buf[:len(buf)+n], err != nil
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return scanned{failed: true}
		}
		if line == 1 && looksBinary(buf) {
			return scanned{binary: true}
		}
		end := len(buf)
		if whole := linesBack(buf, s.context+1); !last && whole > fresh {
			end = whole // the context after these lines is incomplete
		}
		hits, more := s.scan(buf, lineRange{fresh, end, line}, most-len(out.hits))
		out.hits = append(out.hits, hits...)
		if out.more = more; more {
			return out
		}
		line += bytes.Count(buf[fresh:end], []byte("\n"))
		keep := max(linesBack(buf[:end], s.context), 0)
		if end-keep > block/2 {
			keep = end // such long lines are shown without context before them
		}
		fresh = end - keep
		buf = buf[:copy(buf, buf[keep:])]
	}
	return out
}

// linesBack returns where the last n lines of a text begin; -1 if it has fewer.
func linesBack(data []byte, n int) int {
	at := len(data)
	for range n {
		if at == 0 {
			return -1
		}
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	return at
}

// lineRange is the range of a text with the lines to search, and the number of the first of them.
type lineRange struct{ from, to, line int }

// readInto reads all of r, of about n bytes, after buf.
func readInto(r io.Reader, buf []byte, n int) ([]byte, error) {
	if cap(buf) <= n {
		buf = make([]byte, 0, n+bytes.MinRead)
	}
	for len(buf) <= maxFile {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		m, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+m]
		if err == io.EOF {
			break
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// scan finds up to most matching lines of a part, and whether there are more.
func (s *scanner) scan(data []byte, p lineRange, most int) (hits []hit, more bool) {
	line, counted := p.line, p.from // line is the number of the line at counted
	for at := p.from; at < p.to; {
		start, end := s.candidate(data, at)
		if start < 0 || start >= p.to {
			break
		}
		at = end + 1
		text := bytes.TrimSuffix(data[start:end], []byte("\r"))
		loc := s.re.FindIndex(text)
		if loc == nil {
			continue
		}
		if len(hits) == most {
			return hits, true
		}
		line += bytes.Count(data[counted:start], []byte("\n"))
		counted = start
		hits = append(hits, hit{
			line: line, text: around(text, loc[0]),
			before: shortLines(data[max(linesBack(data[:start], s.context), 0):start]), after: s.linesAfter(data, end),
		})
	}
	return hits, false
}

// candidate returns the bounds of the next line from at that may match,
// start -1 if there is none. At is the start of a line.
func (s *scanner) candidate(data []byte, at int) (start, end int) {
	start = at
	if s.literal != nil {
		i := bytes.Index(data[at:], s.literal)
		if i < 0 {
			return -1, -1
		}
		at += i
		start = bytes.LastIndexByte(data[:at], '\n') + 1
	}
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return start, at + i
	}
	return start, len(data)
}

func (s *scanner) linesAfter(data []byte, end int) []string {
	if end >= len(data) {
		return nil
	}
	to := end + 1
	for n := 0; n < s.context && to < len(data); n++ {
		i := bytes.IndexByte(data[to:], '\n')
		if i < 0 {
			to = len(data)
			break
		}
		to += i + 1
	}
	return shortLines(data[end+1 : to])
}

func shortLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	var list []string
	for line := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		list = append(list, around(bytes.TrimSuffix(line, []byte("\r")), 0))
	}
	return list
}

// around returns a line, or if it is long the part of it near the offset at.
func around(line []byte, at int) string {
	if len(line) <= maxShownLine {
		return strings.ToValidUTF8(string(line), "\ufffd")
	}
	from := max(0, min(at-maxShownLine/3, len(line)-maxShownLine))
	text := strings.ToValidUTF8(string(line[from:from+maxShownLine]), "")
	if from > 0 {
		text = "…" + text
	}
	if from+maxShownLine < len(line) {
		text += "…"
	}
	return text
}

// requiredLiteral returns the longest text that every match of a regular expression must contain, nil if
// unknown. Searching for it first is many times faster than matching every line.
func requiredLiteral(expr string) []byte {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	if text := literalOf(re.Simplify()); text != "" {
		return []byte(text)
	}
	return nil
}

func literalOf(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		// U+FFFD stands for any byte that is not UTF-8.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literalOf(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if text := literalOf(sub); len(text) > len(best) {
				best = text
			}
		}
		return best
	}
	return ""
}
