package secret

import (
	"slices"
	"strings"
)

// literal returns the beginning of the text in a literal at i, after a sign, and what ends it. It knows the quotes,
// prefixes, brackets and here-documents of many languages, and literals that a call only converts. end is empty if
// there is none; the value then begins at i.
func (s *scanner) literal(i int, sign byte) (from int, end string) {
	if s.has(i, `R"(`) {
		return i + 3, `)"`
	}
	if from, end = s.quoted(i); end != "" {
		return from, end
	}
	switch c := s.at(i); {
	case c == '<' && s.at(i+1) == '<': // a binary of Erlang, a here-document
		if from, end = s.here(i); end != "" {
			return from, end
		}
		if from, end = s.quoted(i + 2); end != "" {
			return from, end
		}
		return i, ""
	case c == '|' || c == '>':
		if sign == ':' {
			return s.folded(i)
		}
	case c == '[':
		if s.placeholder(i+1) == 0 {
			if from, end = s.long(i); end != "" {
				return from, end
			}
		}
	case c == '~' && s.at(i+1)|0x20 == 's':
		return s.bracketed(i, i+2)
	case c == '%':
		if s.at(i+1)|0x20 == 'q' {
			return s.bracketed(i, i+2)
		}
		return s.bracketed(i, i+1)
	case c == '{' && s.at(i+1) == '|':
		return i + 2, "|}"
	case c == 'q':
		if from, end = s.bracketed(i, i+1+s.count(i+1, 'q', 1)); end != "" {
			return from, end
		}
	case c == 'r' && s.at(i+1) == '#':
		if n := s.count(i+1, '#', 8); s.at(i+1+n) == '"' {
			return i + 2 + n, `"` + strings.Repeat("#", n)
		}
	}
	return s.converted(i)
}

// quoted reads quotes and a letter before them.
func (s *scanner) quoted(i int) (from int, end string) {
	from = i
	if c := s.at(from); c != 0 && strings.IndexByte("brufLBRUF@", c) >= 0 && (s.at(from+1) == '"' || s.at(from+1) == '\'') {
		from++
	}
	switch c := s.at(from); c {
	case '\\':
		if c := s.at(from + 1); c == '"' || c == '\'' {
			return from + 2, s.text[from : from+2]
		}
	case '`':
		return from + 1, "`"
	case '"', '\'':
		n := s.count(from, c, 3)
		if n == 2 && (c == '"' || !isAlnum(s.at(from+2))) {
			n = 1 // an empty text, not an indented one of Nix
		}
		return from + n, s.text[from : from+n]
	}
	return i, ""
}

// count returns the number of times that a byte follows itself at i, up to a limit.
func (s *scanner) count(i int, b byte, most int) (n int) {
	for n < most && s.at(i+n) == b {
		n++
	}
	return n
}

// long reads a long bracket of Lua: [[, [==[.
func (s *scanner) long(i int) (from int, end string) {
	n := s.count(i+1, '=', 4)
	if s.at(i+1+n) != '[' || s.placeholder(i+1+n) > 0 {
		return i, ""
	}
	return i + n + 2, "]" + strings.Repeat("=", n) + "]"
}

// bracketed reads the sign after the prefix of a literal of Perl, Ruby or Elixir: q(, %Q[, ~s|.
func (s *scanner) bracketed(i, at int) (from int, end string) {
	c := s.at(at)
	n := strings.IndexByte(`({<|/!"'`, c)
	if c == 0 || n < 0 {
		if c != '[' || s.placeholder(at) > 0 {
			return i, ""
		}
		return at + 1, "]"
	}
	return at + 1, `)}>|/!"'`[n : n+1]
}

// here reads the first line of a here-document up to its text, which must be one word.
func (s *scanner) here(i int) (from int, end string) {
	at := i + 2
	if c := s.at(at); c == '-' || c == '~' {
		at++
	}
	if c := s.at(at); c == '"' || c == '\'' {
		at++
	}
	name := s.span(at, alnum, 24)
	if name == at {
		return i, ""
	}
	if c := s.at(name); c == '"' || c == '\'' {
		name++
	}
	return s.nextLine(i, name)
}

// folded reads the first line of a block of YAML up to its text, which must be one word.
func (s *scanner) folded(i int) (from int, end string) {
	at := i + 1
	if c := s.at(at); c == '-' || c == '+' {
		at++
	}
	return s.nextLine(i, at)
}

// nextLine returns the first word of the line after the one that ends at end of line.
func (s *scanner) nextLine(i, at int) (from int, end string) {
	if s.at(at) == '\r' {
		at++
	}
	if s.at(at) != '\n' {
		return i, ""
	}
	return s.pastBlanks(at+1, at+64), "\n"
}

// converted reads a call that only converts a literal: []byte("...), String::from("...), Some("...), pack "...
func (s *scanner) converted(i int) (from int, end string) {
	at := i
	if s.has(at, "[]") {
		at += 2
	}
	name := at
	for at-name < 40 && (isAlnum(s.at(at)) || s.at(at) != 0 && strings.IndexByte("_.:&", s.text[at]) >= 0) {
		at++
	}
	word, _ := lastWord(s.text[name:at])
	if !slices.Contains([]string{
		"string", "str", "bytes", "byte", "from", "of", "some", "just", "pack", "text", "secret", "sensitive", "ptr", "pointer",
		"to", "literal", "buffer", "new", "password", "constant",
	}, word) && !strings.HasSuffix(word, "string") {
		return i, ""
	}
	if c := s.at(at); c != '(' && c != ' ' {
		return i, ""
	}
	if from, end = s.quoted(at + 1); end == "" {
		return i, ""
	}
	return from, end
}
