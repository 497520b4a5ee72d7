package text

import (
	"regexp"
	"strings"
)

// asker is what stands before the host of an address.
var asker = regexp.MustCompile(`://[^/\s]*@`)

// Address is an address as others may read it: *** stands for who asks, and for all behind a
// question mark, as both may hold a key. It need not be a valid one.
func Address(url string) string {
	url = asker.ReplaceAllString(url, "://***@")
	if at := strings.IndexAny(url, "?#"); at >= 0 {
		url = url[:at+1] + "***"
	}
	return url
}
