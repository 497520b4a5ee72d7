package markdown

import (
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	mostWords = 150 // of a line; for more, only its beginning and its end are compared
	alike     = 2   // one part in this many must be the same, or the lines count as different
)

// reworded returns the parts of two lines that are only in one of them, as ranges of bytes in order; none if the
// lines have too little in common.
func reworded(a, b string) (inA, inB [][2]int) {
	as, bs := split(a), split(b)
	keepA, keepB := common(as, bs)
	same, total := 0, len(a)+len(b)
	for i, k := range keepA {
		if k {
			same += 2 * len(as[i])
		}
	}
	if same*alike < total || a == b {
		return nil, nil
	}
	return dropped(as, keepA), dropped(bs, keepB)
}

// dropped returns the ranges of the words that are not kept.
func dropped(words []string, keep []bool) (out [][2]int) {
	at := 0
	for i, w := range words {
		switch n := len(out); {
		case keep[i]:
		case n > 0 && out[n-1][1] == at:
			out[n-1][1] = at + len(w)
		default:
			out = append(out, [2]int{at, at + len(w)})
		}
		at += len(w)
	}
	return out
}

// marked returns a line with another background in ranges of bytes.
func marked(l line, ranges [][2]int, back string) (out line) {
	at := 0
	for _, s := range l {
		for s.text != "" {
			for len(ranges) > 0 && ranges[0][1] <= at {
				ranges = ranges[1:]
			}
			n, look := len(s.text), s.look
			switch {
			case len(ranges) == 0:
			case ranges[0][0] > at:
				n = min(n, ranges[0][0]-at)
			default:
				n = min(n, ranges[0][1]-at)
				look.back = back
			}
			out = append(out, span{s.text[:n], look})
			s.text, at = s.text[n:], at+n
		}
	}
	return out
}

// split cuts a line into words, runs of blanks, and single other characters.
func split(s string) []string {
	var out []string
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if kind := sort(r); kind != 0 {
			for n < len(s) {
				next, size := utf8.DecodeRuneInString(s[n:])
				if sort(next) != kind {
					break
				}
				n += size
			}
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

func sort(r rune) int {
	switch {
	case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || (text.Joiner | text.Selector).Has(r):
		return 1
	case r == ' ':
		return 2
	}
	return 0
}

// common marks the words that both have in the same order.
func common(a, b []string) (inA, inB []bool) {
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		inA[start], inB[start] = true, true
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		inA[endA], inB[endB] = true, true
	}
	n, m := endA-start, endB-start
	if n == 0 || m == 0 || n > mostWords || m > mostWords {
		return inA, inB
	}
	// length[i][j] is how many words a[i:] and b[j:] share.
	length := make([][]int16, n+1)
	for i := range length {
		length[i] = make([]int16, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			length[i][j] = max(length[i+1][j], length[i][j+1])
			if a[start+i] == b[start+j] {
				length[i][j] = length[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[start+i] == b[start+j]:
			inA[start+i], inB[start+j] = true, true
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB
}
