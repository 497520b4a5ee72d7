package secret

import (
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// search finds forms of known values in a text in order: the first, the longest at its position, even with gaps
// inside. Gaps are determined independently of the text before at, so that a text in pieces is searched like its
// whole.
type search struct {
	x     *index
	text  string
	final bool // nothing follows the text
	at    int  // the text is decided up to here

	plain  hit  // the next form without gaps, if it is not before at
	gaps   gaps // the next gaps, if they are not before at
	passed int  // after the last skipped quote before them
}

// hit is the position of a form. Without a form, more text is needed from that position.
type hit struct {
	form     form
	from, to int
	spelled  bool // with gaps inside
}

// gaps are adjacent gaps. If they are the last, later text may belong to them.
type gaps struct {
	from, to int
	last     bool
}

func (x *index) search(text string, final bool) *search {
	return &search{x: x, text: text, final: final, plain: hit{from: -1}, gaps: gaps{from: -1}}
}

// next returns the next hit; false means none before at.
func (s *search) next() (hit, bool) {
	if s.plain.from < s.at {
		f, n := s.x.next(s.text[s.at:], s.final)
		s.plain = hit{form: f, from: s.at + n, to: s.at + n + len(f.text)}
	}
	h := s.plain
	if other := s.spelled(h.from); other.wins(h) {
		h = other
	}
	if h.form.text == "" {
		s.at = s.outside(h.from)
		return hit{}, false
	}
	s.at = h.to
	return h, true
}

// wins reports whether a hit takes precedence over another.
func (h hit) wins(other hit) bool {
	switch {
	case h.from != other.from:
		return h.from < other.from
	case h.form.text == "" || other.form.text == "":
		return h.form.text == ""
	}
	return h.to > other.to
}

// spelled finds the next hit with gaps inside that begins at or before limit.
func (s *search) spelled(limit int) hit {
	for low := s.at; low <= limit; {
		var g gaps
		if g, low = s.nextGaps(low); low > limit {
			break
		}
		if !s.joins(low, g) {
			if g.last || g.from == len(s.text) {
				return hit{from: g.to}
			}
			low = g.to
			continue
		}
		c := s.chain(low, g)
		if c.at[0] > limit {
			break
		}
		h := c.find(s.x)
		if h.form.text != "" || c.last {
			return h
		}
		low = h.from
	}
	return hit{from: len(s.text)}
}

// nextGaps finds the first gaps at or after low. It skips quotes after which no form can continue; low is then
// after the last of them.
func (s *search) nextGaps(low int) (gaps, int) {
	if s.gaps.from >= low {
		return s.gaps, max(low, s.passed)
	}
	all, may, pairs := s.text, &s.x.gapped, &s.x.pairs
	i := low
	for ; i < len(all); i++ {
		for i+3 < len(all) && !may[all[i]] && !may[all[i+1]] && !may[all[i+2]] && !may[all[i+3]] {
			i += 4
		}
		if i == len(all) || !may[all[i]] {
			continue
		}
		c := all[i]
		if (c == '"' || c == '\'') && i+1 < len(all) && !may[all[i+1]] && (i == low || !pairs.has(all[i-1], all[i+1])) {
			low = i + 1
			continue
		}
		if c >= utf8.RuneSelf && !text.MayHide(all[i:]) {
			continue
		}
		if s.gaps, s.passed = s.gapsAt(i), low; s.gaps.to > i || s.gaps.last {
			return s.gaps, low
		}
	}
	s.gaps, s.passed = gaps{from: len(all), to: len(all)}, low
	return s.gaps, low
}

// gapsAt reads the gaps at i, up to a limit.
func (s *search) gapsAt(i int) gaps {
	g := gaps{from: i, to: i}
	for g.to < len(s.text) && g.to-g.from <= longestRun {
		n, cut := gap(s.text[g.to:])
		if g.last = cut && !s.final; n == 0 || g.last {
			return g
		}
		g.to += n
	}
	g.last = g.to == len(s.text) && !s.final
	return g
}

// joins reports whether a form may continue after gaps.
func (s *search) joins(low int, g gaps) bool {
	if g.from == low || g.to-g.from > longestRun {
		return false
	}
	return g.last || g.to < len(s.text) && s.x.pairs.has(s.text[g.from-1], s.text[g.to])
}

// outside returns i, or the beginning of the gap around i.
func (s *search) outside(i int) int {
	for j := s.gaps.from; j >= s.at && j < i; {
		n, cut := gap(s.text[j:])
		if j+n > i || cut && !s.final {
			return j
		}
		j += max(n, 1)
	}
	return i
}

// chain is part of a text without its gaps, in which every two adjacent bytes are adjacent in some form.
type chain struct {
	bytes []byte
	at    []int // their positions in the text
	to    int   // end of the chain in the text
	more  bool  // it continues there
	last  bool  // it may continue after the text
}

// chain collects the text around gaps, not before low, that a form with these gaps inside could consist of.
func (s *search) chain(low int, g gaps) chain {
	from := g.from - 1
	for from > low && g.from-from < s.x.longest && s.x.pairs.has(s.text[from-1], s.text[from]) {
		from--
	}
	c := chain{to: g.to, last: g.last}
	for i := from; i < g.from; i++ {
		c.add(s.text[i], i)
	}
	for !c.last && c.to < len(s.text) {
		if s.x.gapped[s.text[c.to]] {
			g := s.gapsAt(c.to)
			if g.to-g.from > longestRun {
				return c
			}
			if c.to, c.last = g.to, g.last; c.last || c.to == len(s.text) {
				return c
			}
		}
		if !s.x.pairs.has(c.bytes[len(c.bytes)-1], s.text[c.to]) {
			return c
		}
		if c.more = len(c.bytes) == 2*s.x.longest; c.more {
			return c
		}
		c.add(s.text[c.to], c.to)
		c.to++
	}
	c.last = c.last || !s.final
	return c
}

func (c *chain) add(b byte, at int) { c.bytes, c.at = append(c.bytes, b), append(c.at, at) }

// find finds the first hit in a chain. Without one, it returns the position to continue from.
func (c *chain) find(x *index) hit {
	f, n := x.next(string(c.bytes), !c.last && !c.more)
	switch {
	case f.text != "":
		return hit{form: f, from: c.at[n], to: c.at[n+len(f.text)-1] + 1, spelled: true}
	case n < len(c.at):
		return hit{from: c.at[n]}
	}
	return hit{from: c.to}
}

// pairs are the adjacent bytes in some form.
type pairs [1 << 16 / 64]uint64

func (p *pairs) has(a, b byte) bool { return p[uint16(a)<<2|uint16(b)>>6]&(1<<(b&63)) != 0 }

func (p *pairs) add(text string) {
	for i := 1; i < len(text); i++ {
		p[uint16(text[i-1])<<2|uint16(text[i])>>6] |= 1 << (text[i] & 63)
	}
}
