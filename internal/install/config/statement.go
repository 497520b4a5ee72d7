package config

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// statement is a line of a settings file: the header of a table, or a key and its value, which may take several
// lines. Offsets are in bytes.
type statement struct {
	table      toml.Key // that contains it, or that it opens
	list       bool     // it is in a list of tables, which has no key
	key        toml.Key // within the table; nil means a header
	start, end int      // the whole lines
	value      int      // start of the value
	stop       int      // end of the value, before a comment
}

// full returns the key from the top of the file.
func (s statement) full() toml.Key { return append(append(toml.Key{}, s.table...), s.key...) }

// statements splits a file that is valid TOML.
func statements(text string) []statement {
	var out []statement
	var table toml.Key
	list := false
	for at := 0; at < len(text); {
		line := text[at:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#':
			at += len(line) + 1
			continue
		case trimmed[0] == '[':
			begin := at + strings.IndexByte(line, '[')
			end := skip(text, begin)
			inner := strings.TrimSpace(text[begin+1 : end-1])
			list = strings.HasPrefix(inner, "[")
			table = parsedKey(strings.TrimSpace(strings.Trim(inner, "[]")))
			out = append(out, statement{table: table, list: list, start: at, end: lineEnd(text, end)})
		default:
			equals := at
			for equals < len(text) && text[equals] != '=' {
				equals = max(skip(text, equals), equals+1)
			}
			value := equals + 1
			for value < len(text) && (text[value] == ' ' || text[value] == '\t') {
				value++
			}
			stop := value
			for stop < len(text) && text[stop] != '\n' && text[stop] != '#' {
				stop = max(skip(text, stop), stop+1)
			}
			key := parsedKey(strings.TrimSpace(text[at:min(equals, len(text))]))
			end := lineEnd(text, stop)
			stop = value + len(strings.TrimRight(text[value:stop], " \t\r"))
			out = append(out, statement{table: table, list: list, key: key, start: at, end: end, value: value, stop: stop})
		}
		at = out[len(out)-1].end
	}
	return out
}

// mostDeep bounds the nesting of keys, tables and lists, and mostParts the parts of a key. The parser takes
// time quadratic in both.
const mostDeep, mostParts = 16, 16

// deep reports whether a text, which may be TOML, exceeds these bounds.
func deep(text string) bool {
	parts, open := 1, 0
	for at := 0; at < len(text); {
		switch text[at] {
		case '"', '\'':
			at = skipString(text, at)
			continue
		case '#':
			at = lineEnd(text, at)
			parts = 1
			continue
		case '.':
			parts++
		case '=', ',', '\n':
			parts = 1
		case '[', '{':
			open, parts = open+1, 1
		case ']', '}':
			open--
		}
		if parts > mostParts || open > mostDeep {
			return true
		}
		at++
	}
	return false
}

// skip returns the end of the string, list or table that begins at a position; the position itself if none
// does.
func skip(text string, at int) int {
	switch c := text[at]; c {
	case '"', '\'':
		return skipString(text, at)
	case '[', '{':
		closing := map[byte]byte{'[': ']', '{': '}'}[c]
		for i := at + 1; i < len(text); {
			switch text[i] {
			case closing:
				return i + 1
			case '#':
				i = lineEnd(text, i)
			default:
				i = max(skip(text, i), i+1)
			}
		}
		return len(text)
	}
	return at
}

func skipString(text string, at int) int {
	quote := text[at : at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[at:], triple) {
		quote = triple
	}
	for i := at + len(quote); i < len(text); i++ {
		if text[i] == '\\' && quote[0] == '"' {
			i++
			continue
		}
		if strings.HasPrefix(text[i:], quote) {
			end := i + len(quote)
			for len(quote) == 3 && end < len(text) && text[end] == quote[0] { // up to two quotes may precede the end
				end++
			}
			return end
		}
	}
	return len(text)
}

// lineEnd returns the start of the next line.
func lineEnd(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// parsedKey splits a TOML key into its parts; nil means it is invalid.
func parsedKey(text string) toml.Key {
	var tree map[string]any
	meta, err := toml.Decode(text+" = 0", &tree)
	if err != nil || strings.ContainsAny(text, "\n=#") {
		return nil
	}
	var longest toml.Key
	for _, key := range meta.Keys() {
		if len(key) > len(longest) {
			longest = key
		}
	}
	return longest
}
