package router

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// wordsText holds the words that tell how hard a task is, in many languages. The head of the file
// explains the format.
//
//go:embed words.txt
var wordsText string

// class is what a word says of a task.
type class string

const (
	deep   class = "act"
	lead   class = "lead"
	large  class = "thing"
	flaw   class = "flaw"
	scope  class = "scope"
	making class = "make"
	doing  class = "do"
	hunt   class = "hunt"
	cause  class = "why"
	light  class = "easy"
	follow class = "follow"
)

// lexicon is the words by class, as they are looked for in a text that plain has made.
type lexicon map[class][]string

func newLexicon() lexicon {
	l := lexicon{}
	for line := range strings.Lines(wordsText) {
		head, list, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(head, "#") {
			continue
		}
		name, _, _ := strings.Cut(head, " ")
		for word := range strings.SplitSeq(list, ",") {
			l[class(name)] = append(l[class(name)], key(strings.TrimSpace(word)))
		}
	}
	return l
}

// key is how a word of the lexicon is looked for.
func key(word string) string {
	whole := strings.HasSuffix(word, ".")
	word = strings.TrimSuffix(word, ".")
	switch {
	case strings.ContainsFunc(word, unspaced):
		return word
	case whole:
		return " " + word + " "
	}
	return " " + word
}

// unspaced reports whether a letter belongs to a script whose words are not parted by spaces,
// or grow at their beginning.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Arabic, unicode.Thai)
}

// dense reports whether a letter of a script is about half a word.
func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// found are the words of a class in a text, each once, and where the first one is; -1 if there
// is none.
func (l lexicon) found(c class, text string) (words []string, first int) {
	first = -1
	for _, word := range l[c] {
		at := strings.Index(text, word)
		if at < 0 {
			continue
		}
		if seen := strings.TrimSpace(word); !slices.Contains(words, seen) {
			words = append(words, seen)
		}
		if first < 0 || at < first {
			first = at
		}
	}
	return words, first
}

// begins reports whether a text begins with a word of a class.
func (l lexicon) begins(c class, text string) bool {
	for _, word := range l[c] {
		if strings.HasPrefix(text, word) || strings.HasPrefix(text, " "+word) {
			return true
		}
	}
	return false
}

// plain is a text in small letters, with one space in the place of all that is neither letter
// nor digit, and at both ends; how many words it has; and how many files it names, which are
// taken out.
func plain(text string) (out string, words, files int) {
	var b strings.Builder
	half := 0
	for field := range strings.FieldsSeq(text) {
		words++
		word := strings.TrimRight(strings.TrimFunc(field, notOfName), ".-")
		if isFile(word) {
			files++
			continue
		}
		for _, r := range field {
			if dense(r) {
				half++
			}
		}
		b.WriteByte(' ')
		for _, r := range strings.ToLower(field) {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '-' && r != '/' {
				r = ' '
			}
			b.WriteRune(r)
		}
	}
	return " " + strings.Join(strings.Fields(b.String()), " ") + " ", words + half/2, files
}

func notOfName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/.~_-", r)
}
