package secret

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// mapping is a block in which every value is a secret.
type mapping struct {
	name   string // data: the values are base64; stringData; empty means none
	indent int    // of its name, in a block of YAML
	json   bool   // it ends with its brace
}

// kinded matches the kind of an object of Kubernetes, up to the byte after it or the end.
var kinded = regexp.MustCompile(`\bkind["']?\s*:\s*["']?(\w+)["']?(?:[\s,}]|$)`)

// aheadKind bounds the bytes in which the kind is searched after the data.
const aheadKind = 8 << 10

// manifest examines a colon in an object of Kubernetes: it may begin the data of a Secret, or a value in it.
func (s *scanner) manifest(i int) (Found, bool) {
	line := s.before(i, context)
	line = line[strings.LastIndexByte(line, '\n')+1:]
	indent := len(line) - len(strings.TrimLeft(line, " -"))
	if s.data.name != "" && !s.data.json && indent <= s.data.indent {
		s.data = mapping{}
	}
	name := strings.TrimRight(strings.TrimRight(line, "\"' "), "\\")
	for _, data := range []string{"stringData", "data"} {
		if s.data.name == "" && strings.HasSuffix(name, data) && !isAlnum((" " + name)[len(name)-len(data)]) && s.ofSecret(i) {
			s.data = mapping{data, indent, s.at(s.pastSpace(i+1, i+16)) == '{'}
			return Found{}, false
		}
	}
	if s.data.name == "" {
		return Found{}, false
	}
	v := value{name: "secret", sign: ':', kind: secretly}
	if !s.operator(i, &v) || !s.read(&v) {
		return Found{}, false
	}
	if s.data.name == "stringData" {
		return s.judge(&v)
	}
	text := s.text[v.from:v.end]
	raw, err := base64.StdEncoding.DecodeString(text)
	return Found{v.from, v.end, "the data of a Secret"}, err == nil && len(raw) >= 6 && !isDummy(string(raw)) && !standIn(string(raw))
}

// ofSecret reports whether data at i belong to a Secret, whose kind may stand before or after them.
func (s *scanner) ofSecret(i int) bool {
	before := s.before(i, context)
	before = before[max(0, strings.LastIndex(before, "\n---")):]
	if kinds := kinded.FindAllStringSubmatch(before, -1); kinds != nil {
		return kinds[len(kinds)-1][1] == "Secret"
	}
	if !strings.Contains(before, "apiVersion") {
		return false
	}
	after := s.text[i:min(len(s.text), i+aheadKind)]
	kind := kinded.FindStringSubmatchIndex(after)
	if kind == nil || kind[1] == len(after) {
		s.short = s.short || len(after) < aheadKind
		return kind != nil && s.final && after[kind[2]:kind[3]] == "Secret"
	}
	return after[kind[2]:kind[3]] == "Secret"
}

// passfile examines a colon for the password in a line of a .pgpass: host:port:database:user:password.
func (s *scanner) passfile(i int) (Found, bool) {
	before := s.before(i, longestPassfile)
	line := before[strings.LastIndexAny(before, "\n\"'` \t")+1:]
	fields := strings.Split(line, ":")
	if len(fields) != 4 || fields[0] == "" || fields[2] == "" || fields[3] == "" ||
		strings.Trim(fields[2], "0123456789") == "" || len(fields[1]) > 5 || fields[1] != "*" && (len(fields[1]) < 2 || strings.Trim(fields[1], "0123456789") != "") {
		return Found{}, false
	}
	end := i + 1
	for end-i < longestPassfile && s.at(end) != 0 && !isSpace(s.text[end]) && strings.IndexByte("\"'`", s.text[end]) < 0 {
		if s.placeholder(end) > 0 || s.text[end] == ':' && s.text[end-1] != '\\' {
			return Found{}, false
		}
		end++
	}
	if s.atEnd(end) && !s.final {
		return Found{}, false
	}
	return s.password(i+1, end)
}

const longestPassfile = 160

// mayPassfile is a fast check of a colon, see passfile.
func (s *scanner) mayPassfile(i int) bool {
	if c := s.text[i+1]; isSpace(c) || c == '"' || c == '\'' || c == '/' {
		return false
	}
	colons := 0
	for j := i - 1; j >= 0 && i-j <= longestPassfile && colons < 4; j-- {
		switch c := s.text[j]; {
		case c == ':':
			colons++
		case c == '"', c == '\'', c == '`', isSpace(c):
			return colons == 3
		}
	}
	return colons == 3
}
