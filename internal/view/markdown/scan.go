package markdown

import (
	"slices"
	"strings"
)

// indent counts the blanks at the start of a line; tabs are already replaced.
func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }

func blank(l string) bool { return strings.TrimLeft(l, " ") == "" }

// fence is the opening line of a block of code.
type fence struct {
	mark   byte // 0 means there is none
	length int
	indent int
	info   string
}

// opensFence reads the line that begins a block of code.
func opensFence(l string) fence {
	in := indent(l)
	rest := l[in:]
	if in > 3 || len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return fence{}
	}
	mark := rest[:1]
	info := strings.TrimLeft(rest, mark)
	n := len(rest) - len(info)
	if n < 3 || mark == "`" && strings.Contains(info, "`") {
		return fence{}
	}
	return fence{mark[0], n, in, strings.TrimSpace(info)}
}

// closes reports whether a line ends the block of code.
func (f fence) closes(l string) bool {
	in := indent(l)
	rest := strings.TrimRight(l[in:], " ")
	return in <= 3 && len(rest) >= f.length && strings.Trim(rest, string(f.mark)) == ""
}

// language is the first word after the fence.
func language(info string) string {
	word, _, _ := strings.Cut(info, " ")
	word, _, _ = strings.Cut(strings.Trim(word, "{}."), ",")
	return word
}

// isHeading reports whether a line is a heading with number signs.
func isHeading(l string) bool {
	in := indent(l)
	rest := strings.TrimLeft(l[in:], "#")
	n := len(l) - in - len(rest)
	return in <= 3 && n > 0 && n <= 6 && (rest == "" || rest[0] == ' ')
}

// isBreak reports whether a line is a thematic break.
func isBreak(l string) bool {
	in := indent(l)
	if in > 3 || in == len(l) || strings.IndexByte("-*_", l[in]) < 0 {
		return false
	}
	return strings.Count(l, l[in:in+1]) >= 3 && strings.Trim(l, " "+l[in:in+1]) == ""
}

// isUnderline reports whether a line makes a heading of the text above it.
func isUnderline(l string) bool {
	t := strings.TrimRight(l[indent(l):], " ")
	return indent(l) <= 3 && t != "" && (strings.Trim(t, "=") == "" || strings.Trim(t, "-") == "")
}

func isQuote(l string) bool {
	in := indent(l)
	return in <= 3 && in < len(l) && l[in] == '>'
}

// item is the marker of a list's item.
type item struct {
	mark   byte // the bullet, or the character after the number; 0 means the line begins no item
	number string
	offset int // start of the item's text
	empty  bool
}

// opensItem reads the line that begins an item.
func opensItem(l string) item {
	in := indent(l)
	rest := l[in:]
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if in > 3 || digits > 9 || len(rest) == digits {
		return item{}
	}
	mark := rest[digits]
	if digits == 0 && strings.IndexByte("-+*", mark) < 0 || digits > 0 && mark != '.' && mark != ')' {
		return item{}
	}
	text := rest[digits+1:]
	it := item{mark: mark, number: rest[:digits], offset: in + digits + 2, empty: blank(text)}
	if it.empty {
		return it
	}
	switch n := indent(text); {
	case n == 0:
		return item{}
	case n <= 4:
		it.offset += n - 1
	}
	return it
}

// interrupts reports whether the item ends a paragraph that it follows.
func (i item) interrupts() bool {
	return i.mark != 0 && !i.empty && (i.number == "" || strings.TrimLeft(i.number, "0") == "1")
}

// htmlEnd returns the end mark of the block of HTML that a line begins: a text, or "blank" for a blank line. It
// is empty if the line begins none. after says that it follows a paragraph, which not all blocks can end.
func htmlEnd(l string, after bool) string {
	t := strings.ToLower(strings.TrimLeft(l, " "))
	if indent(l) > 3 || !strings.HasPrefix(t, "<") {
		return ""
	}
	for _, kind := range [][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![cdata[", "]]>"}} {
		if strings.HasPrefix(t, kind[0]) {
			return kind[1]
		}
	}
	if len(t) > 2 && t[1] == '!' && t[2] >= 'a' && t[2] <= 'z' {
		return ">"
	}
	name := strings.TrimPrefix(t[1:], "/")
	n := len(name) - len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz0123456789-"))
	name, rest := name[:n], name[n:]
	delimited := rest == "" || rest[0] == ' ' || rest[0] == '>' || strings.HasPrefix(rest, "/>")
	switch {
	case name == "" || !delimited:
		return ""
	case t[1] != '/' && slices.Contains([]string{"script", "pre", "style", "textarea"}, name):
		return "</"
	case strings.Contains(blockTags, " "+name+" ") || !after && strings.HasSuffix(strings.TrimRight(t, " "), ">"):
		return "blank"
	}
	return ""
}

// blockTags are the elements that always begin a block of HTML.
const blockTags = " address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset " +
	"figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem meta nav " +
	"noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr track ul "

// maxDepth is how deep blocks are nested by the marks of one line.
const maxDepth = 20

// maxIndent is how many blanks a line may begin with, which limits the depth of lists; further blanks are
// dropped.
const maxIndent = 200

// shallow escapes a mark that would nest a block deeper than maxDepth, or would make a heading from a text that
// is too long.
func shallow(l string) string {
	if in := indent(l); in > maxIndent {
		l = l[in-maxIndent:]
	}
	if len(l) < maxDepth {
		return l
	}
	at := 0
	for range maxDepth {
		at += indent(l[at:])
		rest := l[at:]
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		switch {
		case rest == "":
			return l
		case rest[0] == '>':
			at++
		case n+1 < len(rest) && strings.IndexByte("-+*.)", rest[n]) >= 0 && rest[n+1] == ' ' && n < 10:
			at += n + 1
		case rest[0] == '#' && len(l) > longText:
			return l[:at] + `\` + rest
		default:
			return l
		}
	}
	at += indent(l[at:])
	for at < len(l) && l[at] >= '0' && l[at] <= '9' {
		at++
	}
	return l[:at] + `\` + l[at:]
}
