package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 and NUL, which some servers refuse, become U+FFFD; only
// the necessary characters are escaped.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done, mixed := 0, 0 // end of the appended part, and of the part that needs checking byte by byte
	for i := 0; i < len(s); {
		if i >= mixed && i+8 <= len(s) {
			if plain(s[i : i+8]) {
				i += 8
				continue
			}
			mixed = i + 8
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = appendEscape(append(dst, s[done:i]...), c)
		i++
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// plain reports whether the eight bytes of s need no change in a JSON string: ASCII without control characters,
// quotes and backslashes. It may return false for some that need none. A byte is below n if subtracting n from it
// sets its high bit, and equal to n if its exclusive or with n is below one.
func plain(s string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return (x|(x-' '*ones)|((x^'"'*ones)-ones)|((x^'\\'*ones)-ones))&highs == 0
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case 0:
		return append(dst, "\ufffd"...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendJSON appends raw, which must be valid JSON, without white space and without the escapes that encoding/json
// adds for HTML. So a value has the same bytes on the wire whether or not it was stored in a log, and a model reads
// "<" where it wrote "<".
func AppendJSON(dst []byte, raw json.RawMessage) []byte {
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case !inString && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		case c == '"':
			inString = !inString
		case inString && c == '\\' && i+1 < len(raw):
			if plain := htmlEscape(raw[i:]); plain != "" {
				dst = append(dst, plain...)
				i += 5
				continue
			}
			dst = append(dst, c)
			i++
			c = raw[i]
		}
		dst = append(dst, c)
	}
	return dst
}

// htmlEscape returns the character of the escape at the start of b, if it is one that encoding/json adds
// unnecessarily.
func htmlEscape(b []byte) string {
	if len(b) < 6 || b[1] != 'u' {
		return ""
	}
	switch string(b[2:6]) {
	case "003c", "003C":
		return "<"
	case "003e", "003E":
		return ">"
	case "0026":
		return "&"
	case "2028":
		return "\u2028"
	case "2029":
		return "\u2029"
	}
	return ""
}

// Object returns raw if it is a valid JSON object, and {} otherwise.
func Object(raw json.RawMessage) json.RawMessage {
	for _, c := range raw {
		switch c {
		case ' ', '\n', '\t', '\r':
			continue
		case '{':
			if json.Valid(raw) {
				return raw
			}
		}
		break
	}
	return json.RawMessage("{}")
}

// Count is a number of any form, or a string with one; 0 for all else.
type Count int

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Count) UnmarshalJSON(b []byte) error {
	f, _ := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
	*c = Count(min(max(f, 0), 1<<40))
	return nil
}
