package text

import "strings"

// Address returns an address for display: *** replaces the user part and everything after a question mark, because
// both may contain a key. It need not be valid.
func Address(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		url = scheme + "://***" + rest[at:]
	}
	if at := strings.IndexAny(url, "?#"); at >= 0 {
		url = url[:at+1] + "***"
	}
	return url
}
