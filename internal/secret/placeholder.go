package secret

import (
	"strconv"
	"strings"
)

// opening begins a placeholder: [secret:1] is the first secret, [secret:1.2]
// the same in the second of the other forms it was seen in.
const opening = "[secret:"

// longestPlaceholder is more bytes than any has.
const longestPlaceholder = len(opening) + 9 + 1 + 9 + 1

func placeholderOf(n, form int) string {
	if form == 0 {
		return opening + strconv.Itoa(n) + "]"
	}
	return opening + strconv.Itoa(n) + "." + strconv.Itoa(form) + "]"
}

// parsePlaceholder reads the placeholder that text begins with; size 0: there
// is none. cut says that there may be one if the text goes on.
func parsePlaceholder(text string) (n, form, size int, cut bool) {
	rest, ok := strings.CutPrefix(text, opening)
	if !ok {
		return 0, 0, 0, len(text) < len(opening) && strings.HasPrefix(opening, text)
	}
	n, rest, ok = number(rest)
	if dotted, more := strings.CutPrefix(rest, "."); ok && more {
		form, rest, ok = number(dotted)
	}
	if rest == "" {
		return 0, 0, 0, true
	}
	if !ok || rest[0] != ']' {
		return 0, 0, 0, false
	}
	return n, form, len(text) - len(rest) + 1, false
}

// number reads up to nine digits.
func number(s string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < 9 && '0' <= s[i] && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

// placeholder is the size of the placeholder at i; 0: there is none.
func (s *scanner) placeholder(i int) int {
	if i >= len(s.text) || s.text[i] != '[' {
		if i >= len(s.text) {
			s.short = true
		}
		return 0
	}
	_, _, size, cut := parsePlaceholder(s.text[i:min(len(s.text), i+longestPlaceholder)])
	s.short = s.short || cut
	return size
}
