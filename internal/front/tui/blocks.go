package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// block is one thing that has happened, in the form in which it is shown.
type block struct {
	kind   blockKind
	text   string
	by     string // who said it; empty means the person here
	bad    bool   // something to notice
	detail string // more about the end of a run
	call   *transcript.Call
	whole  bool   // for a call, or a command of the person: unfolded
	stored string // for a call: the blob with the whole result, once it was requested
	reply  *transcript.Reply

	kept bool // for fullscreen, which may render it again
}

type blockKind int

const (
	saidBlock blockKind = iota + 1
	replyBlock
	callBlock
	noteBlock
	stopBlock
	plainBlock // our own text, shown as it is
	diffBlock  // the change of a file, with its path as detail
	thoughtBlock
	ownBlock // a command of the person, and its output
)

// Lines that are shown of a thing before it is unfolded.
const (
	foldResult = 3
	foldDiff   = 40
	foldSaid   = 12
)

// lines renders a finished block.
func (b *block) lines(l look) []string {
	switch b.kind {
	case saidBlock:
		mark := "› "
		if b.by != "" {
			mark = "› " + words.OneLine(b.by, 20) + ": "
		}
		lines := wrapHanging(l, mark, b.text)
		if more := len(lines) - foldSaid; more > 1 {
			lines = append(lines[:foldSaid], fmt.Sprintf("  … +%s", text.Count(more, "line")))
		}
		return paintAll(l, boldCyan, lines)
	case thoughtBlock:
		return paintAll(l, dim, wrapHanging(l, "∙ ", b.text))
	case ownBlock:
		return b.ownLines(l)
	case replyBlock:
		return split(markdown.Render(clean(b.reply.Text), l.width, l.markdown()))
	case callBlock:
		in := strings.Repeat("  ", min(b.call.Depth(), l.width/8))
		l.width -= len(in)
		if b.call.Depth() > 0 && !b.bad && !b.whole && !l.verbose {
			return indented(in, []string{b.nested(l)})
		}
		return indented(in, append([]string{callLine(l, b.call.Call)}, b.result(l)...))
	case stopBlock:
		if b.bad {
			lines := wrap("■ "+clean(b.text), l.width, "")
			if b.detail != "" {
				lines = append(lines, wrap(clean(b.detail), l.width, "  ")...)
			}
			return paintAll(l, red, lines)
		}
		return paintAll(l, dim, wrap("■ "+clean(b.text), l.width, ""))
	case diffBlock:
		return append([]string{l.paint(bold, words.OneLine(b.detail, l.width))}, indentMarkdown(markdown.Diff(b.text, l.width-4, l.markdown()))...)
	case plainBlock:
		return columns(l, b.text)
	}
	if b.bad {
		return paintAll(l, yellow, wrapHanging(l, "! ", b.text))
	}
	return paintAll(l, dim, wrapHanging(l, "· ", b.text))
}

// indented indents the lines of nested calls.
func indented(in string, lines []string) []string {
	for i, line := range lines {
		if line != "" {
			lines[i] = in + line
		}
	}
	return lines
}

// wrapHanging wraps text behind a mark.
func wrapHanging(l look, mark, text string) []string {
	indent := strings.Repeat(" ", ansi.StringWidth(mark))
	lines := wrap(clean(text), l.width, indent)
	lines[0] = mark + strings.TrimPrefix(lines[0], indent)
	return lines
}

func paintAll(l look, sgr string, lines []string) []string {
	for i, line := range lines {
		lines[i] = l.paint(sgr, line)
	}
	return lines
}

// column is where the second column begins, and wideColumn how far it may move to the right on a wide screen.
const (
	column     = 28
	wideColumn = 40
)

