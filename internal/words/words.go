// Package words is what the front ends say alike: how text of others is made
// harmless, how numbers and times are written, what an event is called, and what
// a person's answer means. Nothing here prints, and nothing looks at a clock.
//
// Text of others is what a model, a tool, a file or a log holds. Each function
// says whether what it returns can go to a terminal as it is; what is not said to
// be harmless goes through [OneLine], [Visible], [VisibleLines] or [Clean] first.
package words

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Thousands writes a number so that people can read it: 12,345.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes how many there are of something, of which word is the singular:
// "1 call", "1,200 calls".
func Count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return Thousands(n) + " " + word
}

// Dollars writes US dollars: to the cent from one dollar on, else so that small
// costs can be told apart.
func Dollars(d float64) string {
	if d >= 1 {
		return fmt.Sprintf("$%.2f", d)
	}
	return fmt.Sprintf("$%.4f", d)
}

// Cost is Dollars, unless some of what was spent has no known price.
func Cost(d float64, unpriced bool) string {
	if unpriced {
		return "cost unknown"
	}
	return Dollars(d)
}

// Left is a time in the words of a person who waits for it to pass: tenths of a
// second at the end, never less than is left before.
func Left(d time.Duration) string {
	if s := max(0, d.Seconds()); s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(math.Ceil(d.Seconds()) * float64(time.Second)).String()
}

// Took is how long something of so many milliseconds took; empty below a second,
// as nobody noticed.
func Took(millis int64) string {
	if millis < 1000 {
		return ""
	}
	return (time.Duration(millis) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// plural chooses a verb for n things.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// spaced writes a name of the log for people.
func spaced[S ~string](name S) string { return strings.ReplaceAll(string(name), "_", " ") }
