package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that compiles a regular expression when it is first called, and panics if the
// expression is invalid. Packages that few runs need declare their expressions with it: compiling all of them took a
// fifth of the time in which the program starts.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
