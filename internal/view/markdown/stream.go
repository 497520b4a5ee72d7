package markdown

import (
	"maps"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
)

// Stream shows markdown while it is written. Set Width and Style before the first Write and leave them; a
// stream is used by one goroutine.
//
// The results of Write, and finally Close, joined with newlines (an empty text stands for no line), equal the
// result of Render for the whole text, in however small pieces it came. There is one difference: a link whose
// address is defined further down, below the end of its block, has none in a stream.
//
// A block is settled when it has certainly ended, which is often known only from the next line: paragraphs,
// quotes and tables as a whole, lists item by item, code line by line. A settled text begins with an empty line
// if one separates it from the previous one.
type Stream struct {
	Width int // in cells, as for Render
	Style Style

	in   cleaner
	part []byte // of a line that has not ended

	kind  kind
	chunk []byte // lines of the current block
	gap   bool   // there is an empty line before the next line that is settled
	shown bool   // something has been settled

	blanks int // lines of code, or after an item, that count only if more follows

	fence   fence
	drawn   bool // the block of code is a figure, so its lines are not shown
	code    code
	htmlEnd string

	item    item // that began the chunk
	number  int  // of the next item, if the list continues
	goingOn bool // the chunk belongs to the list that was settled last

	refs   *references
	parser parser.Parser
	lexers *Lexers // those of Style, or its own
}

// kind is the sort of block that the lines of the chunk belong to.
type kind int

const (
	none kind = iota
	paragraph
	quote
	list
	indented
	html
	fenced
)

// Write handles the next piece and returns the lines that can no longer change, "" if there are none. There is
// no newline at their end.
func (s *Stream) Write(text string) (settled string) {
	s.ready()
	var out []string
	s.take(s.in.write(text), &out)
	return strings.Join(out, "\n")
}

func (s *Stream) take(text string, out *[]string) {
	for {
		l, rest, whole := strings.Cut(text, "\n")
		if !whole {
			s.part = append(s.part, l...)
			return
		}
		if len(s.part) > 0 {
			l = string(s.part) + l
			s.part = s.part[:0]
		}
		s.line(l, out)
		text = rest
	}
}

// Tail returns the unsettled text as it would be shown if nothing else came. Its cost is proportional to the
// length of that text.
func (s *Stream) Tail() string {
	s.ready()
	look := *s
	look.part = slices.Clip(s.part)
	look.chunk = slices.Clip(s.chunk)
	look.refs = &references{maps.Clone(s.refs.by)}
	return look.finish()
}

// Close returns the remaining lines, and resets the stream.
func (s *Stream) Close() (rest string) {
	s.ready()
	rest = s.finish()
	*s = Stream{Width: s.Width, Style: s.Style}
	return rest
}

func (s *Stream) finish() string {
	var out []string
	s.part = append(s.part, s.in.rest()...)
	if len(s.part) > 0 {
		s.line(string(s.part), &out)
	}
	s.flush(&out)
	return strings.Join(out, "\n")
}

// line handles a complete line and settles what is then certain.
func (s *Stream) line(l string, out *[]string) {
	switch s.kind {
	case fenced:
		s.codeLine(l, out)
	case html:
		s.htmlLine(l, out)
	case indented:
		if !blank(l) && indent(l) < 4 {
			s.flush(out)
			s.begin(l, out)
			return
		}
		s.keep(l)
	case list:
		s.listLine(l, out)
	case paragraph, quote:
		s.textLine(l, out)
	default:
		s.begin(l, out)
	}
}

// keep adds a line to the chunk.
func (s *Stream) keep(l string) {
	s.chunk = append(s.chunk, shallow(l)...)
	s.chunk = append(s.chunk, '\n')
}

// begin handles a line outside of any open block.
func (s *Stream) begin(l string, out *[]string) {
	if blank(l) {
		return
	}
	it := opensItem(l)
	end := htmlEnd(l, false)
	f := opensFence(l)
	s.gap = s.shown
	switch {
	case indent(l) > 3:
		s.kind = indented
	case f.mark != 0:
		s.kind, s.fence, s.blanks = fenced, f, 0
		s.code = highlighter(s.style(), language(f.info))
		s.chart(out)
		return
	case isHeading(l), isBreak(l):
		s.kind = paragraph
		s.keep(l)
		s.flush(out)
		return
	case isQuote(l):
		s.kind = quote
	case it.mark != 0:
		s.kind, s.item, s.blanks, s.goingOn = list, it, 0, false
	case end != "":
		s.kind, s.htmlEnd = html, end
		s.htmlLine(l, out)
		return
	default:
		s.kind = paragraph
	}
	s.keep(l)
}

// textLine handles a line after one of a paragraph or of a quote.
func (s *Stream) textLine(l string, out *[]string) {
	switch {
	case blank(l):
		s.flush(out)
	case s.kind == quote && isQuote(l):
		s.keep(l)
	case s.kind == paragraph && isUnderline(l):
		s.keep(l)
		if indent(string(s.chunk)) < len(s.chunk) && s.chunk[indent(string(s.chunk))] != '[' {
			s.flush(out)
		}
	case s.ends(l):
		s.flush(out)
		s.begin(l, out)
	default:
		s.keep(l)
	}
}

