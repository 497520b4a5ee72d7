package text

import "strings"

// Address is an address as others may read it: *** stands for who asks, and for all behind a
// question mark, as both may hold a key. It need not be a valid one.
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
