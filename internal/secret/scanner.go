package secret

import "strings"

// Bounds of what is read at once, in bytes. They keep a [Writer] from holding
// back more than that, and reading backwards from taking more than constant time.
const (
	longest   = 8 << 10  // token or value; what is longer is found in pieces
	longestPE = 32 << 10 // private key with its lines
	context   = 512      // what is read backwards at most
)

// scanner finds shapes in a text that may go on later. Matchers read what lies
// ahead only through its methods, which note in short that the text ended too
// early to tell. That one rule makes a stream the same as its whole: what can't
// be told yet waits.
type scanner struct {
	*finder
	text  string
	final bool // nothing follows the text
	short bool // the end was met by what was tried last

	start  int    // of the stretch behind the last secret or placeholder: nothing looks further back
	cookie bool   // on a line of cookies
	carry  string // the last secret was cut at the bound: what it is; empty: it was not
	memo   [classes]run
	values values
}

// run is a stretch of characters of one class.
type run struct{ from, end int }

// next finds the first secret at or behind i. It returns how far the text is
// decided: behind the secret, or, without one, up to where the text must go on
// before more can be told. In a final text that is its end.
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
		i = s.behind(i)
	}
	return Found{}, i
}

// wait reports whether what was tried last needs more text.
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

// carried goes on with a secret that was cut at the bound.
func (s *scanner) carried(i int) (Found, bool) {
	s.short = false
	end := s.span(i, anyValue, longest)
	if end == i {
		s.carry = ""
	}
	return Found{i, end, s.carry}, end > i
}

// skip goes to the next byte at which something may begin. It passes over nearly
// all of a text, and so looks at each byte once and calls nothing.
func (s *scanner) skip(i int) int {
	text, kind := s.text, &s.kind
	word := i // where the word before i began, if one did
	if i > s.start && kind[text[i-1]] == inWord {
		word = i - min(i-s.start, 32)
		i = s.wordEnd(i)
	}
	for i < len(text) {
		k := kind[text[i]]
		if k == inWord {
			if s.mayToken(i) {
				return i
			}
			word = i
			for i++; i < len(text) && kind[text[i]] == inWord; i++ {
			}
			continue
		}
		switch k {
		case busy:
			return i
		case dot:
			if i-word >= 23 {
				return i
			}
		case dash:
			if i+1 >= len(text) || text[i+1] == '-' || i > s.start && isSpace(text[i-1]) && isAlnum(text[i+1]) {
				return i
			}
		case bracket:
			if i+1 >= len(text) || text[i+1] == opening[1] {
				return i
			}
		case newline:
			s.cookie = false
		}
		i++
	}
	return i
}

// mayToken is a quick look at the start of a word.
func (s *scanner) mayToken(i int) bool {
	if len(s.text)-i < 32 || s.begins(s.text[i], s.text[i+1], s.text[i+2]) {
		return true
	}
	return i > s.start && s.kind[s.text[i-1]] >= odd
}

// wordEnd is the end of the word at i.
func (s *scanner) wordEnd(i int) int {
	for i < len(s.text) && s.kind[s.text[i]] == inWord {
		i++
	}
	return i
}

// behind is where to go on if nothing begins at i.
func (s *scanner) behind(i int) int {
	if s.kind[s.text[i]] == inWord {
		return s.wordEnd(i)
	}
	return i + 1
}

// event looks at what begins at i.
func (s *scanner) event(i int) (Found, bool) {
	switch s.text[i] {
	case '-':
		if found, ok := s.pem(i); ok || s.wait() {
			return found, ok
		}
		return s.flag(i)
	case ':', '=':
		return s.setting(i)
	case '.':
		return s.split(i)
	case '[':
		return Found{}, false
	}
	return s.word(i)
}

// word looks for a token at the start of a word. A word may begin behind a
// character that was written in other letters: \n, %3D, or a colour.
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

// at is the byte at i, or 0 behind the end.
func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	s.short = true
	return 0
}

// has reports whether the text goes on with want.
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

// span is the end of the run of a class at i, of at most limit bytes. It
// remembers runs, so that one that is tried from many places is read once.
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

// before is what stands before i, as far as may be looked: n bytes.
func (s *scanner) before(i, n int) string { return s.text[max(s.start, i-min(n, context)):i] }

// atEnd reports whether nothing follows.
func (s *scanner) atEnd(i int) bool {
	if i < len(s.text) {
		return false
	}
	s.short = true
	return true
}
