package router

import (
	"fmt"
	"regexp"
)

// pattern is text that must stay on local routes, in addition to secrets.
type pattern struct {
	what string // for people
	re   *regexp.Regexp
}

// custom compiles a person's patterns.
func custom(private []string) ([]pattern, error) {
	var out []pattern
	for i, expr := range private {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("private pattern %d: %w", i+1, err)
		}
		// Not the pattern itself: it may be confidential.
		out = append(out, pattern{fmt.Sprintf("text that private pattern %d matches", i+1), re})
	}
	return out, nil
}
