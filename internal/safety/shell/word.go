package shell

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is the knowledge about an argument before expansion.
type word struct {
	text  string   // the value, or the common beginning of its values
	known bool     // text is the whole value
	one   bool     // it is exactly one argument
	loose bool     // text doesn't determine how the arguments begin
	safe  bool     // no argument can be read as an option
	paths []string // locations of the values if they are paths; nil means any
	each  []string // all possible values, if few; nil means known, or unlimited
}

// maxEach bounds the followed values of a word.
const maxEach = 32

// values lists the possible values of a word; nil means unknown.
func (w word) values() []string {
	if w.known {
		return []string{w.text}
	}
	return w.each
}

func literal(text string) word {
	return word{text: text, known: true, one: true, paths: []string{text}}
}

// operand reports whether no value of an unknown word can be read as an option.
func (w word) operand() bool {
	return w.safe || !w.loose && w.text != "" && w.text[0] != '-'
}

// merge returns the knowledge about a variable that takes each of the words.
func merge(items []word) word {
	if len(items) == 1 && items[0].known {
		return items[0]
	}
	out := word{one: true, safe: len(items) > 0, each: allKnown(items)}
	for i, w := range items {
		if w.paths == nil || len(out.paths) > 64 {
			return word{one: true, loose: true}
		}
		out.loose = out.loose || w.loose
		out.safe = out.safe && (w.operand() || w.known && w.text == "")
		out.paths = append(out.paths, w.paths...)
		if i == 0 {
			out.text = w.text
		}
		out.text = commonPrefix(out.text, w.text)
	}
	out.loose = out.loose || len(items) == 0
	return out
}

// allKnown lists the values of words if all are known and few.
func allKnown(items []word) []string {
	var out []string
	for _, w := range items {
		if !w.known || len(out) == maxEach {
			return nil
		}
		out = append(out, w.text)
	}
	return out
}

func commonPrefix(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[:i]
}

// expand resolves words as bash would, and judges the substitutions inside.
func (j *judge) expand(words []*syntax.Word, s scope) []word {
	var out []word
	for _, w := range words {
		for _, alt := range j.braces(w, s) {
			out = append(out, j.resolveWord(alt, s))
		}
	}
	return out
}

// braces splits a word by brace expansion.
func (j *judge) braces(w *syntax.Word, s scope) []*syntax.Word {
	if s.posix || !hasBrace(w.Parts) {
		return []*syntax.Word{w}
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(split) {
		j.strayBrace(w, w.Parts, s)
		return []*syntax.Word{w}
	}
	all, ok := alternatives(split.Parts, j.left)
	if !ok {
		j.unproven(s, s.text(w), "these braces are not judged")
		return []*syntax.Word{w}
	}
	j.left -= len(all)
	out := make([]*syntax.Word, len(all))
	for i, parts := range all {
		j.strayBrace(w, parts, s)
		out[i] = &syntax.Word{Parts: parts}
	}
	return out
}

func hasBrace(parts []syntax.WordPart) bool {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.ContainsRune(lit.Value, '{') {
			return true
		}
	}
	return false
}

// strayBrace rejects braces that were not split but that another shell might split.
func (j *judge) strayBrace(w *syntax.Word, parts []syntax.WordPart, s scope) {
	open, list := false, false
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			open = open || strings.ContainsRune(lit.Value, '{')
			list = list || strings.ContainsRune(lit.Value, ',') || strings.Contains(lit.Value, "..")
		}
	}
	if open && list {
		j.unproven(s, s.text(w), "these braces are not judged")
	}
}

// alternatives expands the braces of a word, up to a limit.
func alternatives(parts []syntax.WordPart, limit int) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		choices := [][]syntax.WordPart{{p}}
		if b, ok := p.(*syntax.BraceExp); ok {
			choices = sequence(b)
			for _, elem := range b.Elems {
				if b.Sequence {
					break
				}
				sub, ok := alternatives(elem.Parts, limit)
				if !ok {
					return nil, false
				}
				choices = append(choices, sub...)
			}
		}
		if len(choices) == 0 || len(out)*len(choices) > min(limit, 256) {
			return nil, false
		}
		out = product(out, choices)
	}
	return out, true
}

// sequence expands a range of small numbers, or returns nothing.
func sequence(b *syntax.BraceExp) [][]syntax.WordPart {
	if !b.Sequence || len(b.Elems) != 2 || !counted(b.Elems[0].Lit()) || !counted(b.Elems[1].Lit()) {
		return nil
	}
	from, _ := strconv.Atoi(b.Elems[0].Lit())
	to, _ := strconv.Atoi(b.Elems[1].Lit())
	var out [][]syntax.WordPart
	for n := from; n <= to; n++ {
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: strconv.Itoa(n)}})
	}
	return out
}

func product(heads, tails [][]syntax.WordPart) [][]syntax.WordPart {
	var out [][]syntax.WordPart
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, append(append([]syntax.WordPart(nil), h...), t...))
		}
	}
	return out
}

// building is a word under construction.
type building struct {
	j    *judge
	s    scope
	word        // so far; known until the first unknown part
	raw  []byte // text with its globs, as long as there are only literals and globs
	glob int    // position of the first glob in raw; -1: none
	cut  bool   // text is final: the rest is uncertain
	wild bool   // something other than a glob is unknown
	text *strings.Builder
}

