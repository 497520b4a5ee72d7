package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	snippetSize = 300 // bytes
	perSession  = 3   // hits of a session before those of others
	k1, b       = 1.2, 0.5
	recency     = 0.2            // bonus of the newest over the oldest
	fades       = 30 * 24 * 1000 // hours after which half of that is gone, in thousandths
)

// place is the place of a term.
type place struct{ from, to, term int }

// look finds terms in a text. It returns their places and the number of words in the text.
func look(text string, terms []term) (places []place, length int) {
	longest := 1
	for _, t := range terms {
		longest = max(longest, len(t.words))
	}
	var last []token // words of the text up to here, as many as needed
	for w := range each(text) {
		if !w.piece {
			length++
			if len(last) == longest {
				last = last[:copy(last, last[1:])]
			}
			last = append(last, w)
		}
		for i, t := range terms {
			if from, ok := t.ends(last, w); ok {
				places = append(places, place{from, w.to, i})
			}
		}
	}
	return places, length
}

// ends reports whether the term ends with the word w, and where it begins.
func (t term) ends(last []token, w token) (from int, ok bool) {
	n := len(t.words)
	if w.piece && n > 1 || len(last) < n || !t.is(n-1, w.text) {
		return 0, false
	}
	for i := range n - 1 {
		if last[len(last)-n+i].text != t.words[i] {
			return 0, false
		}
	}
	if n > 1 {
		return last[len(last)-n].from, true
	}
	return w.from, true
}

func (t term) is(i int, word string) bool {
	if t.prefix && i == len(t.words)-1 {
		return strings.HasPrefix(word, t.words[i])
	}
	return word == t.words[i]
}

// scored is a document with the data for its rank.
type scored struct {
	Doc
	id     int64
	score  float64
	places []place
	length int
}

// hits ranks the documents that were read.
func (s *search) hits(weighted []weight) []Hit {
	best := diverse(s.ranked(weighted), s.q.Session != "")
	var out []Hit
	for _, d := range best[:min(len(best), s.limit())] {
		out = append(out, Hit{d.Doc, snippet(d.Text, d.places), d.score})
	}
	return out
}

func (s *search) ranked(weighted []weight) []scored {
	total, newest := 0, time.Time{}
	for _, d := range s.rows {
		total += d.length
		if d.Time.After(newest) {
			newest = d.Time
		}
	}
	for i := range s.rows {
		s.rows[i].score = s.rows[i].worth(weighted, float64(total)/float64(len(s.rows)), newest)
	}
	slices.SortFunc(s.rows, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
	return s.rows
}

// worth returns BM25, slightly adjusted by kind and age.
func (d scored) worth(weighted []weight, average float64, newest time.Time) float64 {
	counts := make([]float64, len(weighted))
	for _, p := range d.places {
		counts[p.term]++
	}
	sum := 0.0
	for i, n := range counts {
		sum += weighted[i].idf * n * (k1 + 1) / (n + k1*(1-b+b*float64(d.length)/max(average, 1)))
	}
	age := newest.Sub(d.Time).Hours()
	return sum * favour(d.Kind) * (1 + recency*math.Exp2(-age/(fades/1000)))
}

// favour returns the weight of a kind: people's messages say most about the purpose of a session.
func favour(kind string) float64 {
	switch kind {
	case Title:
		return 1.3
	case Said:
		return 1.2
	case Note:
		return 1.1
	case Call:
		return 0.9
	case Result:
		return 0.8
	}
	return 1
}

// diverse drops repeated texts, and moves surplus hits of a session after the others.
func diverse(list []scored, one bool) []scored {
	seen, of := map[string]bool{}, map[string]int{}
	var first, later []scored
	for _, d := range list {
		if seen[d.Text] {
			continue
		}
		seen[d.Text] = true
		if of[d.Session]++; of[d.Session] > perSession && !one {
			later = append(later, d)
			continue
		}
		first = append(first, d)
	}
	return append(first, later...)
}

// snippet returns the part of a text with the most different terms.
func snippet(s string, places []place) string {
	best, from := -1, 0
	for i, p := range places {
		terms := map[int]bool{}
		for _, q := range places[i:] {
			if q.to > p.from+snippetSize*2/3 {
				break
			}
			terms[q.term] = true
		}
		if len(terms) > best {
			best, from = len(terms), p.from
		}
	}
	from = max(0, from-snippetSize/6)
	if len(s)-from < snippetSize {
		from = max(0, len(s)-snippetSize)
	}
	from = len(s) - len(text.Tail(s, len(s)-from))
	part := text.Head(s[from:], snippetSize)
	out := text.Flat(part)
	if from > 0 {
		out = "… " + out
	}
	if from+len(part) < len(s) {
		out += " …"
	}
	return out
}
