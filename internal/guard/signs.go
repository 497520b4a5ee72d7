package guard

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/text"
)

// Sign is something in a text that looks like instructions to a model, or like
// an attempt to mislead one.
type Sign struct {
	// Kind is the family: override, turn, message, authority, persona, conceal,
	// leak, call, denial, link, imitation, unseen, encoded, hidden or flood.
	Kind string
	Why  string // what the text does, for people; follows "it"
	Text string // the place, cleaned and cut; empty for hidden and flood
}

// Bytes of text that a pattern sees around an anchor.
const (
	seenBefore = 160
	seenAfter  = 600
	tooOften   = 120 // bytes that a pattern is not tried again, as it has seen them
)

// Suspicious lists the signs that a text holds, at most one of each kind, in
// the order in which they stand. None means little: an attacker can word
// everything differently. Some means that a look is worth it: text about
// injections, such as this package's tests, has signs too.
//
// Time is linear in the text. Safe for concurrent use.
func Suspicious(text string) []Sign {
	text, smuggled := reveal(text)
	return newTable().signs(text, smuggled)
}

// table is the rules made ready. Safe for concurrent use.
type table struct {
	rules    []rule
	compiled []func() *regexp.Regexp // of the rules
	anchored []bool
	filter   *filter

	toModel, image, parameter, signed, announced func() *regexp.Regexp // for further conditions
}

func newTable() *table {
	t := &table{
		rules:   rules(),
		toModel: lazily(toModel), image: lazily(image), parameter: lazily(parameter), signed: lazily(signed), announced: lazily(announced),
	}
	var anchors []anchor
	for i, r := range t.rules {
		t.compiled = append(t.compiled, lazily(r.pattern))
		t.anchored = append(t.anchored, r.anchored())
		for word := range strings.SplitSeq(r.anchors, ";") {
			anchors = append(anchors, anchor{word, i})
		}
	}
	t.filter = newFilter(anchors)
	return t
}

// lazily compiles a pattern when it is first asked for.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// signs is Suspicious for text that was revealed.
func (t *table) signs(text string, smuggled bool) []Sign {
	s := search{table: t}
	s.scan(text)
	if folded, changed := foldLetters(text); changed {
		s.scan(folded)
	}
	if smuggled {
		s.signs = append(s.signs, Sign{Kind: "hidden", Why: "holds characters that people don't see"})
	}
	return s.signs
}

// search goes through a text once for all rules.
type search struct {
	*table
	next  []int // by rule: where it may be tried again
	tries int
	signs []Sign
}

func (s *search) scan(text string) {
	s.next = make([]int, len(s.rules))
	s.tries = 1000 + len(text)/50
	s.filter.each(text, func(at, rule int) { s.try(text, at, rule) })
}

// try looks for a rule's sign at one of its anchors. Text that is full of
// anchors could make this slow, so there is a bound; reaching it is a sign.
func (s *search) try(text string, at, i int) {
	r := &s.rules[i]
	if at < s.next[i] || s.has(r.kind) {
		return
	}
	if s.tries -= s.price(i); s.tries < 0 {
		if !s.has("flood") {
			s.signs = append(s.signs, Sign{Kind: "flood", Why: "has so many words of instructions that not all could be looked at"})
		}
		return
	}
	from := at
	if !s.anchored[i] {
		from = boundary(text, at-seenBefore)
		s.next[i] = at + tooOften
	}
	seen := text[from:boundary(text, at+seenAfter)]
	if loc := s.compiled[i]().FindStringIndex(seen); loc != nil && (r.fits == nil || r.fits(s.table, text, from+loc[0], from+loc[1])) {
		s.signs = append(s.signs, Sign{r.kind, r.why, plainLine(seen[loc[0]:loc[1]], 80)})
	}
}

// price is how much a try counts for: patterns that look around take longer.
func (s *search) price(i int) int {
	if s.anchored[i] {
		return 1
	}
	return 10
}

func (s *search) has(kind string) bool {
	return slices.ContainsFunc(s.signs, func(sign Sign) bool { return sign.Kind == kind })
}

// boundary moves an offset into the text and to the start of a character.
func boundary(s string, at int) int { return len(text.Head(s, at)) }

// commanding reports whether a verb stands where a command begins, and is not
// the "ignore the above instructions if you use Windows" of a manual.
func commanding(_ *table, text string, at, end int) bool {
	rest := strings.TrimLeft(text[end:boundary(text, end+20)], " \t\r\n*/#")
	for _, word := range []string{"if ", "unless ", "when ", "in case "} {
		if strings.HasPrefix(strings.ToLower(rest), word) {
			return false
		}
	}
	before := strings.TrimRight(text[boundary(text, at-40):at], " \t\r\n\"'*_`“”‘’>#-/")
	last, _ := utf8.DecodeLastRuneInString(before)
	if before == "" || !unicode.IsLetter(last) {
		return true
	}
	words := strings.Fields(strings.ToLower(before))
	switch strings.TrimLeftFunc(words[len(words)-1], func(r rune) bool { return !unicode.IsLetter(r) }) {
	case "please", "must", "should", "and", "now", "then", "you", "just", "will", "shall", "simply", "immediately", "first", "instead", "so", "is", "completely", "entirely", "therefore", "assistant", "model", "ai", "claude", "instructions", "hereby", "kindly":
		return true
	case "to":
		return len(words) > 1 && slices.Contains([]string{"you", "need", "have", "want", "is", "task", "ordered", "instructed", "required"}, words[len(words)-2])
	}
	// A line of its own is a command, however the one before it ended.
	return strings.Contains(text[boundary(text, at-6):at], "\n\n")
}

