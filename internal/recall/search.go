package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// Bounds of the work of one search. They are what keeps it fast where the words
// are common, see [Index.Search].
const (
	mostRead = 400    // documents that are read and ranked
	mostSeen = 1000   // documents that are looked at for words in a row
	mostWalk = 40_000 // places of the rarest word that are walked
	sampled  = 1000   // places of a word from which it is told how common it is
)

// Hit is a document that was found.
type Hit struct {
	Doc
	Snippet string  // the part of the text around what was found: one line, at most about 300 bytes
	Score   float64 // higher is better; comparable within one search only
}

// Search returns the documents that hold all that is looked for, the best first.
// If none does it returns those that hold most of the words; if none holds any, those that
// hold what may have been meant: longer words, parts of words, and near spellings of words
// of four characters and more. A query without any word finds nothing.
//
// The rank is BM25, a little more for what is recent and for what a person said.
// Equal texts come once, and the fourth hit of a session comes after those of
// others.
//
// What it trades for time: of more than 400 documents that match, the 400 newest
// are ranked. Where even the rarest word stands in many documents (more than
// 40,000), only the newest 40,000 of these are looked at. How common a word is is
// estimated from its newest 1,000 documents.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	terms := parse(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	s := search{ctx: ctx, x: x, q: q, found: map[int64]bool{}}
	hits, err := s.run(terms)
	return hits, x.wrap(ctx, "search", err)
}

// search is one search.
type search struct {
	ctx   context.Context
	x     *Index
	q     Query
	only  string // what follows a match because of the filters
	from  int64  // first and last document within the time that is asked for
	to    int64
	total int64 // documents there are

	rows  []scored
	found map[int64]bool // their ids
}

func (s *search) run(terms []term) ([]Hit, error) {
	if some, err := s.limits(); err != nil || !some {
		return nil, err
	}
	weighted, err := s.weigh(terms)
	if err != nil {
		return nil, err
	}
	if err := s.read(weighted, match(terms), mostRead, true); err != nil {
		return nil, err
	}
	if len(s.rows) == 0 {
		if weighted, err = s.loosen(terms); err != nil {
			return nil, err
		}
	}
	if len(s.rows) == 0 {
		if weighted, err = s.guess(); err != nil {
			return nil, err
		}
	}
	return s.hits(weighted)
}

// limits works out the filters. It reports whether anything can be found.
func (s *search) limits() (bool, error) {
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !s.q.Since.IsZero() {
		since = s.q.Since.UnixMilli()
	}
	if !s.q.Until.IsZero() {
		until = s.q.Until.UnixMilli() - 1
	}
	err := s.x.db.QueryRowContext(s.ctx, `SELECT ifnull(min(block), 0) << ?1, ((ifnull(max(block), 0) + 1) << ?1) - 1,
		(SELECT ifnull(max(id), 0) FROM docs) FROM spans WHERE until >= ?2 AND since <= ?3`, blockBits, since, until).Scan(&s.from, &s.to, &s.total)
	if err != nil || s.total == 0 {
		return false, err
	}
	s.to = min(s.to, s.total)
	var b strings.Builder
	for _, name := range []struct{ joint, name, mark string }{{" AND ", s.q.Session, "s"}, {" AND ", s.q.Root, "r"}, {" NOT ", s.q.Not, "s"}} {
		if name.name == "" {
			continue
		}
		var id int64
		err := s.x.db.QueryRowContext(s.ctx, "SELECT ifnull(max(id), 0) FROM names WHERE name = ?", name.name).Scan(&id)
		if err != nil {
			return false, err
		}
		fmt.Fprintf(&b, `%s"%s%s%d"`, name.joint, meta, name.mark, id) // no document has 0
	}
	s.only = s.kinds() + b.String()
	return true, nil
}

// kinds is the filter by kind. A kind that is not known finds nothing.
func (s *search) kinds() string {
	var list []string
	for _, k := range s.q.Kinds {
		n := slices.Index(kinds(), k)
		if n < 0 {
			n = len(kinds())
		}
		list = append(list, `"`+ofKind(n)+`"`)
	}
	if list == nil {
		return ""
	}
	return " AND (" + strings.Join(list, " OR ") + ")"
}

// weight is a term and how rare it is.
type weight struct {
	term
	docs int64   // that hold it, estimated
	idf  float64 // as BM25 defines it
}

