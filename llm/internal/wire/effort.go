package wire

import (
	"slices"

	"github.com/inspan/inspan/llm"
)

// EffortUpTo limits an effort to most. Words that are not [llm.Efforts] stay as they are.
func EffortUpTo(most, effort string) string {
	if slices.Index(llm.Efforts(), effort) > slices.Index(llm.Efforts(), most) {
		return most
	}
	return effort
}
