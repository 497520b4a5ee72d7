package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// painter shows the parsed document of src.
type painter struct {
	style Style
	src   []byte
}

// least is how many cells are kept for text; deeper nesting is not indented.
const least = 6

// blocks shows the children of n, with empty lines between them.
func (p *painter) blocks(n ast.Node, width int) []line {
	var out []line
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := p.block(c, width)
		for len(lines) > 0 && len(trimmed(lines[len(lines)-1])) == 0 { // such as a blank line of code
			lines = lines[:len(lines)-1]
		}
		if len(lines) == 0 {
			continue
		}
		if len(out) > 0 && apart(c) {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

// apart reports whether an empty line comes before a block: in lists if one was written, everywhere else
// always.
func apart(n ast.Node) bool {
	switch n.Parent().(type) {
	case *ast.ListItem, *ast.List:
		return n.HasBlankPreviousLines()
	}
	return true
}

func (p *painter) block(n ast.Node, width int) []line {
	switch n := n.(type) {
	case *ast.Heading:
		return p.heading(n, width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrap(p.inline(n, look{}), width)
	case *longBlock:
		return wrap([]span{{withoutData(strings.ReplaceAll(p.lines(n), "\n", " ")), look{}}}, width)
	case *picture:
		return p.picture(n, width)
	case *ast.FencedCodeBlock:
		return p.code(n, language(Plain(string(n.Language(p.src)))), width)
	case *ast.CodeBlock:
		return p.code(n, "", width)
	case *ast.HTMLBlock:
		return p.html(n, width)
	case *ast.ThematicBreak:
		return []line{{{strings.Repeat("─", width), look{faint: true}}}}
	case *ast.Blockquote:
		return prefix(func(w int) []line { return p.blocks(n, w) }, span{"│ ", look{faint: true}}, span{"│ ", look{faint: true}}, width)
	case *ast.List:
		return p.list(n, width)
	case *table:
		return p.table(n, width)
	}
	return nil
}

// prefix shows the result of body for the remaining width, with first before the first line, and other before
// all others. If there would be no width left, first gets its own line above and nothing is put before the
// lines.
func prefix(body func(width int) []line, first, other span, width int) []line {
	w := cells(first.text)
	if width-w < least {
		lines := body(width)
		if strings.Trim(first.text, "│ ") == "" {
			return lines
		}
		return append(wrap([]span{first}, width), lines...)
	}
	lines := body(width - w)
	if len(lines) == 0 && strings.Trim(first.text, "│ ") != "" {
		lines = []line{nil}
	}
	for i, l := range lines {
		before := other
		if i == 0 {
			before = first
		}
		lines[i] = append(line{before}, l...)
	}
	return lines
}

func (p *painter) heading(n *ast.Heading, width int) []line {
	l := look{bold: true, color: p.style.pick(heading), under: n.Level == 1}
	if n.Level > 3 {
		l.color = ""
	}
	text := p.inline(n, l)
	if p.style.NoColor {
		text = append([]span{{strings.Repeat("#", n.Level) + " ", l}}, text...)
	}
	return wrap(text, width)
}

func (p *painter) list(n *ast.List, width int) []line {
	var out []line
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
		}
		number++
		first := span{mark, look{color: p.style.pick(marker)}}
		lines := prefix(func(w int) []line { return p.blocks(c, w) }, first, span{strings.Repeat(" ", len([]rune(mark))), look{}}, width)
		if len(out) > 0 && apart(c) {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

// code shows a block of code, without the blank lines at its end.
func (p *painter) code(n ast.Node, language string, width int) []line {
	h := highlighter(p.style, language)
	var out []line
	kept := 0
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		text := Plain(strings.TrimRight(string(seg.Value(p.src)), "\n"))
		out = append(out, codeLines(h.line(strings.TrimRight(text, " \t")), width)...)
		if !blank(text) {
			kept = len(out)
		}
	}
	return out[:kept]
}

// codeLines returns the lines of a line of code, indented by two cells if there is room.
func codeLines(l line, width int) []line {
	return prefix(func(w int) []line { return chop(l, w) }, span{"  ", look{}}, span{"  ", look{}}, width)
}

// html shows HTML as plain text.
func (p *painter) html(n *ast.HTMLBlock, width int) []line {
	text := p.lines(n)
	if n.HasClosure() {
		text += Plain(string(n.ClosureLine.Value(p.src)))
	}
	var out []line
	for l := range strings.Lines(strings.TrimRight(text, " \n")) {
		out = append(out, chop(line{{strings.TrimRight(l, "\n"), look{faint: true}}}, width)...)
	}
	return out
}

// lines returns the source of a block.
func (p *painter) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		b.Write(seg.Value(p.src))
	}
	return Plain(b.String())
}
