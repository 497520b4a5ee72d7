package markdown

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// references are the addresses of links defined so far.
type references struct {
	by map[string]parser.Reference
}

// scope is the context for reading one block: it knows the references of all before.
type scope struct {
	parser.Context
	refs *references
}

func (s scope) AddReference(ref parser.Reference) {
	if s.refs.by == nil {
		s.refs.by = map[string]parser.Reference{}
	}
	key := util.ToLinkReference(ref.Label())
	if _, known := s.refs.by[key]; !known {
		s.refs.by[key] = ref
	}
}

func (s scope) Reference(label string) (parser.Reference, bool) {
	ref, ok := s.refs.by[label]
	return ref, ok
}

// longText is how many bytes of one paragraph, heading or cell are read as markdown. For some texts the parser
// takes quadratic time; a longer one is shown as plain text.
const longText = 8 << 10

// newParser returns a parser for the common extensions: tables, task lists, struck-through text and bare links
// in addition to the standard. For a big text it omits underlined headings, which can have any length.
func newParser(big bool) parser.Parser {
	blocks := parser.DefaultBlockParsers()
	if big {
		setext := parser.NewSetextHeadingParser()
		blocks = slices.DeleteFunc(blocks, func(v util.PrioritizedValue) bool { return reflect.TypeOf(v.Value) == reflect.TypeOf(setext) })
	}
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(tasks{}, 0),
			util.Prioritized(strikes{}, 500),
			util.Prioritized(bareLinks{}, 999))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(pictures{}, 40),
			util.Prioritized(cutter{}, 50),
			util.Prioritized(tables{}, 200),
			util.Prioritized(cutter{all: true}, 300))...),
	)
}

// cutter keeps paragraphs that are too long away from the parser: those with a long line, those that begin like
// references, or, after tables are found, all.
type cutter struct{ all bool }

func (c cutter) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	lines := n.Lines()
	size, longest := 0, 0
	for i := range lines.Len() {
		seg := lines.At(i)
		size, longest = size+seg.Len(), max(longest, seg.Len())
	}
	refs := false
	if lines.Len() > 0 {
		first := lines.At(0)
		refs = bytes.HasPrefix(bytes.TrimLeft(first.Value(r.Source()), " "), []byte("["))
	}
	if size <= longText || !c.all && !refs && longest <= longText {
		return
	}
	long := &longBlock{}
	long.SetLines(lines)
	long.SetBlankPreviousLines(n.HasBlankPreviousLines())
	n.Parent().InsertBefore(n.Parent(), n, long)
	n.Parent().RemoveChild(n.Parent(), n)
}

// longBlock is a paragraph that is shown as plain text.
type longBlock struct{ ast.BaseBlock }

// Kind is that of text.
func (*longBlock) Kind() ast.NodeKind { return ast.KindTextBlock }

// IsRaw keeps the parser from reading it.
func (*longBlock) IsRaw() bool { return true }

// Dump shows it to people who debug the parser.
func (n *longBlock) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// parse reads a block, or several. If the parser fails, it is plain text.
func (s *Stream) parse(src []byte) (doc ast.Node) {
	defer func() {
		if recover() != nil {
			doc = verbatim(src)
		}
	}()
	p := s.parser
	if len(src) > longText {
		p = newParser(true)
	}
	return p.Parse(text.NewReader(src), parser.WithContext(scope{parser.NewContext(), s.refs}))
}

// verbatim returns a document that shows its source.
func verbatim(src []byte) ast.Node {
	doc, block := ast.NewDocument(), ast.NewCodeBlock()
	for at := 0; at < len(src); {
		end := at + strings.IndexByte(string(src[at:]), '\n') + 1
		if end == at {
			end = len(src)
		}
		block.Lines().Append(text.NewSegment(at, end))
		at = end
	}
	doc.AppendChild(doc, block)
	return doc
}

// learn reads the references of a whole text ahead of it.
func (s *Stream) learn(text string) {
	if !strings.Contains(text, "]:") {
		return
	}
	var b strings.Builder
	for l := range strings.Lines(Plain(text)) {
		b.WriteString(shallow(l))
	}
	s.parse([]byte(b.String()))
}
