package secret

import (
	"encoding/base64"
	"slices"
	"strings"
)

// finder is the shapes, indexed by their first two bytes.
type finder struct {
	shapes []shape
	first  [4096]uint16    // the first shape of a slot; 0 means none
	starts [1 << 11]uint64 // possible first four bytes of a token, hashed
	kind   [256]uint8
	bits   [256]uint64 // 1: inWord, 1<<32: any other kind that is not dull
	stops  stops
	longer int // length of the longest prefix
}

func newFinder() *finder {
	f := &finder{shapes: shapes(), kind: kinds(), stops: newStops()}
	var members [classes][]byte
	for i := range f.shapes {
		s := &f.shapes[i]
		at := slot(s.prefix[0], s.prefix[1])
		s.next, f.first[at] = f.first[at], uint16(i+1)
		s.class, s.least = first(s.tail)
		if members[s.class] == nil {
			members[s.class] = s.class.members()
		}
		var start [4]byte
		f.admit(start, copy(start[:], s.prefix), members[s.class])
		f.longer = max(f.longer, len(s.prefix))
	}
	for b, kind := range f.kind {
		switch kind {
		case dull:
		case inWord:
			f.bits[b] = 1
		default:
			f.bits[b] = 1 << 32
		}
	}
	return f
}

// admit records the first four bytes of all tokens of which known bytes are given, and the others are of a
// class.
func (f *finder) admit(start [4]byte, known int, class []byte) {
	if known >= 4 {
		n := hash(start[0], start[1], start[2], start[3])
		f.starts[n>>6] |= 1 << (n & 63)
		return
	}
	for _, start[known] = range class {
		f.admit(start, known+1, class)
	}
}

// first returns the class at the start of a tail, and its minimum number of bytes, up to 16.
func first(tail string) (c class, least int) {
	if tail == "" {
		return 0, 0
	}
	c, is := classOf(tail[0])
	if !is {
		return 0, 0
	}
	digits := strings.TrimPrefix(tail[1:], "=")
	for i := 0; i < len(digits) && '0' <= digits[i] && digits[i] <= '9'; i++ {
		least = least*10 + int(digits[i]-'0')
	}
	return c, min(least, 16)
}

// heads reports whether a prefix and the beginning of its tail are at i.
func (s *scanner) heads(i int) bool {
	t := s.text[i : i+4]
	for n := s.first[slot(t[0], t[1])]; n > 0; n = s.shapes[n-1].next {
		sh := &s.shapes[n-1]
		if sh.prefix[len(sh.prefix)-1] != s.text[i+len(sh.prefix)-1] || !strings.HasPrefix(s.text[i:], sh.prefix) {
			continue // the last byte distinguishes most of them
		}
		j := i + len(sh.prefix)
		end := j + sh.least
		for j < end && sh.class.has(s.text[j]) {
			j++
		}
		if j == end {
			return true
		}
	}
	return false
}

func hash(a, b, c, d byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16 | uint32(d)<<24) * 0x9e3779b1 >> 15
}

func slot(a, b byte) uint16 { return (uint16(a)<<6 ^ uint16(b)) & 4095 }

// token looks for a token that begins at i.
func (s *scanner) token(i int) (Found, bool) {
	if len(s.text)-i < s.longer && !s.final {
		s.mayBegin(i)
	}
	if len(s.text)-i < 2 {
		return Found{}, false
	}
	for n := s.first[slot(s.text[i], s.text[i+1])]; n > 0; n = s.shapes[n-1].next {
		sh := &s.shapes[n-1]
		if strings.HasPrefix(s.text[i:], sh.prefix) {
			if found, ok := s.proven(i, sh); ok {
				return found, true
			}
		}
	}
	return Found{}, false
}

// mayBegin records whether the text ends within a prefix.
func (s *scanner) mayBegin(i int) {
	if i >= len(s.text) {
		s.short = true
		return
	}
	for n := range s.shapes {
		if p := s.shapes[n].prefix; len(p) > len(s.text)-i && strings.HasPrefix(p, s.text[i:]) {
			s.short = true
			return
		}
	}
}

