package compact

import (
	"regexp"
	"strings"
	"unicode"
)

// lexicon holds the patterns that are searched for. They are compiled for each plan, since that takes
// milliseconds and most starts of a program make none.
type lexicon struct {
	literal *regexp.Regexp // text that must be kept exactly: code, addresses, paths, numbers
	named   *regexp.Regexp // a path of a file with an extension
	trouble *regexp.Regexp // of a line about an error

	testLine, testWord         *regexp.Regexp // of a line about tests
	noFail, noPass, fail, pass *regexp.Regexp // and their outcome
}

func newLexicon() *lexicon {
	return &lexicon{
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

// sentences splits a text at line ends and at marks that end a sentence. A point only ends one before white
// space, so that numbers and names stay whole.
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

// names reports whether a text names a file: by its path, or by an unambiguous end of it.
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

// mentions reports whether a text contains a name that is not part of a longer one. A whole path may have
// folders before it.
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

// continues reports whether a name continues in the text behind it.
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
