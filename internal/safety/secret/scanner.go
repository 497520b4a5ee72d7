package secret

import (
	"math/bits"
	"strings"
)

// Bounds on reading, in bytes. They bound what a [Writer] holds back, and make backward reading constant time.
const (
	longest   = 8 << 10  // token or value; longer ones are found in pieces
	longestPE = 32 << 10 // private key with its lines
	context   = 512      // maximum backward reading
)

// scanner finds shapes in a text that may continue later. Matchers read ahead only through its methods, which
// record in short that the text ended too early to decide. This rule makes the result of a stream equal to that
// of its whole: undecided text waits.
type scanner struct {
	*finder
	text  string
	final bool // nothing follows the text
	short bool // the last attempt reached the end of the text

	start  int     // of the stretch after the last secret or placeholder: nothing looks further back
	cookie bool    // on a line of cookies
	data   mapping // of a Secret of Kubernetes
	carry  string  // description of a secret that was cut at the bound; empty means none
	memo   [classes]run
	values values
	ahead  stretch // the last classified stretch
}

// run is a stretch of characters of one class.
type run struct{ from, end int }

// next finds the first secret at or after i. It returns the position up to which the text is decided: after the
// secret, or, without one, where more text is needed. In a final text that is its end.
func (s *scanner) next(i int) (Found, int) {
	for i < len(s.text) {
		if s.carry != "" {
			if found, ok := s.carried(i); ok || s.wait() {
				return s.took(found, i)
			}
		}
		i = s.skip(i)
		if i == len(s.text) {
			break
		}
		s.short = false
		if n := s.placeholder(i); n > 0 {
			i += n
			s.start, s.carry = i, ""
			continue
		}
		found, ok := s.event(i)
		if ok || s.wait() {
			return s.took(found, i)
		}
		i++
	}
	return Found{}, i
}

// wait reports whether the last attempt needs more text.
func (s *scanner) wait() bool { return s.short && !s.final }

// took ends a step: with a secret, or waiting at i.
func (s *scanner) took(found Found, i int) (Found, int) {
	if s.wait() {
		return Found{}, i
	}
	s.carry = ""
	if found.End-found.Start >= longest && found.What != privateKey {
		s.carry = found.What
	}
	s.start = found.End
	return found, found.End
}

// carried continues a secret that was cut at the bound.
func (s *scanner) carried(i int) (Found, bool) {
	s.short = false
	end := s.span(i, anyValue, longest)
	if end == i {
		s.carry = ""
	}
	return Found{i, end, s.carry}, end > i
}

// skip returns the next byte where something may begin. It skips nearly all of a text, stretch by stretch.
func (s *scanner) skip(i int) int {
	for i < len(s.text) {
		if at := i &^ 63; s.ahead.end <= i || s.ahead.at != at {
			s.ahead = s.look(at)
		}
		may := s.ahead.may
		if s.cookie || s.data.name != "" {
			may |= s.ahead.busy
		}
		if i == s.start && s.kind[s.text[i]] == inWord {
			may |= 1 << (i & 63) // the preceding byte is not part of the word
		}
		if may &= ^uint64(0) << (i & 63); may != 0 {
			return s.pass(i, s.ahead.at+bits.TrailingZeros64(may))
		}
		i = s.pass(i, s.ahead.end)
	}
	return i
}

// pass moves from i to end.
func (s *scanner) pass(i, end int) int {
	if s.cookie && strings.IndexByte(s.text[i:end], '\n') >= 0 {
		s.cookie = false
	}
	if s.data.json && strings.IndexByte(s.text[i:end], '}') >= 0 {
		s.data = mapping{}
	}
	return end
}

// A stretch is up to 64 bytes of the text, with a bit for each.
type stretch struct {
	at, end int
	may     uint64 // something may begin at it
	busy    uint64 // something may begin at it on a line of cookies
}

// nearEnd bounds the read-ahead of fast checks. Closer to the end of the text everything is checked, and the
// checks decide whether more text is needed.
const nearEnd = 128

