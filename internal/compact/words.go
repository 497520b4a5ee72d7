package compact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/inspan/inspan/internal/text"
)

// lexicon are the words that are looked for. They are compiled for each plan:
// that takes milliseconds, and most starts of a program make none.
type lexicon struct {
	demands *regexp.Regexp // words by which a sentence is taken for a constraint
	firm    *regexp.Regexp // those of them that leave no choice
	literal *regexp.Regexp // what is either kept exactly or lost: code, addresses, paths, numbers
	named   *regexp.Regexp // a path of a file with an extension
	trouble *regexp.Regexp // of a line that speaks of an error

	testLine, testWord         *regexp.Regexp // where it is said how tests went
	noFail, noPass, fail, pass *regexp.Regexp // and how
}

func newLexicon() *lexicon {
	return &lexicon{
		demands: regexp.MustCompile(`(?i)(^|[^\pL])(must|mustn't|never|don['’]?t|do not|only|always|without|keep|at most|at least|no more than|avoid|instead|should(n['’]?t)?|can(not|['’]?t)|have to|leave out|make sure|forbidden|required?s?|no longer|` +
			`muss|müssen|darf|dürfen|nie|niemals|nur|immer|ohne|höchstens|mindestens|keine?[nmrs]?|nicht|stattdessen|behalte[n]?|soll(en)?|` +
			`siempre|nunca|sólo|solo|sin|jamais|toujours|sans|seulement)($|[^\pL])|必须|不要|不能|不得|不许|只能|只用|仅|总是|始终|最多|至少|保持|禁止|务必|改用|不可`),
		firm: regexp.MustCompile(`(?i)(^|[^\pL])(must|mustn't|never|don['’]?t|do not|always|at most|at least|forbidden|required?s?|` +
			`muss|müssen|darf|dürfen|nie|niemals|immer|höchstens|mindestens|siempre|nunca|jamais|toujours)($|[^\pL])|必须|不要|不能|不得|不许|总是|始终|最多|至少|禁止|务必|不可`),
		literal:  regexp.MustCompile("`[^`\n]{2,60}`" + `|https?://[^\s)>\]"']+|[\pL\d_.@-]*/[\pL\d_./@-]*[\pL\d_]|[\pL\d]+[_.-][\pL\d_.-]*[\pL\d]|[\pL]*\d[\d.,]*\d`),
		named:    regexp.MustCompile(`[\pL\d_.@+/\\-]*[\pL\d_-]\.[A-Za-z][A-Za-z0-9]{0,4}`),
		trouble:  regexp.MustCompile(`(?i)error|fail|panic|fatal|exception|denied|not found|fehler|错误|失败`),
		testLine: regexp.MustCompile(`(?im)^[\s>*_-]*(?:last )?tests?[*_]*\s*[:：][*_]*\s*(.+)$`),
		testWord: regexp.MustCompile(`(?i)\btests?\b|testlauf|测试`),
		noFail:   regexp.MustCompile(`(?i)(\b(0|no|none|zero|without|not|never|didn['’]t|don['’]t)\s+(any\s+)?|keine?r?\s+(ist\s+|sind\s+)?|没有)(failed|failures?|failing|fails?|errors?|broken|fehlgeschlagen|fehler|失败)|failures: 0`),
		noPass:   regexp.MustCompile(`(?i)(\b(not|never|no longer|doesn['’]t|don['’]t|didn['’]t|cannot|can['’]t|nicht)\s+(all\s+|yet\s+|mehr\s+)?|未|没有?|不)(全部)?(pass(ed|es|ing)?|green|ok|succeed(ed|s)?|bestanden|grün|通过)`),
		fail:     regexp.MustCompile(`(?i)\b(fail(s|ed|ing|ures?)?|broken|fehlgeschlagen|scheiter(n|t)|schlagen fehl|schlägt fehl|error(s|ed)?)\b|失败`),
		pass:     regexp.MustCompile(`(?i)\b(pass(es|ed|ing)?|green|ok|succe(ss|ssful|eds?|eded)|bestanden|bestehen|grün)\b|通过`),
	}
}

const maxSentence = 400 // bytes of a constraint that is kept

// constraints returns the sentences by which a person demands, forbids or limits.
func (x *lexicon) constraints(text string) []string {
	var out []string
	for _, s := range sentences(text) {
		if x.demands.MatchString(s) {
			out = append(out, x.core(s))
		}
	}
	return out
}

