package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// SpanContext is the traceparent of a span of a session, as W3C Trace Context has it. The ids are made
// of those of the session and of the span alone, so whoever exports the session and whoever is told
// of the span have the same ones. Within is [Opened].Traceparent, whose trace it is in; empty: the
// session has a trace of its own.
func SpanContext(within, session, span string) string {
	trace, flags := digest(16, session), "01"
	if IsTraceparent(within) {
		fields := strings.Split(within, "-")
		trace, flags = fields[1], fields[3]
	}
	return strings.Join([]string{"00", trace, digest(8, session, span), flags}, "-")
}

// digest is an id of so many bytes, the same for the same words.
func digest(bytes int, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:bytes])
}

// IsTraceparent reports whether s is a traceparent of W3C Trace Context, version 00: a trace and a
// span, neither of zeros alone, and flags, in lower-case hexadecimal digits.
func IsTraceparent(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return false
	}
	for i, n := range []int{2, 32, 16, 2} {
		if len(parts[i]) != n || strings.Trim(parts[i], digits+"abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
