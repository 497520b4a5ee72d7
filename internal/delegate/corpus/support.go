package corpus

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// leastQuote is the least length of a quote in bytes, unless it is a whole line: a single letter is in every
// text.
const leastQuote = 6

// short reports whether a quote is too short to prove anything, given the text before and after it.
func short(quote, before, after string) bool {
	whole := (before == "" || strings.HasSuffix(before, "\n")) && (after == "" || strings.HasPrefix(strings.TrimPrefix(after, "\r"), "\n"))
	return len(strings.TrimSpace(quote)) < leastQuote && (!whole || strings.TrimSpace(quote) == "")
}

// The rules of evidence. Figures and names are compared as a whole, a figure with its minus sign and the million
// after it. A word may only differ in its capitals, its possessive, and its ending where nouns have cases, a figure
// in the separators between groups of three digits. Parts of a figure are figures of their own only in dates,
// times, ranges and versions.
var (
	aFigure   = text.Pattern(`−?\p{Nd}+(?:[.,:/'’-]\p{Nd}+)*(?:×[0-9]+)?`)
	aWord     = text.Pattern(`\p{L}[\p{L}\p{M}\p{N}_]*(?:[.'’-][\p{L}\p{N}_]+)*`)
	aSentence = text.Pattern(`[.!?:;]\s+|\n`)
	unspaced  = text.Pattern(`[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]`) // scripts without spaces between words
	aPrefix   = text.Pattern(`(\p{Nd})T(\p{Nd})|\b[vV](\p{Nd})`)          // in 2026-05-03T12:30 and v1.2
	aSpaced   = text.Pattern(`[\p{Nd}.,:/'’-]*\p{Nd}(?:[ \x{a0}\x{202f}\x{2009}]\p{Nd}+)+`)
	inGroups  = text.Pattern(`^[1-9]\p{Nd}{0,2}(?:[ \x{a0}\x{202f}\x{2009}]\p{Nd}{3})+$`)
	anAmount  = text.Pattern(`^([1-9]\p{Nd}{0,2}(?:(?:,\p{Nd}{3})+|(?:\.\p{Nd}{3})+|(?:['’]\p{Nd}{3})+))(?:[.,](\p{Nd}+))?$`)
)

// shows has the words and figures that passages can prove.
type shows struct {
	text    string          // in lower case
	words   map[string]bool // in lower case
	lower   []string        // words in lower case in the text
	capital []string        // the other words, in lower case
	figures map[string]bool
	counted map[string]string // numbers before words, by the word in lower case
	cases   bool              // the text is of a language in which names have other endings in other cases
}

func newShows(passages ...string) shows {
	all := strings.Join(passages, "\n")
	s := shows{
		text: strings.ToLower(all), words: map[string]bool{}, figures: map[string]bool{}, counted: map[string]string{},
		cases: aGerman().MatchString(all),
	}
	for _, w := range aWord().FindAllString(aPrefix().ReplaceAllString(all, "$1 $2$3"), -1) {
		for _, part := range append(strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune(".'’-", r) }), w) {
			s.words[stem(part)] = true
			if part == strings.ToLower(part) {
				s.lower = append(s.lower, part)
			} else {
				s.capital = append(s.capital, strings.ToLower(part))
			}
		}
	}
	for _, f := range append(figuresIn(all, true), figuresIn(all, false)...) {
		same, parts := canonical(f)
		for _, form := range append(parts, same) {
			s.figures[form] = true
		}
	}
	for _, m := range aNumber().FindAllStringSubmatch(all, -1) {
		n := numberOf(m[1])
		s.figures[n], s.counted[strings.ToLower(m[2])] = true, n
	}
	return s
}

