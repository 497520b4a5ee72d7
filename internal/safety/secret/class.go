package secret

import "strings"

// class is a set of characters.
type class uint8

const (
	alnum    class = iota
	wordDash       // base64 of URLs
	base64s        // base64 of either kind
	hexes
	uppers // and digits
	digits
	bearer   // RFC 6750, b64token
	anyValue // possible continuations of a value that was cut
	classes
)

// classOf returns the class for a letter of shape.tail.
func classOf(c byte) (class, bool) {
	i := strings.IndexByte("AWBHUDR", c)
	return class(max(i, 0)), i >= 0
}

func (c class) has(b byte) bool {
	switch {
	case '0' <= b && b <= '9':
		return true
	case 'a' <= b && b <= 'f':
		return c != uppers && c != digits
	case 'A' <= b && b <= 'F':
		return c != digits
	case 'A' <= b && b <= 'Z':
		return c != hexes && c != digits
	case 'a' <= b && b <= 'z':
		return c != hexes && c != uppers && c != digits
	}
	switch c {
	case wordDash:
		return b == '-' || b == '_'
	case base64s:
		return b == '-' || b == '_' || b == '+' || b == '/' || b == '='
	case bearer, anyValue:
		return strings.IndexByte("-_+/=.~", b) >= 0
	}
	return false
}

// members lists the characters of a class.
func (c class) members() (out []byte) {
	for b := range 256 {
		if c.has(byte(b)) {
			out = append(out, byte(b))
		}
	}
	return out
}

func isAlnum(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func isHex(b byte) bool { return hexes.has(b) }

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// Kinds of bytes for the scanner.
const (
	dull    = iota
	inWord  // letters, digits, underscore
	busy    // a setting or an address may begin with it
	dot     // the middle of a token
	dash    // a private key, an option
	comma   // the value after a name in quotes
	closing // the text of an element of XML
	mark    // a literal after a name
	dollar  // the hash of a password
	odd     // a word after it may begin later than it seems
	bracket // the same, and a placeholder
)

func kinds() (out [256]uint8) {
	for b := range 256 {
		if b == '_' || alnum.has(byte(b)) {
			out[b] = inWord
		}
	}
	out[':'], out['='], out['.'], out['-'], out['['] = busy, busy, dot, dash, bracket
	out['"'], out['\''], out['$'] = mark, mark, dollar
	out[','], out['>'] = comma, closing
	out['\\'], out['%'], out[';'] = odd, odd, odd
	return out
}
