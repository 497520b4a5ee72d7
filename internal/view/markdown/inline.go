package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// deepest is the largest depth of nested looks.
const deepest = 200

// inline returns the text of a block.
func (p *painter) inline(n ast.Node, l look) []span {
	w := &writer{painter: p}
	w.children(n, l, 0)
	return w.out
}

// plainText returns the text in a node, without looks.
func (p *painter) plainText(n ast.Node) string {
	var b strings.Builder
	for _, s := range p.inline(n, look{}) {
		b.WriteString(s.text)
	}
	return b.String()
}

// tag returns HTML in a text as it was written, and whether it is the tag that breaks lines.
func (p *painter) tag(n *ast.RawHTML) (text string, breaks bool) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		seg := n.Segments.At(i)
		b.Write(seg.Value(p.src))
	}
	return b.String(), strings.TrimRight(strings.ToLower(b.String()), " />\n") == "<br"
}

// writer collects the text of one block.
type writer struct {
	*painter
	cell bool // of a table, where bars are escaped even in code
	out  []span
}

func (w *writer) put(text string, l look) {
	if text != "" {
		w.out = append(w.out, span{text, l})
	}
}

// mark writes the mark for a look if there are no colours.
func (w *writer) mark(text string, l look) {
	if w.style.NoColor {
		w.put(text, l)
	}
}

func (w *writer) children(n ast.Node, l look, depth int) {
	if depth > deepest {
		w.put("…", l)
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.node(c, l, depth+1)
	}
}

func (w *writer) node(n ast.Node, l look, depth int) {
	switch n := n.(type) {
	case *ast.Text:
		w.text(n, l)
	case *ast.String:
		w.put(Plain(string(n.Value)), l)
	case *ast.CodeSpan:
		l.color = w.style.pick(inlineCode)
		w.mark("`", l)
		text := strings.ReplaceAll(w.raw(n), "\n", " ")
		if w.cell {
			text = strings.ReplaceAll(text, `\|`, "|")
		}
		w.put(text, l)
		w.mark("`", l)
	case *ast.Emphasis:
		mark := "*"
		if n.Level > 1 {
			l.bold, mark = true, "**"
		} else {
			l.italic = true
		}
		w.mark(mark, l)
		w.children(n, l, depth)
		w.mark(mark, l)
	case *struck:
		l.strike = true
		w.mark("~~", l)
		w.children(n, l, depth)
		w.mark("~~", l)
	case *ast.Link:
		w.link(n, l, depth)
	case *ast.AutoLink:
		l.color, l.under = w.style.pick(link), true
		w.put(Plain(string(n.Label(w.src))), l)
	case *ast.Image:
		w.image(n, l)
	case *ast.RawHTML:
		w.rawHTML(n, l)
	case *checkBox:
		box := "☐ "
		if n.done {
			box = "☑ "
		}
		l.color = w.style.pick(marker)
		w.put(box, l)
	default:
		w.children(n, l, depth)
	}
}

func (w *writer) text(n *ast.Text, l look) {
	raw := string(n.Segment.Value(w.src))
	if !n.IsRaw() {
		raw = unescape(raw)
	}
	text := strings.ReplaceAll(Plain(raw), "\n", " ")
	switch {
	case n.HardLineBreak():
		text = strings.TrimRight(text, " ") + "\n"
	case n.SoftLineBreak():
		text += " "
	}
	w.put(text, l)
}

// link shows the text and, if it differs, the address.
func (w *writer) link(n *ast.Link, l look, depth int) {
	text := l
	text.color, text.under = w.style.pick(link), true
	before := len(w.out)
	w.children(n, text, depth)
	var shown strings.Builder
	for _, s := range w.out[before:] {
		shown.WriteString(s.text)
	}
	url := address(n.Destination)
	if strings.HasPrefix(url, "data:") {
		url = "data:…"
	}
	if url != "" && url != shown.String() && url != "mailto:"+shown.String() {
		w.put(" ("+url+")", look{faint: true})
	}
}

func (w *writer) image(n *ast.Image, l look) {
	w.put(strings.TrimRight("[image: "+w.plainText(n), ": ")+"]", l)
	if url := address(n.Destination); url != "" && !strings.HasPrefix(url, "data:") {
		w.put(" "+url, look{faint: true})
	}
}

// rawHTML shows a tag as it is, except the one that breaks lines.
func (w *writer) rawHTML(n *ast.RawHTML, l look) {
	text, breaks := w.tag(n)
	if breaks {
		w.put("\n", l)
		return
	}
	l.faint = true
	w.put(strings.ReplaceAll(Plain(text), "\n", " "), l)
}

// raw returns the text within a node as it was written.
func (w *writer) raw(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(w.src))
		}
	}
	return Plain(b.String())
}

// address makes the destination of a link harmless, and one line.
func address(raw []byte) string {
	return strings.ReplaceAll(Plain(unescape(string(raw))), "\n", " ")
}

// unescape resolves backslashes and entities.
func unescape(text string) string {
	if !strings.ContainsAny(text, `\&`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\\' && i+1 < len(text) && util.IsPunct(text[i+1]):
			b.WriteByte(text[i+1])
			i += 2
		case text[i] == '&':
			n := strings.IndexByte(text[i:min(len(text), i+40)], ';') + 1
			if n == 0 {
				n = 1
			}
			b.Write(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(text[i : i+n]))))
			i += n
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String()
}