// figuresIn returns the figures of a text that are not part of a word. Figures separated by plain spaces, such
// as "200 512", may be one figure or several; if apart, they are only one if a group begins with 0.
func figuresIn(text string, apart bool) []string {
	text = strings.ReplaceAll(text, "−", "-")
	for _, s := range scales() {
		text = s.word.ReplaceAllString(text, "${1}×"+strconv.Itoa(s.zeros)+"\n")
	}
	text = aWord().ReplaceAllString(aPrefix().ReplaceAllString(text, "$1 $2$3"), "\n")
	text = strings.ReplaceAll(text, "–", "-")
	if text = aMinus().ReplaceAllString(text, "$1$2−$3"); apart {
		text = aColumn().ReplaceAllString(text, "$1−")
	}
	text = aSpaced().ReplaceAllStringFunc(text, func(m string) string {
		parts := strings.FieldsFunc(m, unicode.IsSpace)
		if !inGroups().MatchString(m) || apart && strings.Count(m, " ") == len(parts)-1 && !strings.Contains(m, " 0") {
			return m
		}
		return strings.Join(parts, "")
	})
	return aFigure().FindAllString(text, -1)
}

// canonical returns a figure in the form for comparison, and its parts and beginnings, such as 12:30 of
// 12:30:07.
func canonical(figure string) (same string, parts []string) {
	if amount, below := strings.CutPrefix(figure, "−"); below {
		same, _ = canonical(amount)
		return "−" + same, nil
	}
	if amount, zeros, scaled := strings.Cut(figure, "×"); scaled {
		same, _ = canonical(amount)
		whole, part, _ := strings.Cut(same, ".")
		n, _ := strconv.Atoi(zeros)
		part += strings.Repeat("0", max(0, n-len(part)))
		same, _ = canonical(strings.TrimRight(whole+part[:n]+"."+part[n:], "."))
		return same, nil
	}
	pieces := strings.FieldsFunc(figure, func(r rune) bool { return strings.ContainsRune("-/:", r) })
	amount := anAmount().FindStringSubmatch(figure)
	if len(pieces) == 1 && amount == nil && strings.Count(figure, ".") > 1 {
		pieces = strings.Split(figure, ".")
	}
	if len(pieces) > 1 {
		for i, p := range pieces {
			piece, inner := canonical(p)
			pieces[i], parts = piece, append(append(parts, piece, strings.Join(append(pieces[:i:i], piece), "-")), inner...)
		}
		return strings.Join(pieces, "-"), parts
	}
	if amount != nil {
		figure = strings.Join(strings.FieldsFunc(amount[1], func(r rune) bool { return !unicode.IsDigit(r) }), "")
		if amount[2] != "" {
			figure += "." + amount[2]
		}
	}
	if strings.Count(figure, ",") == 1 { // a decimal comma
		figure = strings.Replace(figure, ",", ".", 1)
	}
	if figure = strings.TrimLeft(figure, "0"); figure == "" || !unicode.IsDigit(rune(figure[0])) && figure[0] < utf8.RuneSelf {
		figure = "0" + figure
	}
	return figure, nil
}

// stem returns a word in lower case without its possessive, and without the plural of an acronym.
func stem(word string) string {
	word = strings.TrimSuffix(strings.TrimRight(strings.ReplaceAll(word, "’", "'"), "'"), "'s")
	if short, ok := strings.CutSuffix(word, "s"); ok && len(short) > 1 && short == strings.ToUpper(short) {
		word = short
	}
	return strings.ToLower(word)
}

// has reports whether the text has a word as a whole.
func (s shows) has(word string) bool {
	return s.words[stem(word)] || unspaced().MatchString(word) && strings.Contains(s.text, strings.ToLower(word))
}

// inOtherCase reports whether the text has a name in another grammatical case.
func (s shows) inOtherCase(name string) bool {
	name = stem(name)
	return slices.ContainsFunc(s.capital, func(w string) bool {
		same := 0
		for i, r := range w {
			if next, _ := utf8.DecodeRuneInString(name[min(i, len(name)):]); next != r {
				break
			}
			same = i + utf8.RuneLen(r)
		}
		a, b := w[same:], name[same:]
		switch n := utf8.RuneCountInString(w[:same]); {
		case n >= 3 && unicode.Is(unicode.Cyrillic, []rune(w)[0]):
			return aSlavic().MatchString(a) && aSlavic().MatchString(b)
		case n >= 4 && s.cases:
			return a+b != "" && (a == "" || b == "") && aGermanic().MatchString(a+b)
		}
		return false
	})
}

// scaled reports whether the text has the word for a power of ten anywhere, as in the head of a table.
func (s shows) scaled(zeros string) bool {
	text := "1 " + strings.Join(strings.Fields(s.text), " 1 ")
	return slices.ContainsFunc(scales(), func(of scale) bool { return strconv.Itoa(of.zeros) == zeros && of.word.MatchString(text) })
}

