package corpus

import (
	"cmp"
	"slices"
)

// Coverage is how much of a corpus was read since the session was opened.
type Coverage struct {
	Read     int64    `json:"read"`             // bytes shown to the agent or the small model
	Bytes    int64    `json:"bytes"`            // of the corpus
	Searches int      `json:"searches"`         // patterns searched for
	Unread   []Unread `json:"unread,omitempty"` // sources not read completely, those with the most unread bytes first
	More     int      `json:"more,omitempty"`   // further such sources
	// By is the number of bytes by means, for answers of programs: "asked" of a model, "printed" for the agent, and
	// "copied" into the answer.
	By map[string]int64 `json:"by,omitempty"`
}

// Unread is the unread part of a source.
type Unread struct {
	Source string `json:"source"`
	Bytes  int64  `json:"bytes"`
}

// span is a range of bytes.
type span struct{ from, to int64 }

// seen is the part of a corpus that was read: ranges by source, and patterns.
type seen struct {
	spans    map[int][]span
	searches map[string]bool
}

// sees records read ranges, or a pattern that was searched for.
func (r *reading) sees(note func(*seen)) {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	s := r.set.seen[r.name]
	if s == nil {
		if r.set.seen == nil {
			r.set.seen = map[string]*seen{}
		}
		s = &seen{spans: map[int][]span{}, searches: map[string]bool{}}
		r.set.seen[r.name] = s
	}
	note(s)
}

func (s *seen) read(p piece) { s.spans[p.Source] = append(s.spans[p.Source], span{p.From, p.To}) }

// lineEnd is the largest gap in bytes that counts as the end of a line.
const lineEnd = 2

// length returns how many of a source's bytes the ranges cover, each counted once. Gaps that are the ends of
// lines count as read.
func length(spans []span, all int64) (n int64) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	end := int64(0)
	for _, s := range append(spans, span{all, all}) {
		if s.from-end <= lineEnd && len(spans) > 0 {
			n += max(s.from-end, 0)
		}
		if s.to > end {
			n += s.to - max(s.from, end)
			end = s.to
		}
	}
	return n
}

// coverage returns how much of the corpus was read.
func (r *reading) coverage() (c Coverage) {
	r.sees(func(s *seen) {
		c.Searches = len(s.searches)
		for i, src := range r.Sources {
			n := length(s.spans[i], src.Bytes)
			c.Read, c.Bytes = c.Read+n, c.Bytes+src.Bytes
			if n < src.Bytes {
				c.Unread = append(c.Unread, Unread{valid(src.Name), src.Bytes - n})
			}
		}
	})
	c.listed()
	return c
}

// listed keeps the sources with the most unread bytes.
func (c *Coverage) listed() {
	slices.SortStableFunc(c.Unread, func(a, b Unread) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if c.More = len(c.Unread) - mostListed; c.More > 0 {
		c.Unread = c.Unread[:mostListed]
	}
	c.More = max(c.More, 0)
}
