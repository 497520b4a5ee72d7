package text

import (
	"strings"
	"unicode/utf8"
)

// CutMiddle shortens s to at most limit bytes: a head and a tail of about equal size, without the dropped bytes
// between them. Text that fits is returned as head, with nothing dropped. It cuts at the end of a line if one
// is within a quarter of the half, and never inside a character.
func CutMiddle(s string, limit int) (head, tail string, dropped int) {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s, "", 0
	}
	end := (limit + 1) / 2
	start := len(s) - limit/2
	end = cutBefore(s, end)
	start = cutAfter(s, start)
	return s[:end], s[start:], start - end
}

// cutBefore moves end back to the end of a line, or at least of a character.
func cutBefore(s string, end int) int {
	if i := strings.LastIndexByte(s[:end], '\n'); i >= end-end/4-1 && i >= 0 {
		return i + 1
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return end
}

// cutAfter moves start forward to the start of a line, or at least of a character.
func cutAfter(s string, start int) int {
	if s[start-1] == '\n' {
		return start
	}
	room := (len(s) - start) / 4
	if i := strings.IndexByte(s[start:start+room], '\n'); i >= 0 {
		return start + i + 1
	}
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return start
}

// Nearest returns the name most like want, or "" if none is close enough to be meant. Case, dashes and
// underscores do not count; of equally close names, one of the same length wins.
func Nearest(want string, names []string) string {
	best, bestDist, bestGap := "", 1+max(len(want)/2, 1), 0
	for _, name := range names {
		d := Distance(foldName(want), foldName(name))
		gap := max(len(want)-len(name), len(name)-len(want))
		if d < max(len(want), len(name)) && (d < bestDist || d == bestDist && best != "" && gap < bestGap) {
			best, bestDist, bestGap = name, d, gap
		}
	}
	return best
}

func foldName(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// Distance returns the number of insertions, deletions, replacements and swaps of neighbouring bytes that turn
// a into b (optimal string alignment). Names longer than 255 bytes are never close.
func Distance(a, b string) int {
	if len(a) > 255 || len(b) > 255 {
		return max(len(a), len(b))
	}
	above, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			sub := row[j]
			if a[i] != b[j] {
				sub++
			}
			next[j+1] = min(sub, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row, next = row, next, above
	}
	return row[len(b)]
}
