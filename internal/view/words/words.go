// Package words is what the front ends say alike: what an event is called, what a call
// would do, how costs and times are written, and what a person's answer means. Nothing
// here prints, and nothing looks at a clock.
//
// Text of others is what a model, a tool, a file or a log holds. Each function
// says whether what it returns can go to a terminal as it is; what is not said to
// be harmless goes through [OneLine] or a function of package text first.
package words

import (
	"fmt"
	"math"
	"strings"
	"time"
)

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

// spaced writes a name of the log for people.
func spaced[S ~string](name S) string { return strings.ReplaceAll(string(name), "_", " ") }
