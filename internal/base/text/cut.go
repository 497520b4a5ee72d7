package text

import (
	"strings"
	"unicode/utf8"
)

// More marks an omitted part of a text.
const More = "…"

// Head returns the beginning of a text: at most n bytes, in whole characters.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Tail returns the end of a text: at most n bytes, in whole characters.
func Tail(s string, n int) string {
	from := len(s) - max(n, 0)
	if from <= 0 {
		return s
	}
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

// Cut returns a text in at most n bytes. A longer one is cut, and ends with [More], which counts; empty, if
// there is no room for that.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n -= len(More); n <= 0 {
		return ""
	}
	return strings.TrimRight(Head(s, n), " ") + More
}

// Clip is Cut in characters instead of bytes.
func Clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 1 {
		return ""
	}
	end := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return strings.TrimRight(s[:end], " ") + More
}

// FirstLine returns the first line of a text, trimmed.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// Short returns a text on one line, as [Flat] does, in at most n bytes, as [Cut] does.
func Short(s string, n int) string { return Cut(Flat(s), n) }

// TrimStart removes an incomplete character at the beginning of bytes that were cut anywhere.
func TrimStart(p []byte) []byte {
	for i := range min(len(p), utf8.UTFMax) {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	if len(p) < utf8.UTFMax {
		return p[len(p):] // only the end of a character
	}
	return p
}

// TrimEnd removes an incomplete character at the end of bytes.
func TrimEnd(p []byte) []byte {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			break
		}
	}
	return p
}
