package text

import (
	"regexp"
	"strings"
	"sync"
)

// Pattern returns a function that compiles a regular expression when it is first called, and panics if the
// expression is invalid. Packages that few runs need declare their expressions with it: compiling all of them took a
// fifth of the time in which the program starts.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Wild reports whether text matches a pattern in which * matches anything.
func Wild(pattern, text string) bool {
	first, rest, open := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	for ok && open {
		var piece string
		if piece, rest, open = strings.Cut(rest, "*"); !open {
			return strings.HasSuffix(text, piece)
		}
		_, text, ok = strings.Cut(text, piece)
	}
	return ok && text == ""
}