// core is a constraint in one line: of a long one, what stands around the word
// that demands it.
func (x *lexicon) core(s string) string {
	short := line(s, maxSentence)
	if short == line(s, len(s)) {
		return short
	}
	at := x.firm.FindStringIndex(s)
	if at == nil {
		at = x.demands.FindStringIndex(s)
	}
	from := max(0, at[0]-maxSentence/4)
	if from == 0 {
		return short
	}
	return text.More + line(text.Tail(s, len(s)-from), maxSentence-len(text.More))
}

// weight says how much a constraint tells: most if it leaves no choice, and more
// if it names something.
func (x *lexicon) weight(constraint string) int {
	n := 0
	if x.firm.MatchString(constraint) {
		n += 2
	}
	if x.literal.MatchString(constraint) {
		n++
	}
	return n
}

// lost returns the constraints of a text that a shorter form of it has not.
func (x *lexicon) lost(said, short string) []string {
	short = text.Flat(short)
	return slices.DeleteFunc(x.constraints(said), func(s string) bool { return strings.Contains(short, s) })
}

// sentences cuts a text at line ends and at marks that end a sentence. A point
// ends one only before white space, so that numbers and names stay whole.
func sentences(text string) []string {
	var out []string
	start := 0
	add := func(end int) {
		if s := strings.TrimSpace(text[start:end]); s != "" {
			out = append(out, s)
		}
		start = end
	}
	var last rune
	for i, r := range text {
		if (last == '.' || last == '!' || last == '?' || last == ';') && unicode.IsSpace(r) {
			add(i)
		}
		if r == '\n' {
			add(i)
		} else if strings.ContainsRune("。！？；", r) {
			add(i + len(string(r)))
		}
		last = r
	}
	add(len(text))
	return out
}

// terms are what two wordings of the same have in common: words of three
// letters and more in lower case, and pairs of characters where no spaces
// stand between words.
func terms(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return r != '_' && r != '\'' && r != '’' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		runes := []rune(w)
		switch {
		case unicode.Is(unicode.Han, runes[0]) && len(runes) > 1:
			for i := range runes[1:] {
				out = append(out, string(runes[i:i+2]))
			}
		case len(runes) > 2 || unicode.IsDigit(runes[0]):
			out = append(out, w)
		}
	}
	return out
}

// holds reports whether a text says a constraint: half of its words or more,
// as wordings differ.
func holds(text, constraint string) bool {
	in := map[string]bool{}
	for _, t := range terms(text) {
		in[t] = true
	}
	want := terms(constraint)
	n := 0
	for _, t := range want {
		if in[t] {
			n++
		}
	}
	return 2*n >= len(want)
}

// names reports whether a text names a file: by its path, or by as much of its
// end as no other has.
func names(text, path string, all []string) bool {
	text, path = slashed(text), slashed(path)
	for part := path; ; {
		if mentions(text, part, part == path) {
			return true
		}
		_, rest, ok := strings.Cut(part, "/")
		if !ok || !unique(rest, all) {
			return false
		}
		part = rest
	}
}

func slashed(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\\`, "/"), `\`, "/")
}

// unique reports whether at most one of the paths ends with part.
func unique(part string, all []string) bool {
	n := 0
	for _, path := range all {
		if path = slashed(path); path == part || strings.HasSuffix(path, "/"+part) {
			n++
		}
	}
	return n <= 1
}

// mentions reports whether a name stands in a text and is not part of a longer
// one. A whole path may have folders before it.
func mentions(text, name string, whole bool) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 || name == "" {
			return false
		}
		at += from
		before, after := text[:at], text[at+len(name):]
		if !continues(after) && starts(before, whole && strings.Contains(name, "/")) {
			return true
		}
		from = at + 1
	}
}

// starts reports whether a name may begin behind a text.
func starts(before string, folders bool) bool {
	if strings.HasSuffix(before, "/") {
		return folders || strings.HasSuffix(before, "./") && !strings.HasSuffix(before, "../")
	}
	return !endsInName(before)
}

func endsInName(text string) bool {
	if text == "" {
		return false
	}
	c := text[len(text)-1]
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// continues reports whether a name that stands before a text goes on in it.
func continues(after string) bool {
	switch {
	case after == "":
		return false
	case after[0] == '.' || after[0] == '-':
		return len(after) > 1 && endsInName(after[:2]) && after[1] != '.' && after[1] != '-'
	}
	return after[0] == '/' || endsInName(after[:1])
}

// distinctLiterals returns the literals of a text, each once.
func (x *lexicon) distinctLiterals(text string) []string {
	found := x.literal.FindAllString(text, -1)
	for i, l := range found {
		found[i] = strings.TrimRight(strings.Trim(l, "`"), ".,;:")
	}
	return distinct(found)
}
