package wire

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// tierWord matches a vendor's name of a tier. Anything else does not belong in a log or a bill.
var tierWord = text.Pattern(`^[a-z][a-z0-9_-]{0,31}$`)

// Tier returns the [llm.Usage.Tier] of a reply from the vendor's statements about how it was served: its tier, its
// speed, its region. Words for the standard are ignored.
func Tier(words ...string) string {
	var out []string
	for _, w := range words {
		w = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(w)), "on_demand_")
		switch w {
		case "", "standard", "default", "auto", "on_demand", "null", "unspecified":
			continue
		}
		if !tierWord().MatchString(w) {
			w = "unknown"
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}