// countsOther reports whether the text has another number of a counted thing.
func (s shows) countsOther(thing, number string) bool {
	for counted, n := range s.counted {
		if n != number && newShows(counted).akin(thing) {
			return true
		}
	}
	return false
}

// akin reports whether the text has a word, or a lower-case word that differs in an ending.
func (s shows) akin(word string) bool {
	word = strings.ToLower(word)
	return s.has(word) || slices.ContainsFunc(s.lower, func(w string) bool {
		same := w[:min(len(w), len(word))]
		return len(same) > 3 && strings.HasPrefix(word, same) && anEnding().MatchString(w[len(same):]+word[len(same):])
	})
}

// lacks returns the figures and names of a claim that the passages lack. If it has neither, they must have one
// of its longer words; else the whole claim is lacking.
func (s shows) lacks(claim string) (missing []string) {
	figures := figuresIn(claim, false)
	names, others := s.named(claim)
	for _, f := range figures {
		amount, zeros, scaled := strings.Cut(f, "×")
		same, _ := canonical(f)
		bare, _ := canonical(amount)
		if !s.figures[same] && (!scaled || !s.figures[bare] || !s.scaled(zeros)) {
			missing = append(missing, strings.Replace(amount, "−", "-", 1))
		}
	}
	for _, n := range names {
		if !s.has(n) && !s.inOtherCase(n) {
			missing = append(missing, n)
		}
	}
	for _, m := range aNumber().FindAllStringSubmatch(claim, -1) {
		if n := numberOf(m[1]); !s.figures[n] && s.countsOther(m[2], n) {
			missing = append(missing, m[1])
		}
	}
	if len(figures)+len(names) == 0 && len(others) > 0 && !slices.ContainsFunc(others, s.akin) {
		return []string{strings.TrimSpace(claim)}
	}
	return missing
}

// scale is a word after a figure that multiplies it.
type scale struct {
	word  *regexp.Regexp
	zeros int
}

var (
	aThousand = text.Pattern(`(?i)(\p{Nd})[ \x{a0}\x{202f}-]?(?:thousands?|tausend|tsd)\b`)
	aMillion  = text.Pattern(`(?i)(\p{Nd})[ \x{a0}\x{202f}-]?(?:millions?|millionen|mio|mln)\b`)
	aBillion  = text.Pattern(`(?i)(\p{Nd})[ \x{a0}\x{202f}-]?(?:billions?|bn|milliarden?|mrd|milliards?|mld)\b`)
	aTrillion = text.Pattern(`(?i)(\p{Nd})[ \x{a0}\x{202f}-]?(?:trillions?)\b`)
)

func scales() []scale {
	return []scale{{aThousand(), 3}, {aMillion(), 6}, {aBillion(), 9}, {aTrillion(), 12}}
}

// multiplies reports whether a word is that of a scale.
func multiplies(word string) bool {
	return slices.ContainsFunc(scales(), func(s scale) bool { return s.word.FindString("1 "+word) == "1 "+word })
}

// Signs, number words, and endings of names in other grammatical cases.
var (
	aMinus  = text.Pattern(`((?:^|[\n(\[=:|>~≈]|[^\p{Nd}\s]\s+)\s*)-([$€£¥]?)(\p{Nd})`)
	aColumn = text.Pattern(`(\p{Nd}\s+)-(?:\b|$)`) // in a row of a table, or a range
	aNumber = text.Pattern(`(?i)\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|` +
		`zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf)\s+(\p{L}{3,})`)
	aGerman   = text.Pattern(`\b(?:der|des|dem|und|wurde|wird|nicht|eine[mnrs]?|ist|für)\b`)
	aGermanic = text.Pattern(`^(?:s|n|es|en|ns)$`)
	aSlavic   = text.Pattern(`^(?:|а|я|у|ю|о|е|ё|и|ы|й|ь|ом|ем|ём|ой|ей|ою|ею|ым|им|ого|его|ому|ему|ых|их|` +
		`ам|ям|ами|ями|ах|ях|ую|юю|ая|яя|ии|ию|ия|ью)$`)
)

