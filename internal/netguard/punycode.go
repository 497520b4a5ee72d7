package netguard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errInternational says what of an international name has no form that all agree on.
var errInternational = errors.New("has characters that not all programs read alike; write the name in its xn-- form")

// international writes the labels of a name that are not ASCII as their punycode (RFC 5891,
// RFC 3492). It takes small letters of living scripts only: whatever would first have to be
// mapped to something else, such as full-width digits or the Kelvin sign, is refused.
func international(name string) (string, error) {
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if ascii(label) {
			continue
		}
		code, err := punycode(label)
		if err != nil {
			return "", err
		}
		labels[i] = code
	}
	return strings.Join(labels, "."), nil
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// settled reports whether a letter stands for itself: it is small, or of a script without
// capitals, and no other way to write an ordinary one.
func settled(r, before rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z'
	case unicode.Is(unicode.M, r): // behind a Latin letter it would be part of another one
		return before >= 0x0590
	case !unicode.Is(unicode.L, r) || unicode.Is(unicode.Lm, r) && r != 0x3005 && r != 0x30fc || unicode.ToLower(r) != r:
		return false
	case r >= 0x2100 && r <= 0x214f, r >= 0x3130 && r <= 0x318f, r >= 0xf900 && r <= 0xffef, r >= 0x1d400 && r <= 0x1eeff, r >= 0x2f800,
		r >= 0x01c4 && r <= 0x01cc, r >= 0x01f1 && r <= 0x01f3:
		return false // compatibility forms, and letters that are two
	}
	return r != 0x00aa && r != 0x00ba && r != 0x017f && r != 0x0140 && r != 0x0149
}

// script is one that letters of a name can be of; nil: of any, as of Han and kana, which go
// together.
func script(r rune) *unicode.RangeTable {
	for _, t := range []*unicode.RangeTable{
		unicode.Latin, unicode.Greek,
		unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic, unicode.Cherokee,
	} {
		if unicode.Is(t, r) {
			return t
		}
	}
	return nil
}

// punycode encodes a label. Letters of scripts that look alike don't mix in one.
func punycode(label string) (string, error) {
	var of *unicode.RangeTable
	before := rune(0)
	for _, r := range label {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if !settled(r, before) {
			return "", errInternational
		}
		if t := script(r); t != nil {
			if of != nil && of != t {
				return "", errInternational
			}
			of = t
		}
		before = r
	}
	return encode([]rune(strings.ToLower(label))), nil
}

// encode is the algorithm of RFC 3492, section 6.3.
func encode(runes []rune) string {
	out := []byte("xn--")
	for _, r := range runes {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out) - len("xn--")
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(128), 0, 72
	for done := basic; done < len(runes); n++ {
		next := rune(unicode.MaxRune)
		for _, r := range runes {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r == n {
				out = variable(out, delta, bias)
				bias = adapt(delta, done+1, done == basic)
				delta = 0
				done++
			}
		}
		delta++
	}
	return string(out)
}

// variable appends a number as digits whose worth depends on the bias.
func variable(out []byte, q, bias int) []byte {
	const digits = "abcdefghijklmnopqrstuvwxyz0123456789"
	for k := 36; ; k += 36 {
		t := min(max(k-bias, 1), 26)
		if q < t {
			return append(out, digits[q])
		}
		out = append(out, digits[t+(q-t)%(36-t)])
		q = (q - t) / (36 - t)
	}
}

// adapt is how the bias follows what was encoded.
func adapt(delta, points int, first bool) int {
	delta /= 2
	if first {
		delta /= 350
	}
	delta += delta / points
	k := 0
	for delta > 455 {
		delta /= 35
		k += 36
	}
	return k + 36*delta/(delta+38)
}
