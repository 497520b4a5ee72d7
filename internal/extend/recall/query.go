package recall

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// Query says what to look for. All set fields must match.
type Query struct {
	// Text is a person's input: words, "words in a row", and beginnings* of words. Nothing in it is an error or
	// an operator. Paths and snake_case are words in a row. Accents, case and usual English endings are
	// ignored. Anything beyond 1,000 bytes or 12 words is ignored; only two of the beginnings count, the others
	// are words.
	Text    string
	Root    string   // only sessions of this workspace
	Session string   // only this session
	Not     string   // not this session
	Kinds   []string // only these
	Since   time.Time
	Until   time.Time // not including it
	Limit   int       // requested hits; 0 means 10; at most 100
}

const (
	maxQuery  = 1000 // bytes
	maxWords  = 12
	prefixes  = 2
	minPrefix = 4 // characters: a shorter one would match too many words
	limit     = 10
	maxLimit  = 100
)

// term is a word to search for, or several in a row.
type term struct {
	words  []string
	prefix bool // the last word may be longer
	quoted bool
}

// parse makes terms from a person's input.
func parse(s string) []term {
	s = strings.ToValidUTF8(text.Head(s, maxQuery), " ")
	var out []term
	for s != "" {
		before, rest, _ := strings.Cut(s, `"`)
		for _, field := range strings.FieldsFunc(before, parts) {
			out = appendTerm(out, newTerm(field))
		}
		quoted, rest, _ := strings.Cut(rest, `"`)
		t := newTerm(quoted)
		t.quoted = true
		out = appendTerm(out, t)
		s = rest
	}
	return meant(bounded(out))
}

// bounded keeps the first terms, so that no query takes long.
func bounded(list []term) []term {
	words, begun := 0, 0
	for i := range list {
		t := &list[i]
		if left := maxWords - words; len(t.words) > left {
			t.words, t.prefix = t.words[:left], false
		}
		if words += len(t.words); words == maxWords {
			list = list[:i+1]
			break
		}
	}
	for i := range list {
		if list[i].prefix {
			begun++
			list[i].prefix = begun <= prefixes
		}
	}
	return list
}

// parts reports whether r separates words that need not be in a row.
func parts(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;(){}[]=|<>!?&", r) }

func appendTerm(list []term, t term) []term {
	same := func(u term) bool { return slices.Equal(u.words, t.words) && u.prefix == t.prefix }
	if len(t.words) == 0 || slices.ContainsFunc(list, same) {
		return list
	}
	return append(list, t)
}

func newTerm(text string) term {
	var t term
	end := 0 // of the last one
	for w := range each(text) {
		_, size := utf8.DecodeRuneInString(text[w.from:])
		lone := w.to == w.from+size && dense(after(text, w.from))
		if w.piece || lone && w.from < end { // a lone one is in the pair before it
			continue
		}
		t.words = append(t.words, w.text)
		t.prefix = lone || after(text, w.to) == '*' && utf8.RuneCountInString(w.text) >= minPrefix
		end = w.to
	}
	return t
}

func after(text string, i int) rune {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return r
}

// meant omits words that say little, unless there are no others.
func meant(list []term) []term {
	kept := slices.DeleteFunc(slices.Clone(list), func(t term) bool {
		return !t.quoted && !t.prefix && len(t.words) == 1 && little(t.words[0])
	})
	if len(kept) == 0 {
		return list
	}
	return kept
}

// little reports whether a word, in its indexed form, says little in English.
func little(word string) bool {
	return slices.Contains([]string{
		"a", "about", "again", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "doe",
		"for", "from", "get", "had", "has", "hav",
		"he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "last", "let", "me", "my", "no", "not", "of", "on", "or",
		"our", "out", "pleas", "she", "should", "so", "some", "than",
		"that", "the", "their", "them", "then", "ther", "thes", "they", "this", "those", "thos", "to", "too", "up", "us", "was", "we", "were",
		"wer", "what", "when", "wher", "which", "who", "why", "will", "with", "would", "you", "your",
	}, word)
}

// String returns the term in the syntax of FTS5: words in a row are those of the text itself, a lone one may be
// a piece too.
func (t term) String() string {
	s := `"` + strings.Join(t.words, " ") + `"`
	if len(t.words) > 1 {
		s = "text : " + s
	}
	if t.prefix {
		s += " *"
	}
	return s
}

// apart makes terms of single words.
func apart(terms []term) []term {
	var out []term
	for _, t := range terms {
		for i, w := range t.words {
			out = appendTerm(out, term{words: []string{w}, prefix: t.prefix && i == len(t.words)-1})
		}
	}
	return meant(out)
}
