package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// look is how a piece of text is painted; color and back are SGR parameters.
type look struct {
	color, back                                  string
	bold, faint, italic, under, strike, reversed bool
}

// span is a piece of text in one look; it has a newline only before wrapping.
type span struct {
	text string
	look look
}

// line is one line of the screen.
type line []span

func (l look) sgr() string {
	var b strings.Builder
	for _, p := range []struct {
		on   bool
		code string
	}{{l.bold, "1"}, {l.faint, "2"}, {l.italic, "3"}, {l.under, "4"}, {l.reversed, "7"}, {l.strike, "9"}, {l.color != "", l.color}, {l.back != "", l.back}} {
		if p.on {
			b.WriteString(";" + p.code)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\x1b[" + b.String()[1:] + "m"
}

// paint writes a line with the colours of the style and a reset after each
// change. trim cuts the blanks at its end.
func (s Style) paint(l line, trim bool) string {
	if trim {
		l = trimmed(l)
	}
	size := 0
	for _, s := range l {
		size += len(s.text)
	}
	var b strings.Builder
	b.Grow(size + 32) // and some colours
	for i := 0; i < len(l); {
		if l[i].text == "" {
			i++
			continue
		}
		j := i + 1
		for j < len(l) && (l[j].look == l[i].look || l[j].text == "") {
			j++
		}
		sgr := ""
		if !s.NoColor {
			sgr = l[i].look.sgr()
		}
		b.WriteString(sgr)
		for ; i < j; i++ {
			b.WriteString(l[i].text)
		}
		if sgr != "" {
			b.WriteString("\x1b[0m")
		}
	}
	return b.String()
}

// paintAll writes lines without a newline at the end.
func (s Style) paintAll(lines []line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = s.paint(l, true)
	}
	return out
}

func trimmed(l line) line {
	for n := len(l); n > 0; n-- {
		last := l[n-1]
		switch text := strings.TrimRight(last.text, " "); text {
		case "":
		case last.text:
			return l[:n]
		default:
			last.text = text
			return append(l[:n-1:n-1], last)
		}
	}
	return nil
}

// cells returns the width of text on the screen.
func cells(text string) int {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return ansi.StringWidth(text)
		}
	}
	return len(text)
}

func width(l line) (n int) {
	for _, s := range l {
		n += cells(s.text)
	}
	return n
}

// cluster returns the first character of text, with all characters that combine with it, and its width.
func cluster(text string) (string, int) {
	if len(text) == 1 || text[0] >= ' ' && text[0] <= '~' && text[1] >= ' ' && text[1] <= '~' {
		return text[:1], 1
	}
	return ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
}

// chop breaks a line by cells, and keeps blanks. Each part has at least one character.
func chop(l line, limit int) []line {
	var out []line
	var cur line
	used := 0
	for _, s := range l {
		if n := cells(s.text); used+n <= limit {
			cur, used = append(cur, s), used+n
			continue
		}
		for rest := s.text; rest != ""; {
			n, w := fitting(rest, limit-used, used == 0)
			if n == 0 {
				out, cur, used = append(out, cur), nil, 0
				continue
			}
			cur, used = append(cur, span{rest[:n], s.look}), used+w
			rest = rest[n:]
		}
	}
	return append(out, cur)
}

// fitting returns how many bytes of text fit into room cells, and their width;
// at least one character if it must.
func fitting(text string, room int, must bool) (n, w int) {
	for n < len(text) {
		c, cw := cluster(text[n:])
		if w+cw > room && (n > 0 || !must) {
			break
		}
		n, w = n+len(c), w+cw
	}
	return n, w
}

// wrap breaks text between words, and inside of words that are too long. Newlines in it break the line. Between
// wide characters a line may break anywhere.
func wrap(text []span, limit int) []line {
	w := wrapper{limit: limit}
	for _, s := range text {
		w.add(s)
	}
	w.word2line()
	if len(w.cur) > 0 || len(w.lines) == 0 && len(text) > 0 {
		w.lines = append(w.lines, w.cur)
	}
	return w.lines
}

type wrapper struct {
	limit int
	lines []line
	cur   line
	used  int
	gap   line // blanks after cur, used only if a word follows
	gapW  int
	word  line
	wordW int
}

func (w *wrapper) add(s span) {
	for text := s.text; text != ""; {
		switch n := plainRun(text); {
		case text[0] == '\n':
			w.word2line()
			w.breakLine()
			text = text[1:]
		case text[0] == ' ':
			w.word2line()
			n = len(text) - len(strings.TrimLeft(text, " "))
			w.gap, w.gapW = append(w.gap, span{text[:n], s.look}), w.gapW+n
			text = text[n:]
		case n > 0:
			w.word, w.wordW = append(w.word, span{text[:n], s.look}), w.wordW+n
			text = text[n:]
		default:
			text = w.character(text, s.look)
		}
	}
}

// character adds a possibly wide or combined character to the word, and returns the rest of the text.
func (w *wrapper) character(text string, l look) string {
	c, cw := cluster(text)
	if cw > 1 {
		w.word2line()
	}
	w.word, w.wordW = append(w.word, span{c, l}), w.wordW+cw
	if cw > 1 {
		w.word2line()
	}
	return text[len(c):]
}

// plainRun returns the length of the ASCII at the start of text, up to a blank. Its last character is excluded
// if something may combine with it.
func plainRun(text string) int {
	n := 0
	for n < len(text) && text[n] > ' ' && text[n] <= '~' {
		n++
	}
	if n > 0 && n < len(text) && text[n] >= 0x80 {
		n--
	}
	return n
}

func (w *wrapper) word2line() {
	if len(w.word) == 0 {
		return
	}
	if w.used > 0 && w.used+w.gapW+w.wordW > w.limit {
		w.breakLine()
	}
	if w.used > 0 {
		w.cur, w.used = append(w.cur, w.gap...), w.used+w.gapW
	}
	w.gap, w.gapW = w.gap[:0], 0 // its content was copied, like that of the word below
	if w.wordW > w.limit {
		parts := chop(w.word, w.limit)
		w.lines = append(w.lines, parts[:len(parts)-1]...)
		w.cur = parts[len(parts)-1]
		w.used = width(w.cur)
	} else {
		w.cur, w.used = append(w.cur, w.word...), w.used+w.wordW
	}
	w.word, w.wordW = w.word[:0], 0
}

func (w *wrapper) breakLine() {
	w.lines = append(w.lines, w.cur)
	w.cur, w.used, w.gap, w.gapW = make(line, 0, len(w.cur)), 0, w.gap[:0], 0
}
