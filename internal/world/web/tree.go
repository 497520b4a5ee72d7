package web

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxNodes = 300_000 // elements and texts of a page; a page of 5 MB has about 100,000
	maxDepth = 400     // nesting of elements; deeper ones are flattened
	maxReach = 64      // open elements that are searched for an end tag
	maxSheet = 256 << 10
)

// A node is an element, or a text if it has neither tag nor name.
type node struct {
	tag  atom.Atom // 0 for texts and for elements that are not HTML's
	name string
	text string
	attr map[string]string // those that [kept] names
	kids []*node
	facts
}

// facts are the results of measure.
type facts struct {
	gone   bool // invisible
	junk   bool // not the page's main content
	all    int  // bytes of visible text
	net    int  // the same without junk
	links  int  // the part of net in links
	tables bool // it has a table in it
	blocks bool // it has code, a heading or a list in it
}

// A tree is a parsed page.
type tree struct {
	root   *node
	sheet  strings.Builder // content of its style elements
	drawn  bool            // it has scripts
	cut    bool            // it has more nodes than are read
	titled string
}

// An opened element waits for its end tag.
type opened struct {
	tag  atom.Atom
	name string
	into *node // receives the children
	gone bool  // children are invisible
	own  bool  // it is itself invisible
}

// builder builds a tree from tokens. It follows the HTML standard where pages rely on it: elements that end
// implicitly, and end tags that don't reach beyond a table cell. A formatting element doesn't extend beyond its
// block, unless it hides. The standard copies open formatting elements into each block, which would make a
// small page arbitrarily large.
type builder struct {
	tree
	stack   []opened
	nodes   int
	foreign int               // open svg and math elements
	count   map[atom.Atom]int // open elements of each tag
	carry   map[atom.Atom]int // hiding formatting elements without an end
	z       *html.Tokenizer
}

// read parses a page in UTF-8. It can't fail: any bytes are a page.
func read(src []byte) *tree {
	b := &builder{z: html.NewTokenizer(bytes.NewReader(src)), carry: map[atom.Atom]int{}, count: map[atom.Atom]int{}}
	b.root = &node{tag: atom.Body, name: "body"}
	b.stack = []opened{{tag: atom.Body, name: "body", into: b.root}}
	for b.nodes < maxNodes {
		switch b.z.Next() {
		case html.ErrorToken:
			return &b.tree
		case html.TextToken:
			b.addText()
		case html.StartTagToken:
			b.start(false)
		case html.SelfClosingTagToken:
			b.start(true)
		case html.EndTagToken:
			name, _ := b.z.TagName()
			b.end(atom.Lookup(name), string(name))
		}
	}
	b.cut = true
	return &b.tree
}

func (b *builder) top() *opened { return &b.stack[len(b.stack)-1] }

func (b *builder) addText() {
	top := b.top()
	switch top.tag {
	case atom.Script, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea, atom.Template:
		return
	case atom.Style:
		if s := b.z.Text(); b.sheet.Len()+len(s) <= maxSheet {
			b.sheet.Write(s)
		}
		return
	}
	s := string(b.z.Text())
	if top.tag == atom.Title && b.foreign == 0 {
		if b.titled == "" {
			b.titled = text.Short(text.Page(s), maxTitle)
		}
		return
	}
	if top.gone || len(b.carry) > 0 {
		return
	}
	if s = text.Page(s); s != "" {
		top.into.kids = append(top.into.kids, &node{text: s})
		b.nodes++
	}
}