// numberOf returns the figure for a number word.
func numberOf(word string) string {
	words := [][]string{
		{"two", "zwei"},
		{"three", "drei"},
		{"four", "vier"},
		{"five", "fünf"},
		{"six", "sechs"},
		{"seven", "sieben"},
		{"eight", "acht"},
		{"nine", "neun"},
		{"ten", "zehn"},
		{"eleven", "elf"},
		{"twelve", "zwölf"},
	}
	return strconv.Itoa(2 + slices.IndexFunc(words, func(same []string) bool { return slices.Contains(same, strings.ToLower(word)) }))
}

var (
	// begins are words that begin sentences and are not names; they prove too little.
	begins = text.Pattern(`(?i)^(?:` +
		`answer|approximately|average|count|everybody|everyone|everything|maximum|minimum|note|number|result|results|run|see|set|` +
		`somebody|someone|something|sum|summary|total|use|` +
		`a|aber|about|according|after|all|als|also|although|am|an|and|another|any|anybody|anyone|anything|are|as|at|au|auch|auf|aux|avec|based|because|` +
		`before|bei|bis|both|but|by|can|ce|ces|con|d\.h|da|dans|das|de|del|dem|den|der|des|die|do|does|du|during|e\.g|each|ein|` +
		`eine|either|el|elle|en|er|es|et|every|few|for|from|für|given|had|has|have|he|her|here|his|how|however|i|i\.e|if|il|ils|` +
		`im|in|instead|is|ist|it|its|ja|kein|keine|la|las|le|les|los|many|mit|more|most|must|nach|nein|neither|no|nobody|non|` +
		`none|nor|not|nothing|now|nur|of|on|once|only|or|other|otherwise|oui|our|overall|par|para|per|por|pour|se|según|` +
		`selon|she|should|si|sie|since|so|some|su|such|sur|than|that|the|their|then|there|therefore|these|they|this|those|` +
		`thus|to|u\.a|un|und|under|une|unless|until|up|version|vom|von|vor|we|wenn|wer|what|when|where|whether|which|while|` +
		`who|why|wir|with|within|without|y|yes|yet|you|your|z\.b|zu|zum|zur` +
		`)$`)
	anEnding = text.Pattern(`^(?:s|es|e|d|ed|er|ing|n|en)$`) // of another form of a word
	// ordinary are numbers, and words with endings that names don't have.
	aSingle  = text.Pattern(`s$|ed$`) // of a verb that can follow one person's name
	ordinary = text.Pattern(`\p{L}{5}ly$|\p{L}{4}(?:ing|tions?|ments?|ness|ity)$|^(?:One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten)$`)
)

