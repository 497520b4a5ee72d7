package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

// longestWait limits the wait that a server is believed to need: no vendor grants an allowance for more than a
// month. [Reply.Complete] applies it for all adapters. Nothing waits because of it: the caller decides whether a
// wait is worth it.
const longestWait = 31 * 24 * time.Hour

// shortestWait is the wait for a time that has already passed, since clocks are not exact.
const shortestWait = time.Second

// NoWait is the wait of an error that, as the adapter knows, states none. [Reply.Complete] keeps it.
const NoWait time.Duration = -1

// RetryAfter returns how long the server asks to wait, at most 31 days; 0 if it does not say. The first of these
// that can be parsed decides:
//
//   - Retry-After-Ms, which OpenAI and Azure send, and Azure's X-Ms-Retry-After-Ms, in milliseconds;
//   - Retry-After (RFC 9110, section 10.2.3), in seconds or as a date;
//   - the resets of single limits, see [resets];
//   - the text of the message: "try again in 1.5s", "retry after 30 seconds".
//
// Servers don't keep to their documented units, so all headers may have all formats, see [parseWait]. Unparsable
// and negative values are ignored. A time of day is compared with the Date header of the answer if there is one, so
// that our clock need not be right; a time that has passed means one second.
func RetryAfter(h http.Header, message string, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := parseWait(h.Get(name), time.Millisecond, now); ok {
			return d
		}
	}
	if d, ok := parseWait(h.Get("Retry-After"), time.Second, now); ok {
		return d
	}
	if d := resets(h, now); d > 0 {
		return d
	}
	if m := tryAgain().FindStringSubmatch(message); m != nil {
		d, _ := parseWait(m[1]+unitOf(m[2]), time.Second, now)
		return d
	}
	return 0
}

// tryAgain matches "try again in 1m30s" (OpenAI, Groq), "retry after 42 seconds" (Azure), "retry in 26.4s"
// (Gemini), and "wait 5 minutes before".
var tryAgain = text.Pattern(`(?i)\b(?:try(?:ing)? again|retry(?:ing)?|wait)(?: your request)?(?: in| after| for)?(?: about| at least)? ` +
	`((?:\d+(?:\.\d+)?(?:h|ms|m|s)\b)+|(?:\d+(?:\.\d+)?(?:h|ms|m|s))+|\d+(?:\.\d+)?)(?: ?(milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?)\b)?`)

// unitOf returns the unit for a word.
func unitOf(word string) string {
	switch word = strings.ToLower(word); {
	case word == "":
		return ""
	case strings.HasPrefix(word, "milli"):
		return "ms"
	}
	return word[:1]
}

// Wait returns the wait for a number in the body of an error: seconds from now, or a Unix time in seconds or
// milliseconds.
func Wait(n float64, now time.Time) time.Duration {
	d, _ := number(n, time.Second, now)
	return d
}

// parseWait parses a number of units, a Unix time, an HTTP date, a date of RFC 3339, and a duration such as "6m0s".
// It reports whether it could.
func parseWait(v string, unit time.Duration, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return number(n, unit, now)
	}
	if t, err := http.ParseTime(v); err == nil {
		return until(t, now), true
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return until(t, now), true
	}
	d, err := time.ParseDuration(v)
	return bounded(d), err == nil && d >= 0
}

// Numbers from here on are Unix times: in seconds since 1998, in milliseconds since 1973. As a wait they would be
// at least ten days, and 28 years if they are seconds. The client ky draws the line in the same way, at the number
// for 2024.
const (
	epochSeconds = 9e8
	epochMillis  = 1e11
	epochEnd     = 1e14 // the year 5138; a larger number is no time
)

func number(n float64, unit time.Duration, now time.Time) (time.Duration, bool) {
	switch {
	case !(n >= 0 && n < epochEnd): // also NaN
		return 0, false
	case n >= epochMillis:
		return until(time.UnixMilli(int64(n)), now), true
	case n >= epochSeconds:
		return until(time.UnixMilli(int64(n*1000)), now), true
	}
	return bounded(time.Duration(min(n, float64(longestWait/unit)) * float64(unit))), true
}

// until returns the time left until t.
func until(t, now time.Time) time.Duration { return bounded(max(t.Sub(now), shortestWait)) }

// bounded limits a wait to 0 and longestWait.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), longestWait) }

// resets returns when the used-up limits come back: the longest wait among them. If no limit states its remainder,
// the shortest wait of all counts. Limits with something left did not cause the refusal and are ignored.
//
// Their names contain "RateLimit" and "Reset", and the remainder has the same name with "Remaining": those of the
// IETF draft (draft-ietf-httpapi-ratelimit-headers-03) with and without X-, which many gateways send; of OpenAI,
// Azure, Groq and Cerebras with a limit at the end (X-RateLimit-Reset-Tokens, -Requests-Day); and of Anthropic with
// the limit before it, with dates of RFC 3339 (docs.anthropic.com, "Rate limits", response headers).
func resets(h http.Header, now time.Time) time.Duration {
	var used, least time.Duration
	for name := range h {
		if !strings.Contains(name, "Ratelimit") || !strings.Contains(name, "Reset") {
			continue
		}
		d, ok := parseWait(h.Get(name), time.Second, now)
		if !ok || d == 0 {
			continue
		}
		switch strings.TrimSpace(h.Get(strings.Replace(name, "Reset", "Remaining", 1))) {
		case "0":
			used = max(used, d)
		case "":
			if least == 0 || d < least {
				least = d
			}
		}
	}
	if used > 0 {
		return used
	}
	return least
}
