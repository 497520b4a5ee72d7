package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxLink  = 1000 // bytes of an address; longer ones are left out
	maxTitle = 300
)

// renderer converts elements to Markdown. Nesting is at most maxDepth, so it may recurse.
type renderer struct {
	writer
	base *url.URL
	junk bool // junk is also rendered
	flow bool // everything goes into one line, without layout
}

func (r *renderer) skips(n *node) bool { return n.gone || n.junk && !r.junk || r.full() }

func (r *renderer) kids(n *node) {
	for _, k := range n.kids {
		if r.full() {
			r.cut = true
			return
		}
		r.node(k)
	}
}

func (r *renderer) node(n *node) {
	switch {
	case n.tag == 0 && n.name == "":
		r.words(n.text)
	case r.skips(n):
	case blockish(n.tag):
		r.block(n)
	default:
		r.inline(n)
	}
}

func (r *renderer) block(n *node) {
	switch n.tag {
	case atom.Hr:
		r.paragraph()
		r.word("---")
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		r.heading(n)
		return
	case atom.Ul, atom.Ol, atom.Dir, atom.Menu:
		r.list(n)
		return
	case atom.Li:
		r.item("- ", n)
		return
	case atom.Blockquote:
		r.paragraph()
		r.nested("> ", "> ", func() { r.kids(n) })
	case atom.Pre, atom.Listing, atom.Xmp:
		r.code(n, "")
		return
	case atom.Dt:
		r.line()
		r.within(mark{open: "**", shut: "**"}, func() { r.kids(n) })
		r.line()
		return
	case atom.Dd:
		r.line()
		r.nested("  ", "  ", func() { r.kids(n) })
		r.line()
		return
	case atom.Summary:
		r.paragraph()
		r.within(mark{open: "**", shut: "**"}, func() { r.kids(n) })
	case atom.Table:
		r.table(n)
		return
	default:
		if lang := langOf(n); lang != "" {
			if pre := lone(n, atom.Pre); pre != nil {
				r.code(pre, lang)
				return
			}
		}
		r.paragraph()
		r.kids(n)
	}
	r.paragraph()
}

func (r *renderer) inline(n *node) {
	switch n.tag {
	case atom.Br:
		r.line()
	case atom.Wbr:
	case atom.Img:
		r.image(n)
	case atom.A:
		r.link(n)
	case atom.Strong, atom.B:
		r.within(mark{open: "**", shut: "**"}, func() { r.kids(n) })
	case atom.Em, atom.I, atom.Cite, atom.Dfn:
		r.within(mark{open: "*", shut: "*"}, func() { r.kids(n) })
	case atom.Del, atom.S, atom.Strike:
		r.within(mark{open: "~~", shut: "~~"}, func() { r.kids(n) })
	case atom.Code, atom.Tt, atom.Samp, atom.Kbd:
		r.span(n)
	case atom.Q:
		r.within(mark{open: "“", shut: "”"}, func() { r.kids(n) })
	case atom.Sup:
		r.within(mark{open: "^"}, func() { r.kids(n) })
	case atom.Math:
		r.words(text.Short(textOf(n, 2000), 1000))
	default:
		r.kids(n)
	}
}

func (r *renderer) heading(n *node) {
	r.paragraph()
	if r.flow {
		r.kids(n)
		r.paragraph()
		return
	}
	r.head = strings.Repeat("#", headingLevel(n.tag)) + " "
	text := r.flat(n)
	if text = strings.TrimRight(text, " #¶§🔗"); text != "" {
		r.word(text)
	}
	r.head = ""
	r.paragraph()
}

// flat renders the children of an element into one line.
func (r *renderer) flat(n *node) string {
	sub := renderer{writer: writer{limit: max(0, r.limit-r.out.Len())}, base: r.base, junk: r.junk, flow: true}
	sub.kids(n)
	for i := len(sub.marks) - 1; i >= 0; i-- {
		sub.shut(&sub.marks[i])
	}
	r.cut = r.cut || sub.cut
	return strings.Join(strings.Fields(sub.out.String()), " ")
}

func (r *renderer) list(n *node) {
	if len(r.levels) == 0 {
		r.paragraph()
	} else {
		r.line()
	}
	next, err := strconv.Atoi(n.attr["start"])
	if err != nil || next < 0 || next > 1e9 {
		next = 1
	}
	for _, k := range n.kids {
		switch {
		case k.tag == atom.Li && !r.skips(k):
			bullet := "- "
			if n.tag == atom.Ol {
				bullet = fmt.Sprintf("%d. ", next)
				next++
			}
			r.item(bullet, k)
		case k.name != "":
			r.node(k)
		default:
			r.words(k.text)
		}
	}
	if len(r.levels) == 0 {
		r.paragraph()
	} else {
		r.line()
	}
}

func (r *renderer) item(bullet string, n *node) {
	r.line()
	r.nested(bullet, strings.Repeat(" ", len(bullet)), func() { r.kids(n) })
	r.end(1)
	r.gap = 1 // items stand close, including those that hold paragraphs
}