// named returns the names of a claim, and its longest other words, which mean most. A name has a capital
// letter, or a sign that other words lack. The first word of a sentence is a name unless it is one that begins
// sentences, is in lower case in the passages, or has the form of another word, such as a plural before a word
// that can't be its verb.
func (s shows) named(claim string) (names, others []string) {
	var brief []string // such as "two"
	for _, sentence := range aSentence().Split(aPrefix().ReplaceAllString(claim, "$1 $2$3"), -1) {
		words := aWord().FindAllString(sentence, -1)
		for i, w := range words {
			first, size := utf8.DecodeRuneInString(w)
			within := strings.ContainsFunc(w[size:], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) || r == '_' || r == '.' })
			begun := begins().MatchString(stem(w))
			many := strings.HasSuffix(stem(w), "s") && i+1 < len(words) && !aSingle().MatchString(words[i+1])
			small := i == 0 && (begun || many || ordinary().MatchString(w) || slices.Contains(s.lower, strings.ToLower(w)) || !s.has(w) && s.akin(w))
			switch {
			case multiplies(w):
			case size < len(w) && within && !begun || unicode.IsUpper(first) && !small && w != "I" && (i > 0 || size < len(w)):
				names = append(names, w)
			case begun:
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

var (
	aMark   = text.Pattern(`\[\p{Nd}+(?:(?:, ?|-|–)\p{Nd}+)*\]`) // numbers of pieces of evidence
	anItem  = text.Pattern(`(?m)^\s*(\p{Nd}+)[.)]\s+`)           // of a list
	aPlace  = text.Pattern(`(?i)\b(?:lines?|zeilen?|lignes?|events?|ereignis(?:se)?)\s+#?\p{Nd}+(?:(?:-|–| and | und | et | to )\p{Nd}+)*`)
	anEvent = text.Pattern(`#\p{Nd}+`)
	aCount  = text.Pattern(`(^|[^\p{Nd}.,:/'’-])(\p{Nd}+)\s+(\p{L}{3,})`)
	aTotal  = text.Pattern(`\b(?:are|were|sind|sont)\s+\p{Nd}+\s*(?:[.!?]\s|[.!?]?$)`)
	aPiece  = text.Pattern(`(?i)^(?:files?|sources?|documents?|passages?|places?|quotes?)$`)
	digits  = text.Pattern(`\p{Nd}+`)
)

// unshown returns the figures and names of an answer that its evidence lacks. Statements about the evidence itself
// are compared with it: citations, numbers of lines and events, names of sources, and counts of things that each
// passage has one of. An answer without anything that evidence could have, such as a bare yes, is unshown as a
// whole.
func unshown(a Answer) []string {
	var quotes []string
	cited, places, events := map[string]bool{}, map[string]bool{}, map[string]bool{}
	claim := a.Answer
	for i, e := range a.Evidence {
		quotes = append(quotes, e.Quote)
		cited[strconv.Itoa(i+1)] = true
		number := strconv.FormatUint(e.Event, 10)
		events[number], places[number] = e.Event > 0, e.Event > 0
		for n := range int64(strings.Count(e.Quote, "\n") + 1) {
			places[strconv.FormatInt(e.Line+n, 10)] = true
		}
	}
	told := func(form *regexp.Regexp, among map[string]bool) (some bool) {
		claim = form.ReplaceAllStringFunc(claim, func(m string) string {
			if slices.ContainsFunc(digits().FindAllString(m, -1), func(n string) bool { return !among[n] }) {
				return m
			}
			some = true
			return "\t"
		})
		return some
	}
	items := 0
	claim = anItem().ReplaceAllStringFunc(claim, func(m string) string {
		if digits().FindString(m) == strconv.Itoa(items+1) {
			items++
			return "\n"
		}
		return m
	})
	told(aMark(), cited)
	for _, e := range a.Evidence {
		claim = sourceName(e.Source).ReplaceAllStringFunc(claim, func(m string) string {
			if _, n, ok := strings.Cut(m[strings.LastIndex(m, path.Base(e.Source))+len(path.Base(e.Source)):], ":"); ok && !places[n] {
				return "\t" + n
			}
			return "\t"
		})
	}
	told(aPlace(), places)
	told(anEvent(), events)
	claim = aCount().ReplaceAllStringFunc(claim, func(m string) string {
		if part := aCount().FindStringSubmatch(m); part[2] == strconv.Itoa(len(quotes)) && counted(part[3], quotes) {
			return part[1] + part[3]
		}
		return m
	})
	total := told(aTotal(), map[string]bool{strconv.Itoa(len(quotes)): len(quotes) > 1})
	s := newShows(quotes...)
	if names, others := s.named(claim); !total && len(names)+len(others) == 0 && len(figuresIn(claim, false)) == 0 {
		return []string{a.Answer}
	}
	return s.lacks(claim)
}

// sourceName matches the name of a source in an answer, and a line number after it.
func sourceName(source string) *regexp.Regexp {
	either := regexp.QuoteMeta(source)
	if base := path.Base(source); strings.Contains(base, ".") {
		either += "|" + regexp.QuoteMeta(base)
	}
	if !strings.ContainsFunc(source, unicode.IsLetter) { // it would be a figure
		either = `$^.`
	}
	return regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.-])(?:` + either + `)(?::\p{Nd}+|\b|$)`)
}

// counted reports whether each of several quotes has one of the counted things, and none has a number of them.
func counted(what string, quotes []string) bool {
	for _, q := range quotes {
		for _, m := range aCount().FindAllStringSubmatch(q, -1) {
			if newShows(strings.ToLower(m[3])).akin(what) {
				return false
			}
		}
		if !aPiece().MatchString(what) && !newShows(strings.ToLower(q)).akin(what) {
			return false
		}
	}
	return len(quotes) > 1
}

// unquoted returns the statements of an answer about a piece that its quotes lack, except values chosen from a
// list and booleans.
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
