package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// SpanContext returns the traceparent of a span of a session, in the form of W3C Trace Context. The ids follow
// from the ids of the session and the span alone, so an exporter of the session and a program that was told
// about the span agree. Within is the traceparent with which the session was opened, whose trace the span is
// in; if empty, the session has a trace of its own.
func SpanContext(within, session, span string) string {
	trace, flags := digest(16, session), "01"
	if IsTraceparent(within) {
		fields := strings.Split(within, "-")
		trace, flags = fields[1], fields[3]
	}
	return strings.Join([]string{"00", trace, digest(8, session, span), flags}, "-")
}

// digest returns an id of so many bytes, always the same for the same words.
func digest(bytes int, words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:bytes])
}

// IsTraceparent reports whether s is a traceparent of W3C Trace Context, version 00: a trace and a span,
// neither all zeros, and flags, in lower-case hexadecimal digits.
func IsTraceparent(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return false
	}
	for i, n := range []int{2, 32, 16, 2} {
		if len(parts[i]) != n || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
