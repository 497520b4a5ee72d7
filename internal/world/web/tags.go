package web

import "golang.org/x/net/html/atom"

// kept names the attributes that are read.
func kept(key string) bool {
	switch key {
	case "id", "class", "style", "hidden", "aria-hidden", "aria-modal", "role", "open",
		"href", "src", "alt", "alttext", "start", "colspan", "rowspan", "datetime",
		"name", "property", "itemprop", "content", "charset", "http-equiv", "data-lang", "data-language", "lang":
		return true
	}
	return false
}

// void reports elements that have no end tag.
func void(tag atom.Atom) bool {
	switch tag {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input,
		atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr, atom.Keygen:
		return true
	}
	return false
}

// formatting reports elements that may overlap others.
func formatting(tag atom.Atom) bool {
	switch tag {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr,
		atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

// tabular reports the parts of a table.
func tabular(tag atom.Atom) bool {
	switch tag {
	case atom.Table, atom.Caption, atom.Colgroup, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	}
	return false
}

// barrier reports elements that end tags do not reach out of.
func barrier(o opened) bool {
	switch o.tag {
	case atom.Td, atom.Th, atom.Caption, atom.Table, atom.Template, atom.Object, atom.Applet, atom.Marquee, atom.Select:
		return true
	}
	return false
}

// special reports the elements that the HTML standard calls so and that a page
// can have in its body.
func special(tag atom.Atom) bool {
	switch tag {
	case atom.Address, atom.Applet, atom.Article, atom.Aside, atom.Blockquote, atom.Button, atom.Center,
		atom.Dd, atom.Details, atom.Dir, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure,
		atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr,
		atom.Iframe, atom.Li, atom.Listing, atom.Main, atom.Marquee, atom.Menu, atom.Nav, atom.Noscript, atom.Object, atom.Ol, atom.P,
		atom.Pre, atom.Script, atom.Section, atom.Select, atom.Style, atom.Summary, atom.Template, atom.Textarea, atom.Ul, atom.Xmp:
		return true
	}
	return tabular(tag)
}

// endsParagraph reports elements before which an open p ends.
func endsParagraph(tag atom.Atom) bool {
	switch tag {
	case atom.Applet, atom.Button, atom.Iframe, atom.Marquee, atom.Noscript, atom.Object, atom.Script, atom.Select, atom.Style,
		atom.Template, atom.Textarea, atom.Caption, atom.Colgroup, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return false
	case atom.Dialog, atom.Search:
		return true
	}
	return special(tag)
}

// blockish reports elements that begin and end a paragraph.
func blockish(tag atom.Atom) bool {
	return endsParagraph(tag) || tag == atom.Noscript || tag == atom.Caption || tag == atom.Tr || tag == atom.Td || tag == atom.Th
}

// unread reports elements without text for readers.
func unread(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Template, atom.Svg, atom.Input, atom.Select, atom.Button, atom.Textarea, atom.Iframe,
		atom.Canvas, atom.Title, atom.Meta, atom.Link, atom.Noscript, atom.Noembed, atom.Noframes, atom.Object, atom.Audio, atom.Video,
		atom.Datalist, atom.Map, atom.Rp, atom.Progress, atom.Meter:
		return true
	}
	return false
}

// headingLevel is 1 to 6 for headings, else 0.
func headingLevel(tag atom.Atom) int {
	switch tag {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	case atom.H5:
		return 5
	case atom.H6:
		return 6
	}
	return 0
}
