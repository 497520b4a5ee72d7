package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Extensions of the standard. The parser's own package for them would cost every start of the program as much
// as the rest of the parser.
var (
	_ parser.ParagraphTransformer = tables{}
	_ parser.InlineParser         = tasks{}
	_ parser.InlineParser         = strikes{}
	_ parser.DelimiterProcessor   = strikes{}
	_ parser.InlineParser         = bareLinks{}
)

// checkBox says whether the task after it is done.
type checkBox struct {
	ast.BaseInline
	done bool
}

// Kind is that of a text of its own.
func (*checkBox) Kind() ast.NodeKind { return ast.KindString }

// Dump shows it to people who debug the parser.
func (n *checkBox) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// tasks recognizes [ ] and [x] at the beginning of a list item.
type tasks struct{}

// Trigger is the beginning of a box.
func (tasks) Trigger() []byte { return []byte{'['} }

// Parse reads the box and the blanks after it.
func (tasks) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	l, _ := block.PeekLine()
	if len(l) < 3 || l[2] != ']' || bytes.IndexByte([]byte(" xX"), l[1]) < 0 {
		return nil
	}
	block.Advance(len(l) - len(bytes.TrimLeft(l[3:], " \n")))
	return &checkBox{done: l[1] != ' '}
}

// struck is struck-through text.
type struck struct{ ast.BaseInline }

// Kind is that of another look.
func (*struck) Kind() ast.NodeKind { return ast.KindEmphasis }

// Dump shows it to people who debug the parser.
func (n *struck) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// strikes recognizes ~text~ and ~~text~~. More tildes are just tildes.
type strikes struct{}

// Trigger is the mark.
func (strikes) Trigger() []byte { return []byte{'~'} }

// Parse reads one or two tildes that may begin or end such a text.
func (s strikes) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	l, at := block.PeekLine()
	before := block.PrecendingCharacter()
	mark := parser.ScanDelimiter(l, before, 1, s)
	if mark == nil || mark.Length > 2 || before == '~' {
		return nil
	}
	mark.Segment = at.WithStop(at.Start + mark.Length)
	block.Advance(mark.Length)
	pc.PushDelimiter(mark)
	return mark
}

// IsDelimiter reports whether b is the mark.
func (strikes) IsDelimiter(b byte) bool { return b == '~' }

// CanOpenCloser reports whether two marks are of the same sort.
func (strikes) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch returns the node for the text between two marks.
func (strikes) OnMatch(int) ast.Node { return &struck{} }
