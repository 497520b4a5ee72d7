package recall

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// Bounds of guessing.
const (
	mostWords = 300_000 // of the index that are looked at
	mostLike  = 5       // that stand for one word of a query
	minGuess  = 4       // characters: what is shorter is like too many
	minTwoOff = 8       // characters from which on a word may be two off
	minPart   = 4       // characters of a part that says something
)

// like is a word of the index that may be what was meant.
type like struct {
	word string
	far  int // the less, the closer
	docs int64
}

// guess looks for what the words of a query may have meant, where no document holds any of
// them: words that go on, words of which they are a part or that are parts of them, and
// those that are written nearly so.
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
			return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(b.docs, a.docs), cmp.Compare(a.word, b.word))
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
	return weighted, s.read(weighted, lists, mostRead, false)
}

// asked lists the words of the query that can be guessed at, those in camelCase with
// their parts.
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

// alike lists the words of the index that are like each of the words that were asked for.
// Those of the newest documents are looked at first.
func (s *search) alike(asked []string) ([][]like, error) {
	found := make([]map[string]like, len(asked))
	for i := range found {
		found[i] = map[string]like{}
	}
	left := mostWords
	for _, seg := range slices.Backward(s.segments) {
		for e, err := range seg.entries(s.f, "") {
			if err := cmp.Or(err, s.ctx.Err()); err != nil {
				return nil, err
			}
			if left--; left < 0 {
				break
			}
			if !bytes.HasPrefix(e.word, []byte(meta)) {
				compare(asked, e, found)
			}
		}
	}
	out := make([][]like, len(asked))
	for i := range found {
		out[i] = slices.Collect(maps.Values(found[i]))
	}
	return out, nil
}

// compare notes a word of the index where it is like a word that was asked for.
func compare(asked []string, e entry, found []map[string]like) {
	for i, want := range asked {
		if far, ok := farness(want, string(e.word)); ok {
			word := string(e.word) // most words need no copy
			found[i][word] = like{word, far, found[i][word].docs + int64(e.docs)}
		}
	}
}

// farness tells how far a word is from one that was asked for, and whether it is like it
// at all.
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
		if d := tool.Distance(want, word); d <= most {
			return 100 * d, true
		}
	}
	if strings.Contains(word, want) || strings.Contains(want, word) {
		return 1000 + max(longer, -longer), true
	}
	return 0, false
}
