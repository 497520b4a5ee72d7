package llm

import "slices"

// Efforts are the words for how hard a model is to think, the least first.
func Efforts() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

// EffortUpTo is an effort as far as a model takes it: what is above most becomes most.
// Words that are none of [Efforts] stay as they are.
func EffortUpTo(most, effort string) string {
	if slices.Index(Efforts(), effort) > slices.Index(Efforts(), most) {
		return most
	}
	return effort
}
