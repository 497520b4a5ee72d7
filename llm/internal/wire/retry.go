package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds how long a server is believed to ask for: no vendor gives an allowance for
// longer than a month. [Reply.Complete] holds all adapters to it. It keeps nobody waiting: whether
// a wait is worth it is decided by whoever has the patience.
const longestWait = 31 * 24 * time.Hour

// shortestWait is what a time that has passed already comes to. It says that the wait is over, but
// clocks are not that exact.
const shortestWait = time.Second

// NoWait is the wait of an error of which the adapter knows that none is named, whatever it looks
// like. [Reply.Complete] makes nothing of it.
const NoWait time.Duration = -1

// RetryAfter returns how long the server asks to wait, at most 31 days; 0 if it does not say. The
// first of these that can be understood decides:
//
//   - Retry-After-Ms, which OpenAI and Azure send, and Azure's X-Ms-Retry-After-Ms, in milliseconds;
//   - Retry-After (RFC 9110, section 10.2.3), in seconds or as a date;
//   - the resets of single limits, as [resets] has it;
//   - the words of the message: "try again in 1.5s", "retry after 30 seconds".
//
// Servers don't keep to the units that their documents name, so all headers may hold all forms,
// see [parseWait]. What can't be understood, and what is negative, says nothing. A time of day is
// held against the Date header of the answer if there is one, so that it does not matter whether
// our clock is right; a time that has passed means one second.
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
	if m := tryAgain.FindStringSubmatch(message); m != nil {
		d, _ := parseWait(m[1]+unitOf(m[2]), time.Second, now)
		return d
	}
	return 0
}

// tryAgain finds "try again in 1m30s", OpenAI's and Groq's, "retry after 42 seconds", Azure's, "retry
// in 26.4s", Gemini's, and "wait 5 minutes before".
var tryAgain = regexp.MustCompile(`(?i)\b(?:try(?:ing)? again|retry(?:ing)?|wait)(?: your request)?(?: in| after| for)?(?: about| at least)? ` +
	`((?:\d+(?:\.\d+)?(?:h|ms|m|s)\b)+|(?:\d+(?:\.\d+)?(?:h|ms|m|s))+|\d+(?:\.\d+)?)(?: ?(milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?)\b)?`)

// unitOf is the unit that a word stands for.
func unitOf(word string) string {
	switch word = strings.ToLower(word); {
	case word == "":
		return ""
	case strings.HasPrefix(word, "milli"):
		return "ms"
	}
	return word[:1]
}

// Wait is what a number in the body of an error asks for: seconds from now, or a Unix time in
// seconds or milliseconds.
func Wait(n float64, now time.Time) time.Duration {
	d, _ := number(n, time.Second, now)
	return d
}

// parseWait understands a number of units, a Unix time, an HTTP date, a date of RFC 3339, and a
// duration such as "6m0s". It reports whether it does.
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

// Numbers from here on are Unix times: in seconds since 1998, in milliseconds since 1973. Taken for
// a wait they would be ten days at least, and 28 years if they are seconds. The client ky draws
// the line in the same way, at the number that stands for 2024.
const (
	epochSeconds = 9e8
	epochMillis  = 1e11
	epochEnd     = 1e14 // the year 5138; what is larger is no time
)

func number(n float64, unit time.Duration, now time.Time) (time.Duration, bool) {
	switch {
	case !(n >= 0 && n < epochEnd): // also what is not a number
		return 0, false
	case n >= epochMillis:
		return until(time.UnixMilli(int64(n)), now), true
	case n >= epochSeconds:
		return until(time.UnixMilli(int64(n*1000)), now), true
	}
	return bounded(time.Duration(min(n, float64(longestWait/unit)) * float64(unit))), true
}

// until is how long it is to a time of day.
func until(t, now time.Time) time.Duration { return bounded(max(t.Sub(now), shortestWait)) }

// bounded holds a wait between nothing and what is believed.
func bounded(d time.Duration) time.Duration { return min(max(d, 0), longestWait) }

// resets returns when the limits that are used up come back: the longest wait among them. If no
// limit says what remains of it, the shortest wait of all counts. Limits that have something left
// are not why the request was refused, and say nothing.
//
// Their names have "RateLimit" and "Reset" in them, and what remains has the same name with
// "Remaining": those of the draft of the IETF (draft-ietf-httpapi-ratelimit-headers-03) with and
// without X-, which many gateways send; of OpenAI, Azure, Groq and Cerebras with a limit behind it
// (X-RateLimit-Reset-Tokens, -Requests-Day); and of Anthropic with the limit before it, with dates of
// RFC 3339 (docs.anthropic.com, "Rate limits", response headers).
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