// columns lays out our own text: text after a tab becomes a second column, or goes below the first one if there is
// no room.
func columns(l look, text string) []string {
	var out []string
	begin := column
	for line := range strings.SplitSeq(text, "\n") {
		left, _, two := strings.Cut(line, "\t")
		if n := ansi.StringWidth(clean(left)) + 2; two && n <= min(wideColumn, l.width/3) {
			begin = max(begin, n)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		left, right, two := strings.Cut(line, "\t")
		left = clean(left)
		if !two {
			out = append(out, wrapTabbed(left, l.width)...)
			continue
		}
		at := begin
		if l.width < 2*column {
			at = 6
		}
		lines := wrap(clean(right), l.width, strings.Repeat(" ", at))
		if n := ansi.StringWidth(left); n < at {
			lines[0] = left + lines[0][n:]
		} else {
			out = append(out, wrap(left, l.width, "")...)
		}
		out = append(out, lines...)
	}
	return out
}

// wrapTabbed wraps a line of our own text. Lines with columns continue after their beginning, so that the next one
// stands out.
func wrapTabbed(line string, width int) []string {
	const in = "    "
	text := strings.TrimLeft(line, " ")
	lead := line[:len(line)-len(text)]
	if cells(line) <= width || !strings.Contains(text, "  ") {
		return wrap(line, width, "")
	}
	out := wrap(text, width-len(in), lead)
	for i := range out[1:] {
		out[i+1] = in + out[i+1]
	}
	return out
}

func split(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (l look) markdown() markdown.Style {
	return markdown.Style{Light: l.light, NoColor: l.noColor, Lexers: l.lexers}
}

// ownLines shows a command of the person and its output, whose end matters most.
func (b *block) ownLines(l look) []string {
	command, printed, _ := strings.Cut(b.text, "\n")
	mark := map[bool]string{false: "! ", true: "You ran: "}[l.reader]
	lines := paintAll(l, boldCyan, wrapHanging(l, mark, strings.TrimPrefix(command, "$ ")))
	if printed == "" {
		return lines
	}
	out := wrapAnywhere(clean(printed), l.width, "  ")
	if more := len(out) - foldSaid; more > 1 && !b.whole && !l.verbose {
		out = append([]string{fmt.Sprintf("  … %s above", text.Count(more, "line"))}, out[more:]...)
	}
	return append(lines, paintAll(l, dim, out)...)
}

// callLine describes a call on one line.
func callLine(l look, c llm.Call) string { return withSubject(l, l.paint(bold, "▸ "+callName(c)), c) }

// nested shows a call of a script on one line, as there may be a thousand: what it did and how its result begins.
func (b *block) nested(l look) string {
	line := withSubject(l, l.paint(green, "✓")+" "+l.paint(bold, callName(b.call.Call)), b.call.Call)
	if begin := words.OneLine(words.Summary(b.call.Ended.Parts.Text()), l.width-ansi.StringWidth(line)-3); begin != "" {
		line += l.paint(dim, " · "+begin)
	}
	return line
}

func callName(c llm.Call) string { return words.OneLine(cmp.Or(c.Name, "call"), 40) }

// withSubject adds what a call is about to a line that names it.
func withSubject(l look, line string, c llm.Call) string {
	if about := words.OneLine(words.Subject(c), l.width-ansi.StringWidth(line)-1); about != "" {
		return line + " " + about
	}
	return line
}

// result shows the result of a call: its first lines, then its changes, then its text for the person, which is
// never folded.
func (b *block) result(l look) []string {
	breaking, body := wrapAnywhere, dim
	if b.call.Ended.Outcome != event.OutcomeOK && b.bad { // it is prose
		breaking, body = wrap, red
	}
	said := b.call.Ended.Parts.Text()
	switch changes := slices.ContainsFunc(b.call.Ended.Files, func(f tool.File) bool { return f.Diff != "" }); {
	case b.whole && b.stored != "":
		said = b.stored
	case changes && !b.whole: // the diff for the model repeats the one below
		said, _, _ = strings.Cut(said, "\n--- ")
	}
	s := breaking(clean(words.Result(said)), l.width, "    ")
	if images := b.call.Ended.Parts.Images(); images > 0 {
		s = append(s, "    ["+text.Count(images, "image")+"]")
	}
	s = foldLines(s, foldResult, b.whole || l.verbose)
	mark := l.paint(green, "✓")
	if b.bad {
		mark = l.paint(red, "✗ "+words.Failed(b.call.Ended))
	}
	if took := words.Took(b.call.Ended.Millis); took != "" {
		mark += " " + took
	}
	out := paintAll(l, body, s)
	if ansi.StringWidth(mark) == 1 { // it fits into the margin
		out[0] = "  " + mark + strings.Replace(out[0], "    ", " ", 1)
	} else {
		out = append([]string{"  " + mark}, out...)
	}
	for _, f := range b.call.Ended.Files {
		if f.Diff != "" {
			out = append(out, foldLines(indentMarkdown(markdown.Diff(f.Diff, l.width-4, l.markdown())), foldDiff, b.whole || l.verbose)...)
		}
	}
	return append(out, indentMarkdown(markdown.Render(clean(b.call.Ended.Show), l.width-4, l.markdown()))...)
}

// indentMarkdown indents lines of markdown.
func indentMarkdown(text string) []string { return indented("    ", split(text)) }

// foldLines keeps the first lines and says how many more there are.
func foldLines(lines []string, keep int, whole bool) []string {
	more := len(lines) - keep
	if whole || more < 2 { // the note would take as much room
		return lines
	}
	return append(lines[:keep:keep], fmt.Sprintf("    … +%s", text.Count(more, "line")))
}

// diffLines shows the whole preview of a call, or of several calls with their texts after words.Within.
func diffLines(l look, preview, indent string) []string {
	var out []string
	lines := strings.Split(strings.TrimRight(preview, "\n"), "\n")
	for len(lines) > 0 {
		margin := ""
		if strings.HasPrefix(lines[0], words.Within) {
			margin = words.Within
		}
		n := 1 // lines of one text
		for n < len(lines) && strings.HasPrefix(lines[n], words.Within) == (margin != "") {
			n++
		}
		part := make([]string, n)
		for i, line := range lines[:n] {
			part[i] = strings.TrimPrefix(line, margin)
		}
		lines = lines[n:]
		for _, line := range onePreview(l, part, l.width-len(indent+margin)) {
			out = append(out, indent+margin+line)
		}
	}
	return out
}

// onePreview shows the lines of one preview: a diff with line numbers and marked words, other text as it is.
func onePreview(l look, lines []string, width int) (out []string) {
	if !strings.HasPrefix(lines[0], "--- ") {
		for _, line := range lines {
			sgr := ""
			switch {
			case strings.HasPrefix(line, "+"):
				sgr = green
			case strings.HasPrefix(line, "-"):
				sgr = red
			}
			part := wrapAnywhere(text.VisibleLines(line), width, "")
			if sgr != "" {
				part = paintAll(l, sgr, part)
			}
			out = append(out, part...)
		}
		return out
	}
	for i, line := range lines { // in a file whose lines end with \r\n, that is not part of the change
		line, end := strings.CutSuffix(line, "\r")
		lines[i] = text.VisibleLines(line)
		if end {
			lines[i] += "\r"
		}
	}
	return split(markdown.Diff(strings.Join(lines, "\n"), max(width, 1), l.markdown()))
}

// printer turns blocks into lines, each once and in order. An open reply is printed as far as its lines can't
// change any more.
type printer struct {
	look
	lines  []string         // printed and not taken yet
	tail   []string         // of the open reply: lines that may still change
	next   time.Time        // earliest time to render the tail again
	stream *markdown.Stream // of the open reply; nil if there is none
	fed    string           // text that the stream has received
	said   bool             // lines of the open reply are printed
	prev   blockKind
}

// take prints the blocks, and returns those that are not finished.
func (p *printer) take(blocks []*block) []*block {
	for len(blocks) > 0 {
		b := blocks[0]
		switch {
		case b.kind == replyBlock && (b.reply.State == transcript.Written || p.stream != nil):
			if !p.reply(b) {
				return blocks
			}
		case b.kind == replyBlock && b.reply.State == transcript.Void:
		default:
			p.printBlock(b.kind, b.lines(p.look))
		}
		blocks = blocks[1:]
	}
	return nil
}

// printBlock adds the lines of a block, with blank lines between different kinds.
func (p *printer) printBlock(kind blockKind, lines []string) {
	if len(lines) == 0 {
		return
	}
	if kind == saidBlock || kind == ownBlock || kind == replyBlock || p.prev != kind && kind != noteBlock && kind != stopBlock && p.prev != 0 {
		p.lines = append(p.lines, "")
	}
	p.prev = kind
	p.lines = append(p.lines, p.spoken(lines)...)
}

// reply feeds the stream, and reports whether the reply is complete.
func (p *printer) reply(b *block) (over bool) {
	if p.stream == nil {
		p.stream, p.fed, p.said = &markdown.Stream{Width: p.width, Style: p.markdown()}, "", false
	}
	void, open := b.reply.State == transcript.Void, b.reply.State == transcript.Written
	rest, same := strings.CutPrefix(b.reply.Text, p.fed)
	if void || !same { // printed text can't be taken back, so a line says so
		if p.said {
			p.printBlock(noteBlock, []string{p.paint(dim, "· ignore the text above: the reply broke off or was changed")})
		}
		p.closed()
		if !void {
			p.printBlock(replyBlock, b.lines(p.look))
		}
		return true
	}
	p.settle(p.stream.Write(clean(rest)))
	p.fed = b.reply.Text
	if open {
		p.preview()
		return false
	}
	p.settle(p.stream.Close())
	p.closed()
	return true
}

// preview renders what may still change, unless that took long the last time: an endless paragraph must not
// take up all the time.
func (p *printer) preview() {
	began := time.Now()
	if began.Before(p.next) {
		return
	}
	p.tail = split(p.stream.Tail())
	p.next = time.Now().Add(10 * time.Since(began))
}

func (p *printer) closed() { p.stream, p.fed, p.tail, p.said = nil, "", nil, false }

// settle prints lines of the open reply.
func (p *printer) settle(text string) {
	if text == "" {
		return
	}
	if !p.said {
		p.lines = append(p.lines, "")
		p.prev, p.said = replyBlock, true
	}
	p.lines = append(p.lines, p.spoken(strings.Split(text, "\n"))...)
}
