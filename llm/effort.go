package llm

import "slices"

// Efforts returns the words for reasoning effort, the least first.
func Efforts() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

// EffortUpTo limits an effort to most. Words that are not [Efforts] stay as they are.
func EffortUpTo(most, effort string) string {
	if slices.Index(Efforts(), effort) > slices.Index(Efforts(), most) {
		return most
	}
	return effort
}
