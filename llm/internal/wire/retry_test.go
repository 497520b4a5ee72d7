package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/inspan/inspan/llm"
)

// TestRetryAfter checks all spellings, at 12:00 of a day in 2026.
func TestRetryAfter(t *testing.T) {
	const month = 31 * 24 * time.Hour
	for value, want := range map[string]time.Duration{ // in every header that counts seconds
		"7": 7 * time.Second, " 7 ": 7 * time.Second, "0.5": 500 * time.Millisecond, "86400": 24 * time.Hour,
		"1m30s": 90 * time.Second, "6m0s": 6 * time.Minute, "120ms": 120 * time.Millisecond,
		"1795262460": time.Minute, "1795262460.0": time.Minute, "1795262460000": time.Minute, // Unix times
		"1795262399": time.Second, "1000000000": time.Second, "1795262399000": time.Second, // that have passed
		"Sat, 21 Nov 2026 12:01:00 GMT": time.Minute, "Saturday, 21-Nov-26 12:01:00 GMT": time.Minute,
		"Sat, 21 Nov 2026 11:00:00 GMT": time.Second,
		"2026-11-21T12:01:00Z":          time.Minute, "2026-11-21T13:01:00.000+01:00": time.Minute,
		"2026-11-21T11:00:00Z": time.Second,
		"899999999":            month, "9999999999": month, "2082-11-21T12:00:00Z": month, "99999h": month,
		"": 0, "0": 0, "-3": 0, "-5m": 0, "soon": 0, "1e30": 0, "Inf": 0, "NaN": 0, "2026-11-21": 0,
	} {
		for _, name := range []string{
			"Retry-After", "RateLimit-Reset", "X-RateLimit-Reset", "X-RateLimit-Reset-Requests", "X-RateLimit-Reset-Tokens",
			"Anthropic-RateLimit-Requests-Reset", "Anthropic-RateLimit-Input-Tokens-Reset", "X-RateLimit-Reset-Tokens-Minute",
			"X-RateLimit-Reset-Requests-Day", "X-RateLimit-Reset-Input-Tokens",
		} {
			check(t, want, "", name, value)
		}
	}
	for value, want := range map[string]time.Duration{
		"1500": 1500 * time.Millisecond, "1795262460000": time.Minute, "1795262460": time.Minute, "899999999": 899_999_999 * time.Millisecond,
		"2026-11-21T12:01:00Z": time.Minute, "-1": 0,
	} {
		check(t, want, "", "Retry-After-Ms", value)
		check(t, want, "", "X-Ms-Retry-After-Ms", value)
	}
	for message, want := range map[string]time.Duration{
		"Please try again in 1.5s. Visit us.": 1500 * time.Millisecond,
		"Please try again in 6m0s.":           6 * time.Minute,
		"Please try again in 86ms.":           86 * time.Millisecond,
		"Please try again in 99999h.":         month,
		"Please try again in 99999999h.":      0,
		"Please try again in a moment.":       0,

		"Please retry after 42 seconds.":                                  42 * time.Second, // Azure
		"Your limit is exceeded. Please retry after 1 second. Contact us": time.Second,
		"Please retry in 26.426s.":                                        26426 * time.Millisecond, // Gemini
		"Retry after 30":                                                  30 * time.Second,
		"Rate limited. Please wait 2 minutes before trying again.":        2 * time.Minute,
		"try again in 20 milliseconds":                                    20 * time.Millisecond,
		"Retrying is useless.":                                            0,
		"Please wait for the operator, who has 5 minutes.":                0,
		"Please try again in 1h12m.":                                      72 * time.Minute,
	} {
		check(t, want, message)
	}
}

// TestRetryAfterOfSeveral checks which header decides.
func TestRetryAfterOfSeveral(t *testing.T) {
	check(t, time.Second, "", "Retry-After-Ms", "1000", "Retry-After", "2")
	check(t, 2*time.Second, "", "Retry-After-Ms", "soon", "Retry-After", "2")
	check(t, 3*time.Second, "try again in 9s", "Retry-After", "soon", "X-RateLimit-Reset", "3")
	check(t, 0, "try again in 9s", "Retry-After", "0", "X-RateLimit-Reset", "3")
	check(t, time.Second, "", "X-RateLimit-Reset-Requests", "1s", "X-RateLimit-Reset-Tokens", "6m0s")
	check(t, 6*time.Minute, "", "X-RateLimit-Reset-Requests", "1s", "X-RateLimit-Reset-Tokens", "6m0s", "X-RateLimit-Remaining-Tokens", "0")
	check(t, 9*time.Second, "try again in 9s", "X-RateLimit-Reset-Requests", "1s", "X-RateLimit-Remaining-Requests", "5")
	check(
		t, time.Minute, "", "Anthropic-RateLimit-Requests-Reset", "2026-11-21T12:10:00Z", "Anthropic-RateLimit-Requests-Remaining", "40",
		"Anthropic-RateLimit-Input-Tokens-Reset", "2026-11-21T12:01:00Z", "Anthropic-RateLimit-Input-Tokens-Remaining", "0",
	)
}

// TestRetryAfterClocks checks that times of day count from the server's clock.
func TestRetryAfterClocks(t *testing.T) {
	for _, date := range []string{"Wed, 18 Nov 2026 09:00:00 GMT", "Tue, 24 Nov 2026 09:00:00 GMT"} {
		at, err := http.ParseTime(date)
		if err != nil {
			t.Fatal(err)
		}
		check(t, time.Minute, "", "Date", date, "Retry-After", at.Add(time.Minute).Format(http.TimeFormat))
		check(t, time.Minute, "", "Date", date, "X-RateLimit-Reset", at.Add(time.Minute).Format(time.RFC3339))
		check(t, time.Minute, "", "Date", date, "Retry-After", "60")
	}
}

// check asks for the wait of headers, names and values by turns.
func check(t *testing.T, want time.Duration, message string, headers ...string) {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	if got := RetryAfter(h, message, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)); got != want {
		t.Errorf("%q %q = %v, want %v", headers, message, got, want)
	}
}

// TestCompleteIsBounded checks that no adapter can ask for longer than the headers can.
func TestCompleteIsBounded(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{-1: 0, 1: 1, 56 * 365 * 24 * time.Hour: longestWait} {
		e := llm.AsError((&Reply{}).Complete(&llm.Error{Kind: llm.KindQuota, RetryAfter: asked}))
		if e.RetryAfter != want {
			t.Errorf("%v became %v, want %v", asked, e.RetryAfter, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{
		"7", "1795262460", "1795262460000", "Sat, 21 Nov 2026 12:01:00 GMT", "2026-11-21T12:01:00Z", "6m0s", "1e30", "-0", "0x1p40",
	} {
		f.Add(v, v, "try again in "+v, int64(1795262400))
	}
	f.Fuzz(func(t *testing.T, value, other, message string, now int64) {
		for _, name := range []string{
			"Retry-After", "Retry-After-Ms", "RateLimit-Reset", "X-RateLimit-Reset-Tokens", "Anthropic-RateLimit-Tokens-Reset",
		} {
			h := http.Header{}
			h.Set(name, value)
			h.Set("Date", other)
			if d := RetryAfter(h, message, time.Unix(now, 0)); d < 0 || d > longestWait {
				t.Fatalf("%s: %q = %v", name, value, d)
			}
		}
	})
}
