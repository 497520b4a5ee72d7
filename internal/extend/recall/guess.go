package recall

import (
	"cmp"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Bounds of guessing.
const (
	mostWords = 300_000 // words of the index that are checked
	mostLike  = 5       // similar words for one word of a query
	minGuess  = 4       // characters: shorter words are similar to too many
	minTwoOff = 8       // minimum length of a word that may have two differences
	minPart   = 4       // characters of a meaningful part
)

// like is a word of the index that may have been meant.
type like struct {
	word string
	far  int // the less, the closer
}

// guess searches for words that may have been meant, if no document has any word of the query: longer words,
// words that contain them or are contained in them, and words with a similar spelling.
func (s *search) guess() ([]weight, error) {
	asked := s.asked()
	if len(asked) == 0 {
		return nil, nil
	}
	likes, err := s.alike(asked)
	if err != nil {
		return nil, err
	}
	var terms []term
	for _, list := range likes {
		slices.SortStableFunc(list, func(a, b like) int {
			return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.word, b.word))
		})
		for _, l := range list[:min(len(list), mostLike)] {
			terms = appendTerm(terms, term{words: []string{l.word}})
		}
	}
	if len(terms) == 0 {
		return nil, nil
	}
	weighted, err := s.weigh(terms)
	if err != nil {
		return nil, err
	}
	var lists [][]term
	for _, t := range terms {
		lists = append(lists, []term{t})
	}
	return weighted, s.read(weighted, lists, mostRead)
}

// asked lists the words of the query to guess for, those in camelCase with their parts.
func (s *search) asked() (out []string) {
	read := 0
	for w := range each(strings.ToValidUTF8(text.Head(s.q.Text, maxQuery), " ")) {
		if !w.piece {
			read++
		}
		r, _ := utf8.DecodeRuneInString(w.text)
		if read > maxWords {
			break
		}
		if utf8.RuneCountInString(w.text) >= minGuess && !dense(r) && !little(w.text) && !slices.Contains(out, w.text) {
			out = append(out, w.text)
		}
	}
	return out
}

// alike lists the words of the index that are similar to each of the query's words. It checks the newest ones.
func (s *search) alike(asked []string) ([][]like, error) {
	rows, err := s.QueryContext(s.ctx, "SELECT word FROM vocabulary ORDER BY rowid DESC LIMIT ?", mostWords)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := make([][]like, len(asked))
	var word sql.RawBytes
	for rows.Next() {
		if err := cmp.Or(rows.Scan(&word), s.ctx.Err()); err != nil {
			return nil, err
		}
		for i, want := range asked {
			if far, ok := farness(want, string(word)); ok {
				out[i] = append(out[i], like{string(word), far})
			}
		}
	}
	return out, rows.Err()
}

// farness returns how far a word is from a word of the query, and whether it is similar at all.
func farness(want, word string) (far int, ok bool) {
	longer := len(word) - len(want)
	switch {
	case len(word) < minPart:
		return 0, false
	case strings.HasPrefix(word, want):
		return longer, true
	case want[0] == word[0] && max(longer, -longer) <= 2:
		most := 1
		if len(want) >= minTwoOff {
			most = 2
		}
		if d := text.Distance(want, word); d <= most {
			return 100 * d, true
		}
	}
	if strings.Contains(word, want) || strings.Contains(want, word) {
		return 1000 + max(longer, -longer), true
	}
	return 0, false
}
