package netguard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// errInternational explains why a name that is not ASCII is rejected.
var errInternational = errors.New("has characters that not all programs read alike; write the name in its xn-- form")

// international returns a name with its non-ASCII labels in punycode, according to IDNA2008. It rejects labels
// with characters that would first have to be mapped to others, such as a full-width digit or the Kelvin sign,
// symbols, and labels that mix scripts with similar letters.
func international(name string) (string, error) {
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if ascii(label) {
			continue
		}
		label = strings.Map(lowerASCII, label)
		if !lettersOfOneScript(label) {
			return "", errInternational
		}
		code, err := idna.Registration.ToASCII(label)
		if err != nil {
			return "", errInternational
		}
		labels[i] = code
	}
	return strings.Join(labels, "."), nil
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func lowerASCII(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// lettersOfOneScript reports whether a label has only letters, their marks, ASCII digits and hyphens, and
// letters of at most one of the scripts with similar letters. Han and kana may be mixed, for instance, as
// neither looks like another script.
func lettersOfOneScript(label string) bool {
	var script *unicode.RangeTable
	before := rune(0)
	for _, r := range label {
		switch {
		case r < utf8.RuneSelf && (r == '-' || unicode.IsDigit(r) || unicode.IsLetter(r)):
		case r < utf8.RuneSelf:
			return false
		case unicode.IsMark(r): // drawn as part of a Latin letter
			if before < 0x0590 {
				return false
			}
		case unicode.Is(unicode.Lm, r) && r != '々' && r != 'ー': // modifiers look like quotes and small letters
			return false
		case !unicode.IsLetter(r):
			return false
		}
		if s := scriptOf(r); s != nil {
			if script != nil && script != s {
				return false
			}
			script = s
		}
		before = r
	}
	return true
}

// scriptOf returns the script of a letter, nil if its letters don't resemble those of other scripts.
func scriptOf(r rune) *unicode.RangeTable {
	for _, script := range []*unicode.RangeTable{
		unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic, unicode.Cherokee,
	} {
		if unicode.Is(script, r) {
			return script
		}
	}
	return nil
}
