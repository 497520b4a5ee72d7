package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// side is the alignment of a column.
type side int

const (
	atLeft side = iota
	atRight
	atCenter
)

// table has a row for each of its children, the head first, and each row a cell
// for each of its own. A row may have fewer cells than there are columns, or more.
type table struct {
	ast.BaseBlock
	columns []side
}

// Kind is that of text.
func (*table) Kind() ast.NodeKind { return ast.KindTextBlock }

// Dump shows it to people who debug the parser.
func (n *table) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// tables makes a table from the end of a paragraph with a line of rules, if the line above has no more cells
// than the rules have columns.
type tables struct{}

// Transform leaves the paragraph the lines before the head.
func (tables) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	lines, src := n.Lines(), r.Source()
	rule, columns := 1, []side(nil)
	for ; rule < lines.Len() && columns == nil; rule++ {
		at := lines.At(rule)
		columns = readRules(at.Value(src))
	}
	if columns == nil {
		return
	}
	rule--
	head := readRow(lines.At(rule-1), src)
	if head.ChildCount() > len(columns) {
		return
	}
	t := &table{columns: columns}
	t.AppendChild(t, head)
	for i := rule + 1; i < lines.Len(); i++ {
		t.AppendChild(t, readRow(lines.At(i), src))
	}
	n.Parent().InsertAfter(n.Parent(), n, t)
	if rule == 1 {
		n.Parent().RemoveChild(n.Parent(), n)
		return
	}
	lines.SetSliced(0, rule-1)
	last := lines.At(rule - 2)
	last.Stop-- // a paragraph has no newline at its end
	lines.Set(rule-2, last)
}

// readRules parses the line below the head of a table; nil means it is not one.
func readRules(l []byte) []side {
	if len(bytes.Trim(l, " -|:\n")) > 0 || indent(string(l)) > 3 {
		return nil
	}
	rules := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(l)), "|"), "|")
	var out []side
	for r := range strings.SplitSeq(rules, "|") {
		dashes, toRight := strings.CutSuffix(strings.Trim(r, " "), ":")
		dashes, toLeft := strings.CutPrefix(dashes, ":")
		switch {
		case dashes == "" || strings.Trim(dashes, "-") != "":
			return nil
		case toLeft && toRight:
			out = append(out, atCenter)
		case toRight:
			out = append(out, atRight)
		default:
			out = append(out, atLeft)
		}
	}
	return out
}

// readRow splits a line at its bars, except those after a backslash. The bars at both ends are optional.
func readRow(at text.Segment, src []byte) ast.Node {
	row := ast.NewTextBlock()
	at = at.TrimLeftSpace(src)
	at = at.TrimRightSpace(src)
	if at.Start < at.Stop && src[at.Start] == '|' {
		at.Start++
	}
	for at.Start < at.Stop {
		seg := at.WithStop(at.Start + barAt(src[at.Start:at.Stop]))
		at.Start = seg.Stop + 1
		seg = seg.TrimLeftSpace(src)
		cell := ast.NewTextBlock()
		cell.Lines().Append(seg.TrimRightSpace(src))
		row.AppendChild(row, cell)
	}
	return row
}

// barAt returns the place of the first bar that ends a cell, or the end.
func barAt(l []byte) int {
	for i, b := range l {
		if b == '|' && (i == 0 || l[i-1] != '\\') {
			return i
		}
	}
	return len(l)
}
