package tools

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const (
	fewOdd    = 16  // bytes of a line that may be non-text, like the NULs of find -print0
	oneOddIn  = 4   // share of its bytes that may be, if there are more
	shortText = 200 // bytes of lines between two non-text ones that count as non-text
)

// legible returns output in which one line replaces each non-text stretch, as printed by a program that outputs
// an archive or an image.
func legible(data []byte) []byte {
	var out, gone, between []byte // between is what may be gone too
	flush := func() {
		if len(gone) > 0 {
			out = fmt.Appendf(out, "[… %s of binary output left out …]\n", size(int64(len(gone))))
		}
		out = append(out, between...)
		gone, between = gone[:0], between[:0]
	}
	for line := range bytes.Lines(data) {
		n, last := odd(line)
		switch {
		case n > fewOdd && n > len(line)/oneOddIn, n > 0 && len(gone) > 0:
			gone = append(append(gone, between...), line[:last]...)
			between = append(between[:0], line[last:]...) // the next program may have begun there
		case n > 0:
			between = append(between, line...) // the first line of an image has few such bytes
		case len(gone) > 0 && len(between)+len(line) <= shortText:
			between = append(between, line...)
		default:
			flush()
			out = append(out, line...)
		}
	}
	flush()
	return out
}

// odd counts the bytes of a line that are neither UTF-8 nor terminal controls, and returns where the last of
// them ends.
func odd(line []byte) (n, last int) {
	for at := 0; at < len(line); {
		r, width := utf8.DecodeRune(line[at:])
		at += width
		if r == utf8.RuneError && width == 1 || r < ' ' && !bytes.ContainsRune([]byte("\t\n\r\a\b\x1b"), r) || r == 0x7f {
			n, last = n+1, at
		}
	}
	return n, last
}
