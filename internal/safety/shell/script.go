package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/inspan/inspan/internal/base/text"
)

// dialects is the grammars that a text is for. With both, it must be harmless in either, since sh differs
// between systems.
type dialects struct{ bash, posix bool }

// script parses and judges a whole text.
func (j *judge) script(text string, s scope, d dialects) {
	if s.level >= maxDepth {
		j.unproven(s, text, "scripts are nested too deep")
		return
	}
	if why := oversized(text); why != "" {
		j.unproven(s, text, why)
		return
	}
	if why := odd(text); why != "" {
		j.unproven(s, text, why)
	}
	s.src, s.level = text, s.level+1
	from := len(j.segments)
	if d.bash {
		s.posix = false
		j.parse(s, syntax.LangBash)
	}
	if d.posix {
		s.posix = true
		middle := len(j.segments)
		j.parse(s, syntax.LangPOSIX)
		// The second parse counts where its results differ from those of the first.
		alike := func(a, b Segment) bool {
			return a.Text == b.Text && a.Class == b.Class && slices.Equal(a.Argv, b.Argv) && slices.Equal(a.Effects, b.Effects)
		}
		if slices.EqualFunc(j.segments[from:middle], j.segments[middle:], alike) {
			j.segments = j.segments[:middle]
		}
	}
}

func (j *judge) parse(s scope, lang syntax.LangVariant) {
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(s.src), "")
	if err != nil {
		j.unproven(s, s.src, "it does not parse: "+err.Error())
	}
	if file != nil { // after an error the part before it, for deny rules
		j.list(file.Stmts, s)
	}
}

// oversized bounds the time and the memory of an analysis.
func oversized(text string) string {
	if len(text) > maxText {
		return "it is too long to be judged"
	}
	depth, backquotes := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '`':
			backquotes++
		}
		if depth > maxNest || backquotes > 2*maxNest {
			return "it is nested too deep to be judged"
		}
	}
	return ""
}

// hiddenLine matches comments whose next line could be read as a part of them. Bash doesn't.
const hiddenLine = "(?m)(^|[\\s;&|()<>`])#[^\n]*\\\\$"

// joinedToken matches lines that continue within a token for bash but not for parsers, such as $ and ( on the
// next line.
const joinedToken = "[$<>({`]\\\\\n|[^\\s;&|]\\\\\n[(<>]"

// odd finds characters that shells and people read differently.
func odd(line string) string {
	switch {
	case !utf8.ValidString(line):
		return "it is not valid UTF-8"
	case strings.Contains(line, "\\\n") && regexp.MustCompile(hiddenLine).MatchString(line):
		return "a comment ends with a backslash, which shells and parsers read differently"
	case strings.Contains(line, "\\\n") && regexp.MustCompile(joinedToken).MatchString(line):
		return "a token continues on the next line, which shells and parsers read differently"
	case strings.Contains(line, "$${"), strings.Contains(line, "$$("):
		// Within double quotes bash takes the second $ and the bracket for an expansion when it looks for the
		// closing quote, and $$ for one when it expands them.
		return "$$ before a bracket, which shells and parsers read differently"
	case text.Holds(line, text.Unproven):
		return "it holds a control or an invisible character"
	}
	return ""
}

// slice returns the text of a node as written.
func (s scope) slice(from, to syntax.Pos) string {
	a, b := int(from.Offset()), int(to.Offset())
	if !from.IsValid() || !to.IsValid() || a > b || b > len(s.src) {
		return ""
	}
	return s.src[a:b]
}

func (s scope) text(n syntax.Node) string { return s.slice(n.Pos(), n.End()) }
