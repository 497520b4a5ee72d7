package secret

import (
	"net/url"
	"strings"
)

// leastLine is how many bytes a line has at least to be a secret of its own.
const leastLine = 16

// partsOf lists what of a value is a secret by itself: its lines, so that the head of a key or an
// indented copy is hidden, and the password of an address.
func partsOf(value string) []string {
	out := linesOf(value)
	if password := PasswordOf(value); password != "" {
		out = append(out, password)
		if plain, err := url.PathUnescape(password); err == nil && plain != password {
			out = append(out, plain)
		}
	}
	return out
}

// linesOf lists the long lines of a value that has several. What says where a key begins and
// ends is none of them.
func linesOf(value string) []string {
	if strings.Contains(value, "-----BEGIN ") {
		value = strings.ReplaceAll(value, `\n`, "\n") // as variables of one line have it
	}
	if !strings.Contains(value, "\n") {
		return nil
	}
	var out []string
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= leastLine && !strings.HasPrefix(line, "-----BEGIN ") && !strings.HasPrefix(line, "-----END ") {
			out = append(out, line)
		}
	}
	return out
}

// PasswordOf is the password in an address such as postgres://app:password@host/db, as it stands
// there; empty: there is none.
func PasswordOf(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?# \t\n"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	_, password, _ := strings.Cut(authority[:max(0, at)], ":")
	return password
}