// look checks the stretch at a multiple of 64, as if nothing was found before it. Where it says no, event would
// find nothing.
func (s *scanner) look(at int) stretch {
	out := stretch{at: at, end: min(len(s.text), at+64)}
	begin, signs := s.classify(s.text[at:out.end])
	last := uint8(dull)
	if at > 0 {
		last = s.kind[s.text[at-1]]
	}
	if last == inWord {
		begin &^= 1
	}
	near := len(s.text)-at < 64+nearEnd
	var behind uint64 // an odd byte
	if last >= odd {
		behind = 1
	}
	for m := signs; m != 0; m &= m - 1 {
		bit := m & -m
		n := at + bits.TrailingZeros64(m)
		kind := s.kind[s.text[n]]
		if kind >= odd {
			behind |= bit << 1
		}
		if kind == busy {
			out.busy |= bit
		}
		if kind != odd && (near || s.may(n, kind)) {
			out.may |= bit
		}
	}
	out.may |= s.tokens(at, begin, behind, near)
	return out
}

// tokens returns the words that begin in a stretch, some after an odd byte, at which there may be a token.
func (s *scanner) tokens(at int, begin, behind uint64, near bool) (may uint64) {
	if near {
		return begin
	}
	starts, text := &s.starts, s.text[at:at+64+4]
	for m := begin; m != 0; m &= m - 1 {
		n := bits.TrailingZeros64(m) & 63
		h := hash(text[n], text[n+1], text[n+2], text[n+3])
		may |= starts[h>>6] >> (h & 63) & 1 << n
	}
	for m := may; m != 0; m &= m - 1 {
		if !s.heads(at + bits.TrailingZeros64(m)) {
			may &^= m & -m
		}
	}
	for m := begin & behind &^ may; m != 0; m &= m - 1 {
		if s.mayBehind(at + bits.TrailingZeros64(m)) {
			may |= m & -m
		}
	}
	return may
}

// classify returns the bytes of a stretch that begin a word, and the significant bytes outside of words.
func (f *finder) classify(text string) (begin, signs uint64) {
	var words uint64
	if len(text) == 64 {
		low, high := f.half(text[:32]), f.half(text[32:])
		words, signs = low&(1<<32-1)|high<<32, low>>32|high&^(1<<32-1)
	} else {
		for n := range len(text) {
			both := f.bits[text[n]]
			words, signs = words|both&1<<n, signs|both>>32<<n
		}
	}
	return words &^ (words << 1), signs
}

// half returns a bit for each of 32 bytes that is part of a word, and, 32 bits above, for each otherwise
// significant one.
func (f *finder) half(text string) (out uint64) {
	b := &f.bits
	for n := 0; n < 32; n += 8 {
		t := text[n : n+8]
		out |= (b[t[0]] | b[t[1]]<<1 | b[t[2]]<<2 | b[t[3]]<<3 | b[t[4]]<<4 | b[t[5]]<<5 | b[t[6]]<<6 | b[t[7]]<<7) << n
	}
	return out
}

// may is a fast check of a byte outside of words.
func (s *scanner) may(i int, kind uint8) bool {
	text := s.text
	switch kind {
	case busy:
		return s.maySet(i)
	case dot:
		return i >= leastBot && trailing(text[i-leastBot:i]) == leastBot
	case dash:
		if i > 0 && isSpace(text[i-1]) {
			return text[i+1] == '-' || isAlnum(text[i+1])
		}
		return text[i+1] == '-' && strings.HasPrefix(text[i:], beginPEM)
	case comma:
		return i > 0 && !isSpace(text[i-1]) && mayName(nameIn(text[max(0, i-longestName):i]))
	case mark:
		return i > 0 && isSpace(text[i-1]) && mayName(nameIn(withoutArrow(text[max(0, i-longestName):i])))
	case dollar:
		return mayCrypt(text[i+1])
	case closing:
		if text[i+1] == '{' {
			return true
		}
		switch name := text[max(0, i-longestName):i]; {
		case isSpace(text[i+1]):
			return mayName(name)
		case text[i+1] == '<':
			return text[i+2] == '!' && s.mayHold(i)
		}
		return s.mayHold(i)
	}
	return strings.HasPrefix(text[i:], opening)
}

