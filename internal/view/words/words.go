// Package words holds what all front ends say alike: names of events, descriptions of calls, costs and times,
// and the meaning of a person's answers. Nothing here prints or reads a clock.
//
// Text by others is text from a model, a tool, a file or a log. Each function says whether its result can go to
// a terminal as it is. Unless it is said to be harmless, pass it through [OneLine] or a function of package
// text first.
package words

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Dollars formats US dollars: to the cent from one dollar, with more digits below so that small costs can be
// told apart.
func Dollars(d float64) string {
	if d >= 1 {
		return fmt.Sprintf("$%.2f", d)
	}
	return fmt.Sprintf("$%.4f", d)
}

// Cost is Dollars, with a mark if part of the cost is unknown.
func Cost(d float64, unpriced bool) string {
	if unpriced {
		return "cost unknown"
	}
	return Dollars(d)
}

// Left formats the time until something happens: with tenths of a second at the end, and never less than the
// remaining time.
func Left(d time.Duration) string {
	if s := max(0, d.Seconds()); s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(math.Ceil(d.Seconds()) * float64(time.Second)).String()
}

// Took formats a duration; empty below a second, which no one notices.
func Took(millis int64) string {
	if millis < 1000 {
		return ""
	}
	return (time.Duration(millis) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// spaced formats a name of the log for people.
func spaced[S ~string](name S) string { return strings.ReplaceAll(string(name), "_", " ") }
