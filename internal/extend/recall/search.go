package recall

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
)

// Bounds of the work of one search. They are what keeps it fast where the words
// are common, see [Index.Search].
const (
	mostRead = 400    // documents that are read and ranked
	mostSeen = 1000   // documents that are looked at for words in a row
	mostWalk = 40_000 // places of the rarest word that are walked
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
// 40,000), only the newest 40,000 of these are looked at. How common the beginning of
// a word is is a guess.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	terms := parse(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	v, err := x.view()
	if err != nil {
		return nil, x.wrap(ctx, "search", err)
	}
	defer v.close()
	s := search{ctx: ctx, view: v, q: q, found: map[uint32]bool{}, words: map[string][]entry{}}
	hits, err := s.run(terms)
	return hits, x.wrap(ctx, "search", err)
}

// search is one search.
type search struct {
	*view
	ctx  context.Context
	q    Query
	from uint32 // first and last document within the time that is asked for
	to   uint32

	rows  []scored
	found map[uint32]bool    // their ids
	words map[string][]entry // that were looked up, by segment
}

func (s *search) run(terms []term) ([]Hit, error) {
	if some, err := s.limits(); err != nil || !some {
		return nil, err
	}
	weighted, err := s.weigh(terms)
	if err != nil {
		return nil, err
	}
	if err := s.read(weighted, [][]term{terms}, mostRead, true); err != nil {
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

// limits works out the time. It reports whether anything can be found.
func (s *search) limits() (bool, error) {
	for i, span := range s.spans {
		if s.q.within(span) {
			if s.to == 0 {
				s.from = uint32(i) << blockBits
			}
			s.to = min(uint32(i+1)<<blockBits-1, s.docs)
		}
	}
	return s.to > 0, s.ctx.Err()
}

// within reports whether some of a span is within the time that is asked for.
func (q Query) within(s span) bool {
	return (q.Since.IsZero() || s.until >= q.Since.UnixMilli()) && (q.Until.IsZero() || s.since < q.Until.UnixMilli())
}

// filtered is those of the documents of a set that the filters let through, by time only
// roughly. Nothing is of a name that the index does not know, and so has the number 0.
func (s *search) filtered(these set) (set, error) {
	all := every{these}
	var words [][]string
	if s.q.Session != "" {
		words = append(words, []string{ofSession(s.ids[s.q.Session])})
	}
	if s.q.Root != "" {
		words = append(words, []string{ofRoot(s.ids[s.q.Root])})
	}
	var list []string
	for _, k := range s.q.Kinds {
		list = append(list, ofKind(slices.Index(kinds(), k))) // nothing is of kind -1
	}
	if list != nil {
		words = append(words, list)
	}
	for _, list := range words {
		var sets []set
		for _, w := range list {
			h, err := s.holders(w)
			if err != nil {
				return nil, err
			}
			sets = append(sets, h)
		}
		all = append(all, either(sets))
	}
	if s.q.Not == "" {
		return all, nil
	}
	not, err := s.holders(ofSession(s.ids[s.q.Not]))
	return without{all, not}, err
}

// lookup finds a word in all segments.
func (s *search) lookup(word string) ([]entry, error) {
	if known, ok := s.words[word]; ok {
		return known, nil
	}
	list := []entry{}
	for _, seg := range s.segments {
		e, ok, err := seg.find(s.f, word)
		if err := cmp.Or(err, s.ctx.Err()); err != nil {
			return nil, err
		}
		if ok {
			list = append(list, e)
		}
	}
	s.words[word] = list
	return list, nil
}

// holders is the documents that hold a word.
func (s *search) holders(word string) (set, error) {
	list, err := s.lookup(word)
	return &holders{f: s.f, rest: list}, err
}

// beginners is the documents that hold a word with this beginning.
func (s *search) beginners(word string) (set, error) {
	var ids []uint32
	for _, seg := range s.segments {
		for e, err := range seg.entries(s.f, word) {
			if err := cmp.Or(err, s.ctx.Err()); err != nil {
				return nil, err
			}
			if !bytes.HasPrefix(e.word, []byte(word)) {
				break
			}
			if ids, err = e.all(s.f, ids); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(ids)
	return &list{ids: slices.Compact(ids)}, nil
}

// holding is the documents that hold all of one of several lists of terms.
func (s *search) holding(lists [][]term) (set, error) {
	var sets []set
	for _, terms := range lists {
		var all every
		for _, w := range wanted(terms) {
			read := s.holders
			if w.prefix {
				read = s.beginners
			}
			one, err := read(w.word)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		sets = append(sets, all)
	}
	return either(sets), nil
}

// weight is a term and how rare it is.
type weight struct {
	term
	docs int64   // that hold it, estimated
	idf  float64 // as BM25 defines it
}

// weigh tells how common terms are: of several words the rarest one counts.
func (s *search) weigh(terms []term) ([]weight, error) {
	var out []weight
	for _, t := range terms {
		w := weight{term: t, docs: math.MaxInt64}
		for _, word := range wanted([]term{t}) {
			n, err := s.count(word)
			if err != nil {
				return nil, err
			}
			w.docs = min(w.docs, n)
		}
		n, all := float64(w.docs), float64(s.docs)
		w.idf = math.Log(1 + (all-n+0.5)/(n+0.5))
		out = append(out, w)
	}
	return out, nil
}

// count tells how many documents hold a word. Of the beginning of a word it is a guess, as
// to know would cost as much as the search.
func (s *search) count(w want) (n int64, err error) {
	if w.prefix {
		return int64(s.docs)/50 + 1, nil
	}
	list, err := s.lookup(w.word)
	for _, e := range list {
		n += int64(e.docs)
	}
	return n, err
}

// read reads the newest documents that hold all of one of several lists of terms, at most
// most of them. Those that do not hold all terms in full, which the index can't tell of
// words in a row, are left out if full.
func (s *search) read(weighted []weight, lists [][]term, most int, full bool) error {
	from := int64(s.from)
	rarest := weighted[0].docs
	for _, w := range weighted {
		rarest = min(rarest, w.docs)
	}
	if rarest > mostWalk {
		from = max(from, int64(s.docs)-int64(s.docs)*mostWalk/rarest)
	}
	match, err := s.holding(lists)
	if err == nil {
		match, err = s.filtered(match)
	}
	if err != nil {
		return err
	}
	terms, n := termsOf(weighted), 0
	for id, seen := s.to+1, 0; n < most && seen < mostSeen; {
		if id, err = match.at(id - 1); err != nil || id == 0 || int64(id) < from {
			return err
		}
		took, fits, err := s.take(id, terms, full)
		if err != nil {
			return err
		}
		if fits {
			seen++
		}
		if took {
			n++
		}
	}
	return nil
}

// take reads a document. Fits tells whether it is within the time, took whether it was taken
// as one that was not there before.
func (s *search) take(id uint32, terms []term, full bool) (took, fits bool, err error) {
	d, err := s.row(id)
	at := d.time.UnixMilli()
	if err = cmp.Or(err, s.ctx.Err()); err != nil || !s.q.within(span{at, at}) {
		return false, false, err
	}
	if s.found[id] {
		return false, true, nil
	}
	places, length := look(d.text, terms)
	if full && !holdsAll(places, terms) {
		return false, true, nil
	}
	s.found[id] = true
	s.rows = append(s.rows, scored{row: d, places: places, length: length})
	return true, true, nil
}

func termsOf(weighted []weight) []term {
	terms := make([]term, len(weighted))
	for i, w := range weighted {
		terms[i] = w.term
	}
	return terms
}

// loosen looks for documents that hold most of the words: all but one, else two
// of the rarest, else one.
func (s *search) loosen(terms []term) ([]weight, error) {
	weighted, err := s.weigh(apart(terms))
	if err != nil {
		return nil, err
	}
	weighted = slices.DeleteFunc(weighted, func(w weight) bool { return w.docs == 0 })
	slices.SortStableFunc(weighted, func(a, b weight) int { return cmp.Compare(a.docs, b.docs) })
	for _, lists := range looser(weighted) {
		if err := s.read(weighted, lists, mostRead/2, false); err != nil || len(s.rows) >= s.limit() {
			return weighted, err
		}
	}
	for _, w := range weighted[:min(len(weighted), 4)] {
		if err := s.read(weighted, [][]term{{w.term}}, mostRead/4, false); err != nil || len(s.rows) >= mostRead {
			return weighted, err
		}
	}
	return weighted, nil
}

// looser lists what to look for in turn. The words are sorted, the rarest first.
func looser(list []weight) [][][]term {
	var out [][][]term
	if n := len(list); n > 1 {
		var sets [][]term
		for skip := range list {
			var kept []term
			for i, w := range list {
				if i != skip || n == 2 {
					kept = append(kept, w.term)
				}
			}
			sets = append(sets, kept)
		}
		out = append(out, sets)
	}
	if rare := list[:min(len(list), 5)]; len(rare) > 3 {
		var sets [][]term
		for i, a := range rare {
			for _, b := range rare[:i] {
				sets = append(sets, []term{a.term, b.term})
			}
		}
		out = append(out, sets)
	}
	return out
}

func (s *search) limit() int {
	if s.q.Limit <= 0 {
		return limit
	}
	return min(s.q.Limit, maxLimit)
}