// mayBehind is a fast check of the start of a word after an odd byte, see word.
func (s *scanner) mayBehind(i int) bool {
	switch s.text[i-1] {
	case '\\':
		return s.heads(i + 1)
	case '%':
		return s.heads(i + 2)
	}
	for j := i; j < i+4; j++ {
		if s.text[j] == 'm' {
			return s.heads(j + 1)
		}
	}
	return false
}

// maySet is a fast check of = or :, see setting.
func (s *scanner) maySet(i int) bool {
	text := s.text
	if text[i] == ':' && i > 0 {
		switch next := text[i+1]; {
		case s.mayPassfile(i):
			return true
		case next == '/' && text[i+2] == '/', next == 'A' && text[i+2] == 'A', i > 4 && s.namesSource(i):
			return true
		case isAlnum(text[i-1]) && text[s.until(i+1, &s.stops.source, longestSource)] == '@':
			return true
		}
	}
	name := nameIn(text[max(0, i-longestName):i])
	return mayName(name) || s.maySign(i, name)
}

// event checks what begins at i.
func (s *scanner) event(i int) (Found, bool) {
	switch s.text[i] {
	case '-':
		if found, ok := s.pem(i); ok || s.wait() {
			return found, ok
		}
		return s.flag(i)
	case ':', '=':
		return s.setting(i)
	case ',':
		return s.argued(i)
	case '>':
		return s.element(i)
	case '.':
		return s.split(i)
	case '"', '\'':
		return s.stated(i)
	case '$':
		return s.crypt(i)
	case '[':
		return Found{}, false
	}
	return s.word(i)
}

// word looks for a token at the start of a word. A word may begin after an escaped character: \n, %3D, or a
// colour.
func (s *scanner) word(i int) (Found, bool) {
	if found, ok := s.token(i); ok || s.wait() {
		return found, ok
	}
	if i == s.start {
		return Found{}, false
	}
	c := s.text[i]
	switch s.text[i-1] {
	case '\\':
		if strings.IndexByte("nrt", c) >= 0 {
			return s.token(i + 1)
		}
	case '%':
		if isHex(c) && isHex(s.at(i+1)) {
			return s.token(i + 2)
		}
	case '[', ';':
		j := s.span(i, digits, 3)
		if s.at(j) == 'm' {
			return s.token(j + 1)
		}
	}
	return Found{}, false
}

// at returns the byte at i, or 0 after the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	s.short = true
	return 0
}

// has reports whether the text at i begins with want.
func (s *scanner) has(i int, want string) bool {
	if i > len(s.text) {
		s.short = true
		return false
	}
	rest := s.text[i:]
	if len(rest) < len(want) {
		s.short = s.short || strings.HasPrefix(want, rest)
		return false
	}
	return rest[:len(want)] == want
}

// span returns the end of the run of a class at i, of at most limit bytes. It caches runs, so that one that is
// tried from many places is read once.
func (s *scanner) span(i int, c class, limit int) int {
	if i > len(s.text) {
		s.short = true
		return i
	}
	m := &s.memo[c]
	if i < m.from || i >= m.end {
		*m = run{i, i}
	}
	stop := min(len(s.text), i+limit)
	for m.end < stop && c.has(s.text[m.end]) {
		m.end++
	}
	end := min(m.end, stop)
	if end == len(s.text) && end < i+limit {
		s.short = true
	}
	return end
}

// pastBlanks returns the end of the spaces and tabs at i, at most end.
func (s *scanner) pastBlanks(i, end int) int {
	for i < end && (s.at(i) == ' ' || s.at(i) == '\t') {
		i++
	}
	return i
}

// pastSpace is like pastBlanks, with line breaks.
func (s *scanner) pastSpace(i, end int) int {
	for i < end && isSpace(s.at(i)) {
		i++
	}
	return i
}

// before returns up to n bytes before i, as far as reading back is allowed.
func (s *scanner) before(i, n int) string { return s.text[max(s.start, i-min(n, context)):i] }

// atEnd reports whether nothing follows.
func (s *scanner) atEnd(i int) bool {
	if i < len(s.text) {
		return false
	}
	s.short = true
	return true
}
