package shell

import (
	"math"
	"strings"
)

// The characters of words, where a rule depends on them. Regular expressions would say the same, but cost more
// at every start of the program than all commands of a session.
const (
	lows    = "abcdefghijklmnopqrstuvwxyz"
	letters = lows + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	numbers = "0123456789"
)

// spelled reports whether a text has 1 to most bytes, the first from one set and all others from another.
func spelled(text, first, others string, most int) bool {
	return text != "" && len(text) <= most && strings.IndexByte(first, text[0]) >= 0 && strings.Trim(text[1:], others) == ""
}

func digits(text string) bool { return spelled(text, numbers, numbers, 9) }
func plain(text string) bool {
	return spelled(text, letters+numbers, letters+numbers+"._+-", math.MaxInt)
}

func variably(text string) bool { return spelled(text, letters+"_", letters+numbers+"_", math.MaxInt) }
func counted(text string) bool  { return text == "0" || spelled(text, "123456789", numbers, 3) }

// duration reports whether a text is a duration for sleep and timeout: 5, 0.5s.
func duration(text string) bool {
	if n := len(text) - 1; n > 0 && strings.IndexByte("smhd", text[n]) >= 0 {
		text = text[:n]
	}
	whole, part, has := strings.Cut(text, ".")
	return digits(whole) && (!has || digits(part))
}
