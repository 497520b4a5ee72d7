package secret

import (
	"slices"
	"strings"
)

const beginPEM = "-----BEGIN "

// pem looks for a private key of RFC 7468 or OpenPGP. It may be cut off at the end, be in a string with \n for
// its line breaks, or have numbers or marks before its lines. A single first line is a secret only if the text
// ends there.
func (s *scanner) pem(i int) (Found, bool) {
	if !s.has(i, beginPEM) {
		return Found{}, false
	}
	body := s.label(i + len(beginPEM))
	if body < 0 {
		return Found{}, false
	}
	end, lines := body, 0
	for end-i < longestPE {
		line := s.margin(end)
		if s.has(line, "-----END ") {
			if stop := s.label(line + len("-----END ")); stop > 0 && lines > 0 {
				return Found{i, stop, privateKey}, true
			}
			break
		}
		stop := s.pemLine(line, lines)
		if stop == line {
			break
		}
		end, lines = stop, lines+1
	}
	if lines > 0 {
		return Found{i, end, privateKey}, true
	}
	return Found{i, len(s.text), privateKey}, s.atEnd(s.margin(body))
}

// vaulted examines the hex lines under the header of data that Ansible has encrypted. They may be in a string,
// or have numbers or marks before them, as a private key may.
func (s *scanner) vaulted(i, from int) (Found, bool) {
	for from-i < 96 && !s.atEnd(from) && s.text[from] != '\n' && s.text[from] != '\\' {
		from++
	}
	begin := s.margin(from)
	end := begin
	for line := begin; end-i < longestPE; line = s.margin(end) {
		stop := s.span(line, hexes, longest)
		if stop == line || stop-line < 16 && (end == begin || !s.atEnd(stop)) {
			break
		}
		end = stop
	}
	return Found{begin, end, "a vault of Ansible"}, end > begin
}

// label reads the rest of a line such as -----BEGIN RSA PRIVATE KEY-----; -1: it is not that of a private key.
func (s *scanner) label(i int) int {
	j := i
	for j-i < 48 && (s.at(j) == ' ' || uppers.has(s.at(j))) {
		j++
	}
	name := s.text[i:min(j, len(s.text))]
	if !s.has(j, "-----") || !strings.HasSuffix(strings.TrimSuffix(name, " BLOCK"), "PRIVATE KEY") {
		return -1
	}
	return j + 5
}

// pemLine returns the end of the key line that begins at i, or i. A short line counts only at the end.
func (s *scanner) pemLine(i, lines int) int {
	stop := s.span(i, base64s, longest)
	switch n := stop - i; {
	case n >= 16 && (lines > 0 || strings.ContainsAny(s.text[i:stop], "0123456789")), n > 0 &&
		(s.atEnd(stop) || s.has(s.margin(stop), "-----END ")):
		return stop
	case s.at(stop) == ':' && slices.Contains([]string{"Proc-Type", "DEK-Info", "Version", "Comment", "Charset", "Hash"}, s.text[i:stop]):
		for stop-i < 128 && !s.atEnd(stop) && s.text[stop] != '\n' && s.text[stop] != '\\' {
			stop++
		}
		return stop
	}
	return i
}

// margin skips the text between lines of a key: line breaks, possibly written as \n, and marks that tools add
// before and after lines.
func (s *scanner) margin(i int) int {
	for from := i; i-from < 64; {
		switch c := s.at(i); {
		case isSpace(c), c != 0 && strings.IndexByte("\"',|>`;*#+", c) >= 0:
			i++
		case c == '\\':
			i++
			if b := s.at(i); b == 'n' || b == 'r' || b == 't' {
				i++
			}
		case c == '-' && !s.has(i, "-----") && !s.wait():
			i++
		case '0' <= c && c <= '9':
			stop := s.span(i, digits, 7)
			if b := s.at(stop); b != '\t' && b != '|' && b != ':' && b != ' ' {
				return i
			}
			i = stop + 1
		default:
			return i
		}
	}
	return i
}
