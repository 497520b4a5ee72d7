package router

import (
	"fmt"
	"regexp"
)

// pattern is what a person wants to keep at home beside secrets.
type pattern struct {
	what string // for people
	re   *regexp.Regexp
}

// custom returns the patterns of a person.
func custom(private []string) ([]pattern, error) {
	var out []pattern
	for i, expr := range private {
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("private pattern %d: %w", i+1, err)
		}
		// Not the pattern itself: it may be what nobody should read.
		out = append(out, pattern{fmt.Sprintf("text that private pattern %d matches", i+1), re})
	}
	return out, nil
}
