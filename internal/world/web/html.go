package web

import (
	"net/url"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/inspan/inspan/internal/base/text"
)

// readHTML converts a page in UTF-8 to Markdown.
func readHTML(src []byte, base *url.URL) Page {
	t := read(src)
	t.root.measure(readSheet(t.sheet.String()))
	p := Page{Title: t.titled, Cut: t.cut}
	base = p.meta(t.root, base)
	t.root.weigh(t.root.all, false, false)
	part := choose(t.root)
	p.Text, p.Cut = render(part, base, false, p.Cut)
	if len(p.Text) < 200 && t.root.all > 4*part.net {
		p.Text, p.Cut = render(t.root, base, true, t.cut)
	}
	if t.root.all < 80 && t.drawn {
		p.Note = "scripts draw this page; what the server sends has little text"
		if said := noscript(t.root, base); said != "" {
			p.Text = strings.TrimSpace(p.Text + "\n\n" + said)
		}
	}
	return p
}

func render(n *node, base *url.URL, junk, cut bool) (string, bool) {
	r := renderer{writer: writer{limit: maxText}, base: base, junk: junk}
	r.kids(n)
	r.end(0)
	return strings.TrimSpace(r.out.String()), cut || r.cut
}

// noscript returns a page's text for readers without scripts.
func noscript(root *node, base *url.URL) string {
	var out []string
	var look func(*node)
	look = func(n *node) {
		if n.tag == atom.Noscript && !hiddenByAttr(n) {
			n.gone = false
			for _, k := range n.kids {
				k.measure(nil)
			}
			if text, _ := render(n, base, true, false); text != "" {
				out = append(out, text)
			}
			return
		}
		if n.gone {
			return
		}
		for _, k := range n.kids {
			look(k)
		}
	}
	look(root)
	return strings.Join(out, "\n\n")
}

// meta reads the metadata in the head of a page, and returns the base address of its links.
func (p *Page) meta(root *node, base *url.URL) *url.URL {
	better := ""
	var look func(*node)
	look = func(n *node) {
		switch n.tag {
		case atom.Base:
			if u, err := url.Parse(strings.TrimSpace(n.attr["href"])); err == nil && base != nil && n.attr["href"] != "" {
				if u = base.ResolveReference(u); u.Scheme == "http" || u.Scheme == "https" {
					base = u
				}
			}
		case atom.Meta:
			p.metaTag(n, &better)
		case atom.Time:
			if p.Date == "" && !n.gone && (n.attr["itemprop"] == "datePublished" ||
				named(n.attr["class"], func(w string) bool { return w == "published" })) {
				p.Date = text.Short(text.Page(n.attr["datetime"]), 40)
			}
		case atom.H1:
			if p.Title == "" && !n.gone {
				p.Title = text.Short(textOf(n, maxTitle), maxTitle)
			}
		}
		for _, k := range n.kids {
			look(k)
		}
	}
	look(root)
	if p.Title == "" {
		p.Title = better
	}
	return base
}

func (p *Page) metaTag(n *node, title *string) {
	name := n.attr["property"]
	if name == "" {
		name = n.attr["name"]
	}
	if name == "" {
		name = n.attr["itemprop"]
	}
	value := text.Short(text.Page(n.attr["content"]), maxTitle)
	switch strings.ToLower(name) {
	case "og:title":
		*title = value
	case "author", "article:author", "dc.creator", "citation_author":
		if p.Byline == "" && !strings.HasPrefix(value, "http") {
			p.Byline = text.Short(value, 100)
		}
	case "article:published_time", "date", "dc.date", "dcterms.date", "datepublished", "citation_publication_date", "publish_date":
		if p.Date == "" {
			p.Date = text.Short(value, 40)
		}
	}
}