// proven reports whether the token of a shape begins at i. Only the minimum part of a certain token is judged:
// the rest may be cut off when the text is read again.
func (s *scanner) proven(i int, sh *shape) (Found, bool) {
	from := i + len(sh.prefix)
	switch sh.check {
	case netrc:
		return s.netrc(i, from)
	case vaulted:
		return s.vaulted(i, from)
	case quoted, worded, account:
		return s.saying(from, sh.check)
	case directive:
		return s.directive(from)
	case logged:
		return s.logged(from)
	}
	least, end := s.tail(from, sh.tail)
	if end < 0 {
		return Found{}, false
	}
	switch sh.check {
	case chance:
		return Found{i, end, sh.what}, byChance(s.text[from:end])
	case enclosed:
		return Found{i, end, sh.what}, s.before(i, 1) == `"` && s.at(end) == '"'
	}
	if sh.check == sure {
		return Found{i, end, sh.what}, !standIn(s.text[i:min(least, i+256)])
	}
	value := s.text[from:min(end, from+256)]
	ok := mixed(value) || len(value) >= 16 && bothCases(value) && unspeakable(value)
	if sh.check == login {
		ok = isLogin(value)
	}
	if !ok || s.placeholder(end) > 0 || standIn(value) {
		return Found{}, false
	}
	if sh.check == random {
		return Found{i, end, sh.what}, true
	}
	if found, ok := s.token(from); ok && found.Start == from {
		return found, true
	}
	return Found{from, end, sh.what}, true
}

// tail matches the text after a prefix. It returns the ends of the shortest and the longest match; -1 if there
// is none.
func (s *scanner) tail(i int, tail string) (least, end int) {
	least = i
	for len(tail) > 0 {
		c, is := classOf(tail[0])
		if !is {
			if !s.has(i, tail[:1]) {
				return -1, -1
			}
			i, least, tail = i+1, i+1, tail[1:]
			continue
		}
		exact := strings.HasPrefix(tail[1:], "=")
		tail = strings.TrimPrefix(tail[1:], "=")
		n := 0
		for len(tail) > 0 && '0' <= tail[0] && tail[0] <= '9' {
			n, tail = n*10+int(tail[0]-'0'), tail[1:]
		}
		stop := s.run(i, c, tail == "")
		if stop-i < n || exact && (stop-i > n || alnum.has(s.at(stop))) {
			return -1, -1
		}
		i, least = stop, i+n
		if n == 0 {
			least = stop
		}
	}
	return least, i
}

// run returns the end of a run. Within a token it is short, at the end long.
func (s *scanner) run(i int, c class, last bool) int {
	if last {
		return s.span(i, c, longest)
	}
	return s.span(i, c, longest/4)
}

// netrc looks for the password of a machine after the words machine NAME login USER, on one line or on several.
// See the manual of netrc(5).
func (s *scanner) netrc(i, from int) (Found, bool) {
	from = s.pastSpace(from, i+64)
	words := strings.Fields(s.before(i, 300))
	n := len(words)
	if n >= 2 && slices.Contains(s.command(i), "nmcli") {
		return s.saying(from, worded)
	}
	sure := n >= 3 && (words[n-2] == "login" || words[n-2] == "account" || words[n-2] == "machine" && words[n-3] != "the") &&
		(slices.Contains(words[max(0, n-7):], "machine") || words[n-3] == "default")
	line := s.before(i, 300)
	alone := strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:]) == ""
	if !sure && !alone && (n < 2 || words[n-2] != "machine") {
		return Found{}, false
	}
	end := from
	for end < len(s.text) && end-from < longest && !isSpace(s.text[end]) && s.text[end] != '[' {
		end++
	}
	if s.atEnd(end) && !s.final {
		return Found{}, false
	}
	value := s.text[from:end]
	if s.placeholder(end) > 0 || len(value) < 4 || isDummy(value) || standIn(value) || strings.ContainsAny(value[:1], "$<{") {
		return Found{}, false
	}
	return Found{from, end, "a password"}, sure || len(value) >= 8 && (mixed(value) || strong(value)) && !isPlain(value) && !isPlace(value)
}

// leastBot is the minimum length of a bot's encoded number.
const leastBot = 23

// split examines a dot for a Discord token, which begins with the number of a bot: MTIz....Gabc12.more. The
// number is public and stays visible.
func (s *scanner) split(i int) (Found, bool) {
	name := s.before(i, 32)
	name = name[len(name)-trailing(name):]
	if n := len(name); n < leastBot || n > 28 || strings.IndexByte("MNO", name[0]) < 0 {
		return Found{}, false
	}
	least, end := s.tail(i+1, "W6.W27")
	if end < 0 || s.text[i+7] != '.' || standIn(s.text[i:least]) {
		return Found{}, false
	}
	return Found{i + 1, end, "a Discord token"}, true
}

// trailing returns the number of letters and digits at the end of s.
func trailing(s string) int {
	n := 0
	for n < len(s) && isAlnum(s[len(s)-1-n]) {
		n++
	}
	return n
}

// isLogin reports whether s is base64 of name:password.
func isLogin(s string) bool {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return false
	}
	name, password, ok := strings.Cut(string(raw), ":")
	for _, b := range raw {
		ok = ok && b >= ' ' && b != 127
	}
	return ok && len(password) >= 3 && !isDummy(password) && password != name && !standIn(string(raw))
}
