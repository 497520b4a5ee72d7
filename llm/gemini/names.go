package gemini

import (
	"strings"

	"github.com/inspan/inspan/llm/internal/wire"
)

// toolName is the vendor's rule for names of tools: up to 64 letters, digits,
// "_", "-" and ".", the first a letter or "_".
func toolName(name string) string {
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
	clean := strings.Map(func(r rune) rune {
		if letter(r) || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, name)
	if clean != "" && !letter(rune(clean[0])) {
		clean = "_" + clean
	}
	return wire.Named(name, clean)
}