func (j *judge) resolveWord(w *syntax.Word, s scope) word {
	if len(w.Parts) == 1 { // the common case, without any allocation
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && (lit.Value == "[" || !strings.ContainsAny(lit.Value, `\*?[~`)) {
			return literal(lit.Value)
		}
	}
	b := &building{j: j, s: s, glob: -1, text: &strings.Builder{}}
	b.word = word{known: true, one: true}
	for i, p := range w.Parts {
		b.part(p, i == 0)
	}
	return b.finish()
}

func (b *building) finish() word {
	w := b.word
	w.text = b.text.String()
	switch {
	case w.known:
		w.paths = []string{w.text}
	case b.glob >= 0 && !b.wild:
		w.known, w.one = false, false
		w.paths = []string{globBase(string(b.raw), b.glob)}
	}
	return w
}

// globBase returns the folder that contains all matches of a glob.
func globBase(pattern string, at int) string {
	dir, rest := filepath.Split(pattern[:at])
	rest += pattern[at:]
	for name := range strings.SplitSeq(rest, "/") {
		if strings.HasPrefix(name, ".") || name != "" && strings.ContainsAny(name[:1], "[?") {
			return "/" // it may match ".."
		}
	}
	if dir == "" {
		return "."
	}
	return dir
}

// followed lists the possible values with a variable added; nil means unknown.
func (b *building) followed(value word, quoted bool) (out []string) {
	heads := b.each
	if b.known {
		heads = []string{b.text.String()}
	}
	tails := value.values()
	if len(heads)*len(tails) > maxEach {
		return nil
	}
	for _, tail := range tails {
		if !quoted && (tail == "" || strings.ContainsAny(tail, " \t\n*?[\\")) {
			return nil // it may be more or less than one word
		}
		for _, head := range heads {
			out = append(out, head+tail)
		}
	}
	return out
}

// literal adds known text.
func (b *building) literal(text string) {
	if b.wild && text != "" {
		b.paths = nil // knowledge about the previous part no longer applies
	}
	for i := range b.each {
		b.each[i] += text
	}
	b.raw = append(b.raw, text...)
	if !b.cut {
		b.text.WriteString(text)
	}
}

// unknown adds an uncertain part. Unquoted it may be any number of arguments.
func (b *building) unknown(quoted bool) {
	first := !b.cut && b.text.Len() == 0
	b.known, b.cut, b.wild, b.paths, b.each = false, true, true, nil, nil
	if first || !quoted {
		b.loose = true
	}
	if !quoted {
		b.one, b.safe = false, false
	}
}

func (b *building) part(p syntax.WordPart, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.unquoted(p.Value, first)
	case *syntax.SglQuoted:
		b.single(p)
	case *syntax.DblQuoted:
		b.double(p)
	case *syntax.BraceExp:
		b.unknown(false)
	default:
		b.dynamic(p, false)
	}
}

func (b *building) single(p *syntax.SglQuoted) {
	if !p.Dollar {
		b.literal(p.Value)
		return
	}
	text, ok := ansi(p.Value)
	if !ok || b.s.posix || !utf8.ValidString(text) { // logs and judges can't represent such a name
		b.j.unproven(b.s, b.s.text(p), "this quoted text is not understood")
		b.unknown(false)
		return
	}
	b.literal(text)
}

func (b *building) double(p *syntax.DblQuoted) {
	if p.Dollar {
		b.j.unproven(b.s, b.s.text(p), "text that is translated can't be known")
	}
	for _, q := range p.Parts {
		if lit, ok := q.(*syntax.Lit); ok {
			b.literal(unescape(lit.Value, "$`\"\\"))
			continue
		}
		b.dynamic(q, true)
	}
}

// unquoted adds bare text, with backslashes, globs and tildes.
func (b *building) unquoted(text string, first bool) {
	if first && strings.HasPrefix(text, "~") {
		text = b.tilde(text)
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			switch i++; {
			case i == len(text): // the end of the whole text, where bash keeps it
				b.unknown(true)
			case text[i] != '\n':
				b.literal(text[i : i+1])
			}
		case '*', '?', '[':
			if b.glob < 0 {
				b.glob = len(b.raw)
			}
			b.raw = append(b.raw, c)
			b.known, b.one, b.cut, b.each = false, false, true, nil
			b.loose = b.loose || b.text.Len() == 0
		case '~':
			if i > 0 && (text[i-1] == '=' || text[i-1] == ':') {
				b.unknown(true)
			}
			b.literal("~")
		default:
			b.literal(text[i : i+1])
		}
	}
}

// tilde inserts the home folder and returns the rest.
func (b *building) tilde(text string) string {
	rest := text[1:]
	if (rest == "" || rest[0] == '/') && b.j.at.Home != "" {
		b.literal(b.j.at.Home)
		return rest
	}
	b.unknown(true) // another user's home, or the text itself
	b.loose, b.safe = false, true
	return rest
}

// unescape removes backslashes before the given characters, and escaped line ends.
func unescape(text, special string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(special, text[i+1]) >= 0 {
				i++
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