// ends reports whether a line can't continue the paragraph before it.
func (s *Stream) ends(l string) bool {
	if indent(l) > 3 {
		return false
	}
	it := opensItem(l)
	return opensFence(l).mark != 0 || isHeading(l) || isBreak(l) || isQuote(l) ||
		htmlEnd(l, true) != "" || it.interrupts() || s.kind != paragraph && it.mark != 0
}

// listLine handles a line after one of an item.
func (s *Stream) listLine(l string, out *[]string) {
	it := opensItem(l)
	switch {
	case blank(l):
		s.blanks++
	case indent(l) >= s.item.offset:
		s.keepItem(l)
	case isBreak(l):
		s.flush(out)
		s.begin(l, out)
	case it.mark != 0:
		blanks, before := s.blanks, s.item
		s.flush(out)
		s.begin(l, out)
		if s.goingOn = s.number > 0 && before.mark == it.mark && (before.number == "") == (it.number == ""); s.goingOn {
			s.gap = blanks > 0
		}
	case s.blanks > 0 || s.ends(l):
		s.flush(out)
		s.begin(l, out)
	default:
		s.keepItem(l)
	}
}

func (s *Stream) keepItem(l string) {
	s.chunk = append(s.chunk, strings.Repeat("\n", s.blanks)...)
	s.blanks = 0
	s.keep(l)
}

func (s *Stream) htmlLine(l string, out *[]string) {
	if s.htmlEnd == "blank" && blank(l) {
		s.flush(out)
		return
	}
	s.keep(l)
	low := strings.ToLower(l)
	if s.htmlEnd == "</" {
		for _, name := range []string{"</script>", "</pre>", "</style>", "</textarea>"} {
			if strings.Contains(low, name) {
				s.flush(out)
				return
			}
		}
	} else if strings.Contains(low, s.htmlEnd) {
		s.flush(out)
	}
}

// chart settles the drawing that replaces a block of code.
func (s *Stream) chart(out *[]string) {
	s.drawn = false
	var lines []line
	inset := codeLines(nil, s.width())
	for text := range strings.Lines(Drawn(s.fence.info, s.width()-width(inset[0]))) {
		lines = append(lines, codeLines(line{{Plain(strings.TrimRight(text, "\n")), look{}}}, s.width())...)
	}
	s.drawn = len(lines) > 0
	s.emit(lines, out)
}

// codeLine settles a line of code. Blank lines wait for one that is not.
func (s *Stream) codeLine(l string, out *[]string) {
	if s.fence.closes(l) {
		s.blanks, s.kind = 0, none
		s.code = code{}
		return
	}
	if s.drawn {
		return
	}
	l = l[min(indent(l), s.fence.indent):]
	if blank(l) {
		s.code.line("")
		s.blanks++
		return
	}
	lines := make([]line, s.blanks, s.blanks+1)
	s.blanks = 0
	s.emit(append(lines, codeLines(s.code.line(strings.TrimRight(l, " \t")), s.width())...), out)
}

// flush settles the chunk.
func (s *Stream) flush(out *[]string) {
	kind := s.kind
	s.kind, s.blanks, s.number = none, 0, s.next()
	if kind == none || kind == fenced {
		return
	}
	p := &painter{style: s.style(), src: s.chunk}
	doc := s.parse(s.chunk)
	l, isList := doc.FirstChild().(*ast.List)
	if kind == list && isList {
		if s.number > 0 && l.IsOrdered() {
			l.Start = s.number
		}
		s.number = max(l.Start, s.number) + l.ChildCount()
		if !l.IsOrdered() {
			s.number = 1
		}
	}
	if kind != list || !isList || l.NextSibling() != nil {
		s.number = 0
	}
	s.emit(p.blocks(doc, s.width()), out)
	s.chunk = s.chunk[:0:0]
}

// next returns the number of the first item of the chunk, 0 for its own.
func (s *Stream) next() int {
	if s.goingOn {
		return s.number
	}
	return 0
}

// emit settles lines.
func (s *Stream) emit(lines []line, out *[]string) {
	if len(lines) == 0 {
		return
	}
	if s.gap {
		*out = append(*out, "")
	}
	s.gap, s.shown = false, true
	*out = append(*out, s.Style.paintAll(lines)...)
}

func (s *Stream) width() int {
	if s.Width <= 0 {
		return 80
	}
	return s.Width
}

// ready initializes the state shared by blocks.
func (s *Stream) ready() {
	if s.parser != nil {
		return
	}
	s.parser, s.refs, s.lexers = newParser(false), &references{}, s.Style.Lexers
	if s.lexers == nil {
		s.lexers = &Lexers{}
	}
}

// style returns the stream's style, with lexers.
func (s *Stream) style() Style {
	style := s.Style
	style.Lexers = s.lexers
	return style
}
