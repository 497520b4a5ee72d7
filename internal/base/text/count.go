package text

import "strconv"

// Thousands formats a number for people: 12,345.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Share returns part in percent of whole; 0 if that is 0.
func Share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Count formats a number of things, with the singular word: "1 call", "1,200 calls".
func Count(n int, word string) string { return Counted(n, word, word+"s") }

// Counted is Count with an irregular plural: "2 entries", "1 file is".
func Counted(n int, one, many string) string { return Thousands(n) + " " + Plural(n, one, many) }

// Plural returns the form of a word for n things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
