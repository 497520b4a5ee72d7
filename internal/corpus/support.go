package corpus

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leastQuote is how many bytes a quote has at least, unless it is all of its line: a letter stands in any text.
const leastQuote = 6

// short reports whether a quote is too short to show anything, given what stands before and after it.
func short(quote, before, after string) bool {
	whole := (before == "" || strings.HasSuffix(before, "\n")) && (after == "" || strings.HasPrefix(strings.TrimPrefix(after, "\r"), "\n"))
	return len(strings.TrimSpace(quote)) < leastQuote && (!whole || strings.TrimSpace(quote) == "")
}

var (
	aFigure   = regexp.MustCompile(`\p{Nd}+(?:[.,:/'-]\p{Nd}+)*`)
	aWord     = regexp.MustCompile(`\p{L}[\p{L}\p{M}\p{N}_]*(?:[.'’-][\p{L}\p{N}_]+)*`)
	aSentence = regexp.MustCompile(`[.!?:;]\s+|\n`)
	aMark     = regexp.MustCompile(`\[\p{Nd}+\]`) // the number of a piece of evidence
)

// shows is what passages can show: their words and figures.
type shows struct {
	text    string // in lower case
	figures map[string]bool
}

func newShows(passages ...string) shows {
	s := shows{text: strings.ToLower(strings.Join(passages, "\n")), figures: map[string]bool{}}
	for _, f := range aFigure.FindAllString(s.text, -1) {
		for _, form := range forms(f) {
			s.figures[form] = true
		}
	}
	return s
}

// forms are a figure as it may be written elsewhere: as it is, without what stands between thousands, and its
// parts; all without leading zeros.
func forms(figure string) []string {
	parts := strings.FieldsFunc(figure, func(r rune) bool { return !unicode.IsDigit(r) })
	out := append([]string{figure, strings.Join(parts, "")}, parts...)
	for i, p := range out {
		if out[i] = strings.TrimLeft(p, "0"); out[i] == "" {
			out[i] = "0"
		}
	}
	return out
}

// lacks are the figures and names of a claim that the passages don't have. If it has neither, they must have one
// of its longer words; else all of it is lacking.
func (s shows) lacks(claim string) (missing []string) {
	claim = aMark.ReplaceAllString(claim, "")
	figures := aFigure.FindAllString(aWord.ReplaceAllString(claim, " "), -1)
	names, others := named(claim)
	for _, f := range figures {
		if all := forms(f); !s.figures[all[0]] && !s.figures[all[1]] {
			missing = append(missing, f)
		}
	}
	for _, n := range names {
		if !s.has(n) {
			missing = append(missing, n)
		}
	}
	if len(figures)+len(names) == 0 && len(others) > 0 && !slices.ContainsFunc(others, s.has) {
		return []string{strings.TrimSpace(claim)}
	}
	return missing
}

func (s shows) has(word string) bool {
	return strings.Contains(s.text, strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "’s")))
}

// named are the names of a claim, and its longest other words, which say most. A name has a capital letter and
// does not begin a sentence, or a sign in it that no other word has.
func named(claim string) (names, others []string) {
	var brief []string // such as "two"
	for _, sentence := range aSentence.Split(claim, -1) {
		for i, w := range aWord.FindAllString(sentence, -1) {
			first, size := utf8.DecodeRuneInString(w)
			within := strings.ContainsFunc(w[size:], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) || r == '_' || r == '.' })
			switch {
			case size < len(w) && (within || unicode.IsUpper(first) && i > 0):
				names = append(names, w)
			case utf8.RuneCountInString(w) > 3 || len(w) > 2 && first > unicode.MaxLatin1:
				others = append(others, w)
			case len(w) == 3:
				brief = append(brief, w)
			}
		}
	}
	if len(others) == 0 {
		others = brief
	}
	return names, others
}

// unshown are the figures and names of an answer that its evidence does not have. One that says nothing that
// evidence could have, such as a bare yes, is not shown as a whole.
func unshown(a Answer) []string {
	if names, others := named(a.Answer); len(names)+len(others) == 0 && !aFigure.MatchString(a.Answer) {
		return []string{a.Answer}
	}
	passages := []string{strconv.Itoa(len(a.Evidence))} // which can be counted
	for _, e := range a.Evidence {
		passages = append(passages, e.Quote, e.Source, strconv.FormatInt(e.Line, 10), strconv.FormatUint(e.Event, 10))
	}
	return newShows(passages...).lacks(a.Answer)
}

// unquoted are what an answer about a piece says that its quotes don't, but for what is to be chosen from
// a list and what is only true or false.
func (q question) unquoted(value json.RawMessage, quotes []string) (missing []string) {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(value)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil // it is checked elsewhere
	}
	s := newShows(quotes...)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case json.Number:
			missing = append(missing, s.lacks(v.String())...)
		case string:
			if text, _ := json.Marshal(v); !strings.Contains(string(q.schema), string(text)) && len(strings.Fields(v)) > 0 {
				missing = append(missing, s.lacks(v)...)
			}
		}
	}
	walk(v)
	return missing
}
