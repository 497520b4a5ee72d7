package compact

import (
	"regexp"
	"strings"
	"unicode"
)

// patterns holds the regular expressions of a plan. Compiling them takes milliseconds, so a program that makes no plan
// does not pay for it.
type patterns struct {
	literal   *regexp.Regexp // text that must be kept exactly: code, addresses, paths, numbers
	named     *regexp.Regexp // a path of a file with an extension
	errorWord *regexp.Regexp // in a line about an error

	testLine, testWord         *regexp.Regexp // of a line about tests
	noFail, noPass, fail, pass *regexp.Regexp // and their outcome
}

func compilePatterns() *patterns {
	return &patterns{
		literal:   regexp.MustCompile("`[^`\n]{2,60}`" + `|https?://[^\s)>\]"']+|[\pL\d_.@-]*/[\pL\d_./@-]*[\pL\d_]|[\pL\d]+[_.-][\pL\d_.-]*[\pL\d]|[\pL]*\d[\d.,]*\d`),
		named:     regexp.MustCompile(`[\pL\d_.@+/\\-]*[\pL\d_-]\.[A-Za-z][A-Za-z0-9]{0,4}`),
		errorWord: regexp.MustCompile(`(?i)error|fail|panic|fatal|exception|denied|not found|fehler|错误|失败`),
		testLine:  regexp.MustCompile(`(?im)^[\s>*_-]*(?:last )?tests?[*_]*\s*[:：][*_]*\s*(.+)$`),
		testWord:  regexp.MustCompile(`(?i)\btests?\b|testlauf|测试`),
		noFail:    regexp.MustCompile(`(?i)(\b(0|no|none|zero|without|not|never|didn['’]t|don['’]t)\s+(any\s+)?|keine?r?\s+(ist\s+|sind\s+)?|没有)(failed|failures?|failing|fails?|errors?|broken|fehlgeschlagen|fehler|失败)|failures: 0`),
		noPass:    regexp.MustCompile(`(?i)(\b(not|never|no longer|doesn['’]t|don['’]t|didn['’]t|cannot|can['’]t|nicht)\s+(all\s+|yet\s+|mehr\s+)?|未|没有?|不)(全部)?(pass(ed|es|ing)?|green|ok|succeed(ed|s)?|bestanden|grün|通过)`),
		fail:      regexp.MustCompile(`(?i)\b(fail(s|ed|ing|ures?)?|broken|fehlgeschlagen|scheiter(n|t)|schlagen fehl|schlägt fehl|error(s|ed)?)\b|失败`),
		pass:      regexp.MustCompile(`(?i)\b(pass(es|ed|ing)?|green|ok|succe(ss|ssful|eds?|eded)|bestanden|bestehen|grün)\b|通过`),
	}
}

// splitSentences splits a text at line ends and at marks that end a sentence. A full stop counts only before white
// space, so numbers and names stay whole.
func splitSentences(text string) []string {
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

// namesFile reports whether a text contains the path of a file, or an unambiguous end of it.
func namesFile(text, path string, all []string) bool {
	text, path = withSlashes(text), withSlashes(path)
	for part := path; ; {
		if mentions(text, part, part == path) {
			return true
		}
		_, rest, ok := strings.Cut(part, "/")
		if !ok || !isUniqueSuffix(rest, all) {
			return false
		}
		part = rest
	}
}

func withSlashes(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\\`, "/"), `\`, "/")
}

// isUniqueSuffix reports whether at most one of the paths ends in part.
func isUniqueSuffix(part string, all []string) bool {
	n := 0
	for _, path := range all {
		if path = withSlashes(path); path == part || strings.HasSuffix(path, "/"+part) {
			n++
		}
	}
	return n <= 1
}

// mentions reports whether a text contains a name that is not part of a longer name. Folders may precede a whole path.
func mentions(text, name string, whole bool) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 || name == "" {
			return false
		}
		at += from
		before, after := text[:at], text[at+len(name):]
		if !nameContinues(after) && mayStartName(before, whole && strings.Contains(name, "/")) {
			return true
		}
		from = at + 1
	}
}

// mayStartName reports whether a name can begin after a text.
func mayStartName(before string, folders bool) bool {
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

// nameContinues reports whether the text after a name continues it.
func nameContinues(after string) bool {
	switch {
	case after == "":
		return false
	case after[0] == '.' || after[0] == '-':
		return len(after) > 1 && endsInName(after[:2]) && after[1] != '.' && after[1] != '-'
	}
	return after[0] == '/' || endsInName(after[:1])
}

// distinctLiterals returns the literals of a text, each once.
func (x *patterns) distinctLiterals(text string) []string {
	found := x.literal.FindAllString(text, -1)
	for i, l := range found {
		found[i] = strings.TrimRight(strings.Trim(l, "`"), ".,;:")
	}
	return distinct(found)
}
