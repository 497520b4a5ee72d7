package gemini

import (
	"strconv"
	"strings"
)

// generation returns the number of the Gemini generation in id, 2.5 for
// "gemini-2.5-pro", and 0 for models of other families. A Gemini without a
// number is an alias such as "gemini-flash-latest", and newer than any.
func generation(id string) float64 {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(id, "models/"), "gemini-")
	if !ok {
		return 0
	}
	for word := range strings.SplitSeq(rest, "-") {
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			return n
		}
	}
	return 99
}
