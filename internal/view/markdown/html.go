package markdown

import (
	"fmt"
	escaper "html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// HTML converts markdown for a page. Nothing in it is active: HTML in the text is shown as text, links lead
// only to http, https and mailto addresses, and images are only those whose PNG, JPEG or GIF is in their
// address. Control characters are visible, as in Plain. Any text has a form, and every tag that is opened is
// closed. Code has spans whose classes are t- and a role, such as t-keyword. Lexers are shared caches; nil loads its own.
func HTML(text string, lexers *Lexers) string {
	var src strings.Builder
	for l := range strings.Lines(Plain(text)) {
		src.WriteString(shallow(l))
	}
	st := &Stream{}
	st.ready()
	w := &pageWriter{src: []byte(src.String()), lexers: lexers}
	w.blocks(st.parse(w.src), 0)
	return w.String()
}

// pageWriter writes a document as HTML.
type pageWriter struct {
	strings.Builder
	src    []byte
	lexers *Lexers
	cell   bool // of a table, where bars are escaped even in code
}

func (w *pageWriter) text(s string) { w.WriteString(escaper.EscapeString(s)) }

// within writes a tag with attributes, which are escaped already, around more.
func (w *pageWriter) within(tag, attributes string, more func()) {
	w.WriteString("<" + tag + attributes + ">")
	more()
	w.WriteString("</" + tag + ">")
}

func (w *pageWriter) blocks(n ast.Node, depth int) {
	if depth > deepest {
		w.text("…")
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.block(c, depth+1)
	}
}

func (w *pageWriter) block(n ast.Node, depth int) {
	inner := func() { w.blocks(n, depth) }
	words := func() { w.inlines(n, depth) }
	switch n := n.(type) {
	case *ast.Heading:
		w.within("h"+strconv.Itoa(n.Level), "", words)
	case *ast.Paragraph:
		w.within("p", "", words)
	case *ast.TextBlock:
		words()
	case *longBlock:
		w.within("p", "", func() { w.text(withoutData(w.lines(n))) })
	case *picture:
		w.within("p", "", func() { w.image(n.media, n.data, n.name) })
	case *ast.FencedCodeBlock:
		w.within("pre", "", func() { w.within("code", "", func() { w.code(language(string(n.Language(w.src))), w.lines(n)) }) })
	case *ast.CodeBlock:
		w.within("pre", "", func() { w.within("code", "", func() { w.text(w.lines(n)) }) })
	case *ast.HTMLBlock:
		w.within("pre", "", func() {
			w.text(w.lines(n))
			if n.HasClosure() {
				w.text(string(n.ClosureLine.Value(w.src)))
			}
		})
	case *ast.ThematicBreak:
		w.WriteString("<hr>")
	case *ast.Blockquote:
		w.within("blockquote", "", inner)
	case *ast.List:
		w.list(n, inner)
	case *ast.ListItem:
		w.within("li", "", inner)
	case *table:
		w.table(n, depth)
	default: // such as the definition of a link
		return
	}
	w.WriteString("\n")
}

// code writes code with a span around each stretch of tokens that has a role; its class is t- and the role.
func (w *pageWriter) code(language, code string) {
	c, class := highlighter(Style{Lexers: w.lexers, classes: true}, language), ""
	turn := func(to string) {
		if to == class {
			return
		}
		if class != "" {
			w.WriteString("</span>")
		}
		if to != "" {
			w.WriteString(`<span class="t-` + to + `">`)
		}
		class = to
	}
	for l := range strings.Lines(code) {
		text, end := strings.CutSuffix(l, "\n")
		for _, s := range c.line(text) {
			if s.text != "" {
				turn(s.look.color)
				w.text(s.text)
			}
		}
		if turn(""); end {
			w.text("\n")
		}
	}
}

func (w *pageWriter) list(n *ast.List, inner func()) {
	switch {
	case !n.IsOrdered():
		w.within("ul", "", inner)
	case n.Start == 1:
		w.within("ol", "", inner)
	default:
		w.within("ol", fmt.Sprintf(` start="%d"`, n.Start), inner)
	}
}

func (w *pageWriter) table(n *table, depth int) {
	w.cell = true
	defer func() { w.cell = false }()
	w.within("table", "", func() {
		tag := "th"
		for r := n.FirstChild(); r != nil; r = r.NextSibling() {
			w.within("tr", "", func() {
				c := r.FirstChild()
				for _, at := range n.columns { // surplus cells of a row are omitted
					style := map[side]string{atRight: ` style="text-align:right"`, atCenter: ` style="text-align:center"`}[at]
					w.within(tag, style, func() {
						if c != nil {
							w.inlines(c, depth)
							c = c.NextSibling()
						}
					})
				}
			})
			tag = "td"
		}
	})
}

func (w *pageWriter) inlines(n ast.Node, depth int) {
	if depth > deepest {
		w.text("…")
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.inline(c, depth+1)
	}
}

func (w *pageWriter) inline(n ast.Node, depth int) {
	inner := func() { w.inlines(n, depth) }
	switch n := n.(type) {
	case *ast.Text:
		text := string(n.Segment.Value(w.src))
		if !n.IsRaw() {
			text = Plain(unescape(text))
		}
		w.text(text)
		switch {
		case n.HardLineBreak():
			w.WriteString("<br>\n")
		case n.SoftLineBreak():
			w.WriteString("\n")
		}
	case *ast.String:
		w.text(Plain(string(n.Value)))
	case *ast.CodeSpan:
		code := w.raw(n)
		if w.cell {
			code = strings.ReplaceAll(code, `\|`, "|")
		}
		w.within("code", "", func() { w.text(code) })
	case *ast.Emphasis:
		w.within(map[bool]string{true: "strong", false: "em"}[n.Level > 1], "", inner)
	case *struck:
		w.within("del", "", inner)
	case *ast.Link:
		w.link(address(n.Destination), inner)
	case *ast.AutoLink:
		to := address(n.URL(w.src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
			to = "mailto:" + to
		}
		w.link(to, func() { w.text(Plain(string(n.Label(w.src)))) })
	case *ast.Image:
		p := readPicture("![](" + address(n.Destination) + ")")
		if p == nil {
			p = &picture{}
		}
		w.image(p.media, p.data, strings.TrimRight("[image: "+w.painter().plainText(n), ": ")+"]")
	case *ast.RawHTML:
		w.rawHTML(n)
	case *checkBox:
		w.text(map[bool]string{true: "☑ ", false: "☐ "}[n.done])
	default:
		inner()
	}
}

// link writes a link if its address is allowed.
func (w *pageWriter) link(to string, inner func()) {
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if len(to) > len(scheme) && strings.EqualFold(to[:len(scheme)], scheme) {
			w.within("a", ` href="`+escaper.EscapeString(to)+`" rel="noopener noreferrer"`, inner)
			return
		}
	}
	inner()
}

// image writes an image with its data, or its replacement text.
func (w *pageWriter) image(media, data, name string) {
	if data == "" {
		w.text(Plain(name))
		return
	}
	alt := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(Plain(name), "[image"), "]"), ": ")
	w.WriteString(`<img src="data:` + media + ";base64," + data + `" alt="` + escaper.EscapeString(alt) + `">`)
}

// rawHTML writes a tag as text, except the one that breaks lines.
func (w *pageWriter) rawHTML(n *ast.RawHTML) {
	text, breaks := w.painter().tag(n)
	if breaks {
		w.WriteString("<br>")
		return
	}
	w.text(text)
}

func (w *pageWriter) painter() *painter       { return &painter{src: w.src} }
func (w *pageWriter) raw(n ast.Node) string   { return (&writer{painter: w.painter()}).raw(n) }
func (w *pageWriter) lines(n ast.Node) string { return w.painter().lines(n) }
