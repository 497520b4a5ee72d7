package recall

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"
)

// Limits of the work of one search. They keep it fast for common words, see [Index.Search].
const (
	mostRead  = 400    // documents that are read and ranked
	mostWalk  = 40_000 // places of the rarest word that are walked
	mostCount = 2000   // places of a word that are counted; beyond that the number is estimated
)

// Hit is a document that was found.
type Hit struct {
	Doc
	Snippet string  // the part of the text around the match: one line, at most about 300 bytes
	Score   float64 // higher is better; comparable within one search only
}

// Search returns the documents that match the whole query, the best first. If none does it returns those with
// most of the words; if none has any, those with words that may have been meant: longer words, parts of words,
// and near spellings of words of four characters and more. A query without any word finds nothing.
//
// The rank is BM25, with a bonus for recent documents and for a person's messages. Equal texts come once, and
// the fourth hit of a session comes after those of others.
//
// Its trade-offs for time: of more than 400 documents that match, the 400 newest are ranked. If even the rarest
// word is in more than 40,000 documents, only the newest 40,000 of these are checked. The frequency of a word
// in more than 2,000 documents, or of the beginning of a word, is estimated.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	terms := parse(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	hits, err := x.search(ctx, q, terms)
	return hits, x.wrap(ctx, "search", cmp.Or(err, ctx.Err()))
}

// search is one search.
type search struct {
	*sql.Tx
	ctx  context.Context
	q    Query
	docs int64 // id of the newest
	from int64 // first and last document within the requested time
	to   int64

	rows  []scored
	found map[int64]bool // their ids
}

func (x *Index) search(ctx context.Context, q Query, terms []term) ([]Hit, error) {
	db, err := x.use(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only read
	s := search{Tx: tx, ctx: ctx, q: q, found: map[int64]bool{}}
	since, until := q.span()
	err = s.QueryRowContext(ctx, `SELECT coalesce(max(last), 0), coalesce(min(first) FILTER (WHERE until >= ?1 AND since < ?2), 0),
		coalesce(max(last) FILTER (WHERE until >= ?1 AND since < ?2), 0) FROM sessions`, since, until).Scan(&s.docs, &s.from, &s.to)
	if err != nil || s.to == 0 {
		return nil, err
	}
	weighted, err := s.weigh(terms)
	if err == nil {
		err = s.read(weighted, [][]term{terms}, mostRead)
	}
	if err == nil && len(s.rows) == 0 {
		weighted, err = s.loosen(terms)
	}
	if err == nil && len(s.rows) == 0 {
		weighted, err = s.guess()
	}
	if err != nil {
		return nil, err
	}
	return s.hits(weighted), nil
}

// span returns the requested time, in milliseconds.
func (q Query) span() (since, until int64) {
	since, until = math.MinInt64, math.MaxInt64
	if !q.Since.IsZero() {
		since = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		until = q.Until.UnixMilli()
	}
	return since, until
}

// match returns the query for FTS5: all terms of one of several lists, and the filters.
func (q Query) match(lists [][]term) string {
	var either []string
	for _, terms := range lists {
		var all []string
		for _, t := range terms {
			all = append(all, t.String())
		}
		either = append(either, "("+strings.Join(all, " AND ")+")")
	}
	out := "(" + strings.Join(either, " OR ") + ")"
	if q.Session != "" {
		out += " AND " + filter("session", q.Session)
	}
	if q.Root != "" {
		out += " AND " + filter("root", q.Root)
	}
	if len(q.Kinds) > 0 {
		var kinds []string
		for _, k := range q.Kinds {
			kinds = append(kinds, filter("kind", k))
		}
		out += " AND (" + strings.Join(kinds, " OR ") + ")"
	}
	if q.Not != "" {
		out = "(" + out + ") NOT " + filter("session", q.Not)
	}
	return out
}

// weight is a term and its rarity.
type weight struct {
	term
	docs int64   // documents with it, estimated
	idf  float64 // as BM25 defines it
}

// weigh determines how common terms are.
func (s *search) weigh(terms []term) ([]weight, error) {
	var out []weight
	for _, t := range terms {
		w := weight{term: t}
		var err error
		if w.docs, err = s.count(t); err != nil {
			return nil, err
		}
		n, all := float64(w.docs), float64(s.docs)
		w.idf = math.Log(1 + (all-n+0.5)/(n+0.5))
		out = append(out, w)
	}
	return out, nil
}

// count returns how many documents have a term. For large numbers it estimates from the distances of the newest
// ones; for the beginning of a word it guesses, as an exact number would cost as much as the search.
func (s *search) count(t term) (n int64, err error) {
	if t.prefix {
		return s.docs/50 + 1, nil
	}
	var oldest int64
	err = s.QueryRowContext(s.ctx, `SELECT count(*), coalesce(min(rowid), 0) FROM
		(SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)`, t.String(), mostCount).Scan(&n, &oldest)
	if n == mostCount {
		n = n * s.docs / (s.docs - oldest + 1)
	}
	return n, err
}

// read reads the newest documents that match all of one of several lists of terms, at most most of them that
// were not read before.
func (s *search) read(weighted []weight, lists [][]term, most int) error {
	from, rarest, terms := s.from, int64(math.MaxInt64), []term(nil)
	for _, w := range weighted {
		rarest, terms = min(rarest, w.docs), append(terms, w.term)
	}
	if rarest > mostWalk {
		from = max(from, s.docs-s.docs*mostWalk/rarest)
	}
	since, until := s.q.span()
	rows, err := s.QueryContext(s.ctx, `SELECT d.id, s.name, d.seq, d.time, d.root, d.kind, d.untrusted, d.text
		FROM words CROSS JOIN docs d ON d.id = words.rowid CROSS JOIN sessions s ON s.id = d.session
		WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? AND d.time >= ? AND d.time < ? ORDER BY words.rowid DESC`,
		s.q.match(lists), from, s.to, since, until)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for n := 0; n < most && rows.Next(); {
		var d scored
		var at int64
		if err := cmp.Or(rows.Scan(&d.id, &d.Session, &d.Seq, &at, &d.Root, &d.Kind, &d.Untrusted, &d.Text), s.ctx.Err()); err != nil {
			return err
		}
		if s.found[d.id] {
			continue
		}
		d.Time = time.UnixMilli(at).UTC()
		d.places, d.length = look(d.Text, terms)
		s.found[d.id] = true
		s.rows = append(s.rows, d)
		n++
	}
	return rows.Err()
}

// loosen searches for documents with most of the words: all but one, else two of the rarest, else one.
func (s *search) loosen(terms []term) ([]weight, error) {
	weighted, err := s.weigh(apart(terms))
	if err != nil {
		return nil, err
	}
	weighted = slices.DeleteFunc(weighted, func(w weight) bool { return w.docs == 0 })
	slices.SortStableFunc(weighted, func(a, b weight) int { return cmp.Compare(a.docs, b.docs) })
	for _, lists := range looser(weighted) {
		if err := s.read(weighted, lists, mostRead/2); err != nil || len(s.rows) >= s.limit() {
			return weighted, err
		}
	}
	for _, w := range weighted[:min(len(weighted), 4)] {
		if err := s.read(weighted, [][]term{{w.term}}, mostRead/4); err != nil || len(s.rows) >= mostRead {
			return weighted, err
		}
	}
	return weighted, nil
}

// looser lists the alternatives to search for in turn. The words are sorted, the rarest first.
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
