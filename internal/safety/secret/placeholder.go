package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
)

// opening begins a placeholder: [secret:k3f9q2ab] is a secret, [secret:k3f9q2ab.x7m2] the same
// in another form that it was seen in.
const opening = "[secret:"

// Lengths of what names a secret, and a form of one: more is taken where fewer would name
// two of one vault.
const (
	tagLen     = 8
	longestTag = 4 * tagLen
	formLen    = 4
)

// longestPlaceholder is more bytes than any has.
const longestPlaceholder = len(opening) + longestTag + 1 + 2*formLen + 1

// lost stands for nothing, and is put in the place of secrets that a vault has no room for.
const lost = opening + "0]"

// digest is what names a text under a key, so that nobody who lacks the key can find the text
// by trying.
func digest(key []byte, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)))
}

// parsePlaceholder returns the size of the placeholder that text begins with; 0: there is
// none. cut says that there may be one if the text goes on. Numbers are those of version 0.2,
// and stand for nothing any more.
func parsePlaceholder(text string) (size int, cut bool) {
	rest, ok := strings.CutPrefix(text, opening)
	if !ok {
		return 0, len(text) < len(opening) && strings.HasPrefix(opening, text)
	}
	tag, rest := word(rest, longestTag)
	if rest == "" {
		return 0, true
	}
	fits := isOld(tag) || len(tag) > 0 && len(tag)%tagLen == 0
	if dotted, more := strings.CutPrefix(rest, "."); fits && more {
		tag, rest = word(dotted, 2*formLen)
		if rest == "" {
			return 0, true
		}
		fits = isOld(tag) || len(tag) > 0 && len(tag)%formLen == 0
	}
	if !fits || rest[0] != ']' {
		return 0, false
	}
	return len(text) - len(rest) + 1, false
}

// Holds reports whether there is a placeholder in a text, whatever it stands for.
func Holds(text string) bool {
	for {
		i := strings.Index(text, opening)
		if i < 0 {
			return false
		}
		text = text[i:]
		if size, _ := parsePlaceholder(text); size > 0 {
			return true
		}
		text = text[len(opening):]
	}
}

// word cuts off up to most small letters and digits.
func word(s string, most int) (w, rest string) {
	i := 0
	for i < len(s) && i < most && ('0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'z') {
		i++
	}
	return s[:i], s[i:]
}

// isOld reports whether it is a number, as placeholders of version 0.2 have.
func isOld(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}

// within lists what a placeholder names: its tag, and that of its form if it has one.
func within(placeholder string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(placeholder, opening), "]"), ".")
}

// poses reports whether what looks like a placeholder has a known value in it, which somebody
// may have put there so that it is not looked for.
func (x *index) poses(placeholder string) bool {
	return slices.ContainsFunc(within(placeholder), func(tag string) bool {
		f, _ := x.next(tag, true)
		return f.text != ""
	})
}

// placeholder is the size of the placeholder at i; 0: there is none.
func (s *scanner) placeholder(i int) int {
	if i >= len(s.text) || s.text[i] != '[' {
		if i >= len(s.text) {
			s.short = true
		}
		return 0
	}
	size, cut := parsePlaceholder(s.text[i:min(len(s.text), i+longestPlaceholder)])
	s.short = s.short || cut
	return size
}