// start opens an element, after closing those that end where it begins.
func (b *builder) start(selfClosing bool) {
	name, more := b.z.TagName()
	n := &node{tag: atom.Lookup(name), name: string(name)}
	for more {
		var key, val []byte
		key, val, more = b.z.TagAttr()
		if kept(string(key)) {
			if n.attr == nil {
				n.attr = map[string]string{}
			}
			if _, twice := n.attr[string(key)]; !twice {
				n.attr[string(key)] = string(val)
			}
		}
	}
	switch n.tag {
	case atom.Html, atom.Head, atom.Body, atom.Frameset:
		return
	case atom.Noscript:
		b.z.NextIsNotRawText()
	case atom.Script:
		b.drawn = true
	}
	b.implied(n.tag)
	top := b.top()
	own := hiddenByAttr(n)
	n.gone = own || top.gone
	into := n
	if len(b.stack) > maxDepth {
		into = top.into
	} else {
		top.into.kids = append(top.into.kids, n)
	}
	b.nodes++
	if void(n.tag) || selfClosing && b.foreign > 0 {
		n.gone = n.gone || len(b.carry) > 0
		if into != n && n.tag == atom.Br {
			into.kids = append(into.kids, n)
		}
		return
	}
	b.stack = append(b.stack, opened{n.tag, n.name, into, n.gone, own})
	b.count[n.tag]++
	if n.tag == atom.Svg || n.tag == atom.Math {
		b.foreign++
	}
}

// implied closes elements that end where an element of this tag begins.
func (b *builder) implied(tag atom.Atom) {
	if b.foreign > 0 && special(tag) {
		b.close(func(o opened) bool { return o.tag == atom.Svg || o.tag == atom.Math }, barrier)
	}
	if b.count[atom.P] > 0 && endsParagraph(tag) {
		b.close(is(atom.P), func(o opened) bool { return barrier(o) || o.tag == atom.Button })
	}
	switch tag {
	case atom.Li:
		b.close(is(atom.Li), firm)
	case atom.Dt, atom.Dd:
		b.close(is(atom.Dt, atom.Dd), firm)
	case atom.Td, atom.Th:
		b.close(is(atom.Td, atom.Th), is(atom.Tr, atom.Table))
	case atom.Tr:
		b.close(is(atom.Tr), is(atom.Table))
	case atom.Thead, atom.Tbody, atom.Tfoot:
		b.close(is(atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption), is(atom.Table))
	case atom.Option, atom.Optgroup:
		b.close(is(atom.Option), is(atom.Select))
	case atom.A:
		b.close(is(atom.A), func(o opened) bool { return barrier(o) || special(o.tag) })
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if top := b.top(); headingLevel(top.tag) > 0 {
			b.pop(len(b.stack) - 1)
		}
	}
}

// end closes the element of an end tag, if it is within reach.
func (b *builder) end(tag atom.Atom, name string) {
	if tag == atom.Br {
		b.top().into.kids = append(b.top().into.kids, &node{tag: atom.Br, name: name})
		b.nodes++
		return
	}
	if b.carry[tag] > 0 && formatting(tag) {
		if b.carry[tag]--; b.carry[tag] == 0 {
			delete(b.carry, tag)
		}
		return
	}
	if b.count[tag] == 0 && headingLevel(tag) == 0 {
		return
	}
	stop := func(o opened) bool { return special(o.tag) }
	switch {
	case tabular(tag):
		stop = is(atom.Table)
	case special(tag), formatting(tag):
		stop = barrier
	}
	b.close(func(o opened) bool {
		return o.tag == tag && o.name == name || headingLevel(tag) > 0 && headingLevel(o.tag) > 0
	}, stop)
}

// close closes the innermost open element that want accepts, unless one that stop accepts is in between.
func (b *builder) close(want, stop func(opened) bool) {
	for i := len(b.stack) - 1; i > 0 && i >= len(b.stack)-maxReach; i-- {
		if want(b.stack[i]) {
			b.pop(i)
			return
		}
		if stop(b.stack[i]) {
			return
		}
	}
}

// pop closes the open elements from the i-th on.
func (b *builder) pop(i int) {
	for _, o := range b.stack[i:] {
		b.count[o.tag]--
		if o.tag == atom.Svg || o.tag == atom.Math {
			b.foreign--
		}
	}
	if !barrier(b.stack[i]) {
		for _, o := range b.stack[i+1:] {
			if o.own && formatting(o.tag) {
				b.carry[o.tag]++
			}
		}
	}
	b.stack = b.stack[:i]
}

func is(tags ...atom.Atom) func(opened) bool {
	return func(o opened) bool {
		for _, t := range tags {
			if o.tag == t {
				return true
			}
		}
		return false
	}
}

// firm reports elements that bound implicit ends.
func firm(o opened) bool {
	return special(o.tag) && o.tag != atom.Address && o.tag != atom.Div && o.tag != atom.P
}