func (r *renderer) link(n *node) {
	to := r.absolute(n.attr["href"])
	if to == "" || n.all == 0 && !holdsImage(n) {
		if strings.HasPrefix(n.attr["href"], "#") && named(n.attr["class"], anchors) {
			return
		}
		r.kids(n)
		return
	}
	r.within(mark{open: "[", shut: "](" + to + ")", once: true}, func() { r.kids(n) })
}

// anchors are links from a heading to itself.
func anchors(word string) bool {
	return word == "headerlink" || word == "anchor" || word == "permalink"
}

func holdsImage(n *node) bool {
	for _, k := range n.kids {
		if !k.gone && (k.tag == atom.Img && k.attr["alt"] != "" || holdsImage(k)) {
			return true
		}
	}
	return false
}

// absolute returns the full address of a link; empty if it leads nowhere else or can't be followed.
func (r *renderer) absolute(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxLink {
		return ""
	}
	u, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if r.base != nil {
		u = r.base.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" && r.base != nil {
		return ""
	}
	u.User = nil
	text := strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "\n", "").Replace(text.Page(u.String()))
	if len(text) > maxLink {
		return ""
	}
	return text
}

func (r *renderer) image(n *node) {
	alt := text.Short(text.Page(n.attr["alt"]), 200)
	if alt == "" {
		return
	}
	src := ""
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(n.attr["src"])), "data:") {
		src = r.absolute(n.attr["src"])
	}
	if len(src) > 300 {
		src = ""
	}
	if r.marked("](") {
		src = "" // it stands in a link
	}
	if src == "" {
		r.word("![" + alt + "]")
		return
	}
	r.word("![" + alt + "](" + src + ")")
}

// marked reports whether a mark that ends so is around.
func (r *renderer) marked(shut string) bool {
	for _, m := range r.marks {
		if strings.HasPrefix(m.shut, shut) {
			return true
		}
	}
	return false
}

// span writes code within a line.
func (r *renderer) span(n *node) {
	raw := textOf(n, maxText)
	text := strings.Join(strings.Fields(raw), " ")
	if text == "" {
		return
	}
	r.space = r.space || raw != strings.TrimLeft(raw, " \n\t")
	fence := "`"
	for strings.Contains(text, fence) && len(fence) < 6 {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	r.word(fence + text + fence)
	r.space = raw != strings.TrimRight(raw, " \n\t")
}

// textOf returns the visible text of an element, unchanged.
func textOf(n *node, limit int) string {
	var b strings.Builder
	var add func(*node)
	add = func(n *node) {
		if n.gone || b.Len() >= limit {
			return
		}
		if n.tag == atom.Br {
			b.WriteByte('\n')
		}
		b.WriteString(n.text)
		for _, k := range n.kids {
			add(k)
		}
		if (n.tag == atom.Div || n.tag == atom.Li || n.tag == atom.Tr || n.tag == atom.P) && b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
	}
	add(n)
	return b.String()
}

// lineNumbers reports the column of numbers next to code.
func lineNumbers(n *node) bool {
	return n.attr["class"] != "" && named(n.attr["class"], func(word string) bool {
		return word == "gutter" || word == "lineno" || word == "linenos" || word == "linenumber" || word == "lnt" || word == "rouge-gutter"
	})
}

// code writes a block of code. A language may stand at the block, around it or
// in it.
func (r *renderer) code(n *node, lang string) {
	if lang == "" {
		lang = langOf(n)
	}
	if inner := lone(n, atom.Code); lang == "" && inner != nil {
		lang = langOf(inner)
	}
	text := strings.Trim(strings.TrimRight(textOf(n, maxText), " \n\t"), "\n")
	if text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) && len(fence) < 12 {
		fence += "`"
	}
	r.paragraph()
	r.verbatim(fence + lang + "\n" + text + "\n" + fence)
	r.paragraph()
}

// lone returns the only element in n, if it has this tag; text between elements is ignored.
func lone(n *node, tag atom.Atom) *node {
	var found *node
	for _, k := range n.kids {
		switch {
		case k.gone || k.name == "" && strings.TrimSpace(k.text) == "":
		case found != nil || k.name == "":
			return nil
		default:
			found = k
		}
	}
	if found != nil && found.tag != tag && found.tag == atom.Div {
		return lone(found, tag)
	}
	if found == nil || found.tag != tag {
		return nil
	}
	return found
}

// langOf returns the language of an element's code.
func langOf(n *node) string {
	lang := n.attr["data-lang"]
	if lang == "" {
		lang = n.attr["data-language"]
	}
	for class := range strings.FieldsSeq(strings.ReplaceAll(n.attr["class"], "brush: ", "brush:")) {
		for _, before := range []string{"language-", "lang-", "highlight-source-", "highlight-", "brush:", "sourceCode-"} {
			if rest, ok := strings.CutPrefix(class, before); ok && lang == "" {
				lang = rest
			}
		}
	}
	lang = strings.ToLower(strings.TrimSuffix(lang, ";"))
	if len(lang) > 20 || strings.Trim(lang, "abcdefghijklmnopqrstuvwxyz0123456789+#-.") != "" || lang == "none" || lang == "default" {
		return ""
	}
	return lang
}