// lineStart reports whether nothing but marks stands before on the line.
func lineStart(_ *table, text string, at, _ int) bool {
	before := text[boundary(text, at-80):at]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	return !strings.ContainsFunc(before, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func talks(t *table, text string, at, end int) bool { return t.toModel().MatchString(text[at:end]) }

// opaqueQuery reports whether the address of an image carries something long
// that is no signature.
func opaqueQuery(t *table, text string, at, end int) bool {
	m := t.image().FindStringSubmatch(text[at:end])
	before := text[boundary(text, at-200):at]
	if open := strings.LastIndexByte(before, '['); m == nil || open < 1 || before[open-1] != '!' {
		return false // a link, which somebody has to follow
	}
	for _, p := range t.parameter().FindAllStringSubmatch(m[1], -1) {
		if !t.signed().MatchString(p[1]) && !strings.Contains(p[2], "%2F") && !strings.Contains(p[2], "://") {
			return true
		}
	}
	return false
}

// carries reports whether a blob is text, and the words around say to follow it.
func carries(t *table, text string, at, end int) bool {
	return sentence(decoded(text[at:end])) && t.announced().MatchString(text[boundary(text, at-200):boundary(text, end+200)])
}

// turned reports whether text that is turned by 13 letters stands near by.
func turned(_ *table, text string, at, end int) bool {
	return toldTo(rot13(text[boundary(text, at-200):boundary(text, end+seenAfter)]))
}

func toldTo(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"ignore ", "instruction", "send ", "delete ", " the user", "execute "}, func(w string) bool { return strings.Contains(text, w) })
}

// decoded reads base64 of either alphabet, or hex; nil if it is neither.
func decoded(b string) []byte {
	if raw, err := hex.DecodeString(b); err == nil {
		return raw
	}
	b = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(b, "="))
	raw, err := base64.RawStdEncoding.DecodeString(b)
	if err != nil {
		return nil
	}
	return raw
}

// sentence reports whether raw is text of several words.
func sentence(raw []byte) bool {
	text := string(raw)
	return len(strings.Fields(text)) >= 3 && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}

func rot13(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, text)
}

// foldLetters writes letters that look like those of ASCII as ASCII: full
// width, mathematical, and some of Cyrillic and Greek. What comes out is only
// to be searched: it holds the lines with such letters and those beside them.
func foldLetters(text string) (folded string, changed bool) {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if i += n; foldLetter(r) == r {
			continue
		}
		from, to := around(text, i)
		if from > done {
			b.WriteString("\n\n")
		}
		b.WriteString(strings.Map(foldLetter, text[max(from, done):to]))
		done, i = to, to
	}
	return b.String(), done > 0
}

// around returns the line of an offset with the one before and the one after,
// or as much of them as a pattern sees.
func around(text string, at int) (from, to int) {
	from, to = boundary(text, at-seenAfter), boundary(text, at+seenAfter)
	if i := strings.LastIndexByte(text[from:at], '\n'); i > 0 {
		from += max(strings.LastIndexByte(text[from:from+i], '\n'), 0)
	}
	if i := strings.IndexByte(text[at:to], '\n'); i >= 0 {
		if next := strings.IndexByte(text[at+i+1:to], '\n'); next >= 0 {
			to = at + i + 1 + next
		}
	}
	return from, to
}

func foldLetter(r rune) rune {
	switch {
	case r < 0x370:
		return r
	case r >= 0xff01 && r <= 0xff5e:
		return r - 0xff01 + '!'
	case r >= 0x1d400 && r < 0x1d6a4: // Mathematical alphabets: capitals, then small letters, 13 times
		i := (r - 0x1d400) % 52
		if i < 26 {
			return 'A' + i
		}
		return 'a' + i - 26
	case r >= 0x24b6 && r <= 0x24cf:
		return 'A' + r - 0x24b6
	case r >= 0x24d0 && r <= 0x24e9:
		return 'a' + r - 0x24d0
	case r > 0x4ff:
		return r
	}
	const from, to = "аеорсухіјѕԁһАЕОРСУХІЈЅВНКМТοιαεντρυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijsdhAEOPCYXIJSBHKMToiaevtpukABEZHIKMNOPTYX"
	if i := strings.IndexRune(from, r); i >= 0 {
		return rune(to[i/2]) // two bytes each in from, one in to
	}
	return r
}