// weigh estimates how common terms are: of several words the rarest one counts.
func (s *search) weigh(terms []term) ([]weight, error) {
	var out []weight
	for _, t := range terms {
		w := weight{term: t, docs: math.MaxInt64}
		singles := []term{t}
		if !t.joined {
			singles = apart(singles)
		}
		for _, single := range singles {
			n, err := s.count(single)
			if err != nil {
				return nil, err
			}
			w.docs = min(w.docs, n)
		}
		n, all := float64(w.docs), float64(s.total)
		w.idf = math.Log(1 + (all-n+0.5)/(n+0.5))
		out = append(out, w)
	}
	return out, nil
}

// count estimates how many documents hold a word. It looks at the newest of them
// only. Of the beginning of a word it is a guess, as to know would cost as much as
// the search.
func (s *search) count(t term) (int64, error) {
	if t.prefix {
		return s.total/50 + 1, nil
	}
	var n, first int64
	err := s.x.db.QueryRowContext(s.ctx, `SELECT count(*), ifnull(min(rowid), 0) FROM
		(SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)`, match([]term{t}), sampled).Scan(&n, &first)
	if n == sampled {
		n = n * s.total / (s.total - first + 1)
	}
	return min(n, s.total), err
}

// read reads the newest documents that match, at most most of them. Those that do
// not hold all terms in full, which the index can't tell of words in a row, are
// left out if full.
func (s *search) read(weighted []weight, expr string, most int, full bool) error {
	from := s.from
	if rarest := slices.MinFunc(weighted, func(a, b weight) int { return cmp.Compare(a.docs, b.docs) }).docs; rarest > mostWalk {
		from = max(from, s.total-s.total*mostWalk/rarest)
	}
	rows, err := s.x.db.QueryContext(s.ctx, "SELECT "+columns+` FROM words CROSS JOIN docs d ON d.id = words.rowid
		WHERE words MATCH ? AND words.rowid BETWEEN ? AND ?`+s.within()+" ORDER BY words.rowid DESC LIMIT ?", "("+expr+")"+s.only, from, s.to, mostSeen)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	terms := termsOf(weighted)
	for n := 0; n < most && rows.Next(); {
		d, err := scan(rows)
		if err != nil {
			return err
		}
		if s.found[d.id] {
			continue
		}
		places, length := look(d.text, terms)
		if full && !holdsAll(places, terms) {
			continue
		}
		s.found[d.id] = true
		s.rows = append(s.rows, scored{row: d, places: places, length: length})
		n++
	}
	return rows.Err()
}

func termsOf(weighted []weight) []term {
	terms := make([]term, len(weighted))
	for i, w := range weighted {
		terms[i] = w.term
	}
	return terms
}

// within bounds the time exactly; from and to do so roughly.
func (s *search) within() string {
	text := ""
	if !s.q.Since.IsZero() {
		text += fmt.Sprintf(" AND d.time >= %d", s.q.Since.UnixMilli())
	}
	if !s.q.Until.IsZero() {
		text += fmt.Sprintf(" AND d.time < %d", s.q.Until.UnixMilli())
	}
	return text
}

// loosen looks for documents that hold most of the words: all but one, else two
// of the rarest, else one.
func (s *search) loosen(terms []term) ([]weight, error) {
	weighted, err := s.weigh(apart(terms))
	if err != nil {
		return nil, err
	}
	weighted = slices.DeleteFunc(weighted, func(w weight) bool { return w.docs == 0 })
	sort.SliceStable(weighted, func(i, j int) bool { return weighted[i].docs < weighted[j].docs })
	for _, expr := range looser(weighted) {
		if err := s.read(weighted, expr, mostRead/2, false); err != nil || len(s.rows) >= s.limit() {
			return weighted, err
		}
	}
	for _, w := range weighted[:min(len(weighted), 4)] {
		if err := s.read(weighted, match([]term{w.term}), mostRead/4, false); err != nil || len(s.rows) >= mostRead {
			return weighted, err
		}
	}
	return weighted, nil
}

// looser lists what to look for in turn. The words are sorted, the rarest first.
func looser(list []weight) []string {
	var out []string
	if n := len(list); n > 1 {
		var sets []string
		for skip := range list {
			var kept []term
			for i, w := range list {
				if i != skip || n == 2 {
					kept = append(kept, w.term)
				}
			}
			sets = append(sets, "("+match(kept)+")")
		}
		out = append(out, strings.Join(sets, " OR "))
	}
	if rare := list[:min(len(list), 5)]; len(rare) > 3 {
		var sets []string
		for i, a := range rare {
			for _, b := range rare[:i] {
				sets = append(sets, "("+match([]term{a.term, b.term})+")")
			}
		}
		out = append(out, strings.Join(sets, " OR "))
	}
	return out
}

func (s *search) limit() int {
	if s.q.Limit <= 0 {
		return limit
	}
	return min(s.q.Limit, maxLimit)
}
