package web

import (
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/inspan/inspan/internal/base/text"
)

// measure determines which nodes are visible, and how much text they contain.
func (n *node) measure(s sheet) {
	if n.tag == 0 && n.name == "" {
		n.all = len(n.text) - strings.Count(n.text, " ") - strings.Count(n.text, "\n")
		return
	}
	n.gone = n.gone || unread(n.tag) || lineNumbers(n) || s.hides(n)
	if n.gone {
		return
	}
	for _, k := range n.kids {
		k.measure(s)
		n.all += k.all
		n.tables = n.tables || k.tables || k.tag == atom.Table
		n.blocks = n.blocks || k.blocks || k.tag == atom.Pre || k.tag == atom.Ul || k.tag == atom.Ol || headingLevel(k.tag) > 0
	}
}

// weigh marks junk. Total is the amount of visible text; in says that the node is inside an article or the main
// part.
func (n *node) weigh(total int, in, link bool) {
	if n.tag == 0 && n.name == "" {
		n.net = n.all
		if link {
			n.links = n.all
		}
		return
	}
	if n.gone {
		return
	}
	in = in || n.tag == atom.Main || n.tag == atom.Article || n.attr["role"] == "main"
	link = link || n.tag == atom.A
	for _, k := range n.kids {
		k.weigh(total, in, link)
		if !k.junk {
			n.net += k.net
			n.links += k.links
		}
	}
	n.junk = n.isJunk(in) && n.all*3 < total
}

// isJunk reports elements whose names say that they are not the page's main content.
func (n *node) isJunk(in bool) bool {
	switch n.tag {
	case atom.Nav, atom.Footer, atom.Form, atom.Menu, atom.Dialog, atom.Search:
		return true
	case atom.Header:
		return !in
	case atom.Aside:
		return !named(n.attr["class"]+" "+n.attr["role"], admonitions)
	case atom.Body, atom.Main, atom.Article, atom.Pre, atom.Code, atom.Table, atom.H1:
		return false
	}
	switch n.attr["role"] {
	case "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar", "tablist":
		return true
	}
	if n.attr["class"] == "" && n.attr["id"] == "" {
		return false
	}
	return named(n.attr["class"]+" "+n.attr["id"], furniture)
}

// named reports whether a word of class names or ids is one that list knows.
// Words are also those between hyphens and underscores.
func named(names string, list func(string) bool) bool {
	for name := range strings.FieldsSeq(strings.ToLower(text.Head(names, 512))) {
		if list(name) {
			return true
		}
		for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
			if list(word) {
				return true
			}
		}
	}
	return false
}

func admonitions(word string) bool {
	switch word {
	case "note", "tip", "warning", "caution", "important", "danger", "info", "hint", "admonition", "callout":
		return true
	}
	return false
}

func furniture(word string) bool {
	switch word {
	case "nav", "navbar", "navigation", "sidebar", "sidenav", "breadcrumb", "breadcrumbs", "pagination", "pager", "toc",
		"cookie", "cookies", "cookiebar", "cookieconsent", "consent", "gdpr", "onetrust", "newsletter", "subscribe", "paywall", "popup", "modal",
		"overlay",
		"social", "share", "sharing", "related", "recommended", "promo", "sponsor", "sponsored", "advert", "advertisement", "ads", "banner",
		"skip-link", "skiplink", "noprint", "editsection", "navbox", "footer", "menu", "masthead":
		return true
	}
	return false
}

// choose returns the main content of a page.
func choose(body *node) *node {
	var mains, articles []*node
	body.walk(func(n *node) {
		switch {
		case n.tag == atom.Main || n.attr["role"] == "main":
			mains = append(mains, n)
		case n.tag == atom.Article:
			articles = append(articles, n)
		}
	})
	if m := heaviest(mains); m != nil && (m.net >= 200 || m.net*3 >= body.net) {
		return m
	}
	if a := heaviest(articles); a != nil && a.net*5 >= body.net*3 {
		return a
	}
	return densest(body)
}

// walk visits visible nodes that are not junk, in order.
func (n *node) walk(f func(*node)) {
	if n.gone || n.junk {
		return
	}
	f(n)
	for _, k := range n.kids {
		k.walk(f)
	}
}

func heaviest(list []*node) *node {
	var best *node
	for _, n := range list {
		if best == nil || n.net > best.net {
			best = n
		}
	}
	return best
}

// densest descends as long as one child contains nearly all the prose.
func densest(n *node) *node {
	for {
		var next *node
		for _, k := range n.kids {
			if !k.gone && !k.junk && k.name != "" && holds(k.tag) && k.prose()*4 >= n.prose()*3 {
				next = k
			}
		}
		if next == nil || n.prose() <= 0 {
			return n
		}
		n = next
	}
}

// prose returns the amount of text outside of links.
func (n *node) prose() int { return n.net - n.links }

// holds reports elements that are only for layout.
func holds(tag atom.Atom) bool {
	switch tag {
	case atom.Div, atom.Section, atom.Article, atom.Center, atom.Form, atom.Main, 0:
		return true
	}
	return false
}
